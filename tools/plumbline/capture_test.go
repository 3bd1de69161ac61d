package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sebdah/goldie/v2"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/fixtures"
)

// spoiled is a reference whose outcomes are changed on their way.
type spoiled struct {
	*reference.Engine
	spoil func(c *reference.Captured, rows [][]float64) error
}

func (s spoiled) CaptureMany(ctx context.Context, prompts [][]int, o reference.ManyOptions, each func(reference.Captured) error) error {
	return s.Engine.CaptureMany(ctx, prompts, o, func(c reference.Captured) error {
		var rows [][]float64
		for _, r := range c.Trace.Rows() {
			rows = append(rows, slices.Clone(r))
		}
		c.Trace = fakeTrace{rows: rows}
		if err := s.spoil(&c, rows); err != nil {
			return err
		}
		return each(c)
	})
}

func seeded(t *testing.T) *reference.Engine {
	t.Helper()
	w, err := reference.LoadFS(fixtures.SeededModel(), ".")
	require.NoError(t, err)
	ref, err := reference.New(w)
	require.NoError(t, err)
	return ref
}

const threePrompts = `{"name":"a","text":"x","token_ids":[1,2,3]}
{"name":"b","text":"y","token_ids":[1,2,4]}
{"name":"c","text":"z","token_ids":[5]}
`

// captureWith runs the command's inside on three prompts.
func captureWith(t *testing.T, ref capturer, a *app, out string) (string, error) {
	t.Helper()
	return captureWithFlags(t, ref, a, captureFlags{out: out, maxNew: 2})
}

func captureWithFlags(t *testing.T, ref capturer, a *app, f captureFlags) (string, error) {
	t.Helper()
	prompts := filepath.Join(t.TempDir(), "p.jsonl")
	require.NoError(t, writeFile(prompts, []byte(threePrompts)))
	rows, err := parsePrompts(prompts)
	require.NoError(t, err)
	a.words = &modelText{err: errors.New("none"), missing: true}
	var stdout, stderr bytes.Buffer
	a.stdout, a.stderr = &stdout, &stderr
	f.prompts = prompts
	err = a.capturePrompts(context.Background(), ref, rows, f)
	return stdout.String(), err
}

func names(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// A case that fails a self-check isn't written; the others are.
func TestCaptureWritesNoCaseThatFailsASelfCheck(t *testing.T) {
	ref := seeded(t)
	last := len(engineRows(t, ref)) - 1
	for _, tt := range []struct {
		name  string
		spoil func(c *reference.Captured, rows [][]float64) error
		says  string
	}{
		{"healthy", func(*reference.Captured, [][]float64) error { return nil }, ""},
		{"NaN", func(_ *reference.Captured, rows [][]float64) error { rows[3][1] = math.NaN(); return nil }, "capture: row 3: channel 1"},
		{"the last row is the normed state", func(c *reference.Captured, rows [][]float64) error {
			copy(rows[last], c.LastHidden)
			return nil
		}, "endpoint_self_check: row 28"},
		{"another token's embedding", func(_ *reference.Captured, rows [][]float64) error { rows[0][0]++; return nil }, "endpoint_self_check: row 0"},
		{"an inner row is stale", func(_ *reference.Captured, rows [][]float64) error { copy(rows[7], rows[6]); return nil }, "interior_row_oracle: row 7"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			text, err := captureWith(t, spoiled{ref, func(c *reference.Captured, rows [][]float64) error {
				if c.Index != 1 {
					return nil
				}
				return tt.spoil(c, rows)
			}}, &app{}, filepath.Join(dir, "out"))
			files := []string{"a.json", "a.layers.bin", "a.logits.bin", "b.json", "b.layers.bin", "b.logits.bin",
				"c.json", "c.layers.bin", "c.logits.bin", "engine.json"}
			if tt.says == "" {
				require.NoError(t, err)
				require.Equal(t, files, names(t, filepath.Join(dir, "out")))
				return
			}
			require.ErrorContains(t, err, "capture: 1 of 3 cases not written: a self-check failed")
			require.Equal(t, exitBroken, exitCode(err))
			require.Contains(t, text, "b: not written: "+tt.says)
			require.Contains(t, text, "dump_folder_written: 2 of 3 cases")
			require.Equal(t, slices.Concat(files[:3], files[6:]), names(t, filepath.Join(dir, "out")))
			require.Equal(t, []string{"out"}, names(t, dir))
		})
	}
}

func engineRows(t *testing.T, ref *reference.Engine) [][]float64 {
	t.Helper()
	tr, err := ref.Capture(t.Context(), []int{1})
	require.NoError(t, err)
	return tr.Rows()
}

func TestCaptureWithoutASoundCaseWritesNoFolder(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "out")
	require.NoError(t, os.Mkdir(old, 0o755))
	require.NoError(t, writeFile(filepath.Join(old, "engine.json"), []byte(`{"name":"old"}`)))
	a := &app{overwrite: true, json: true}
	text, err := captureWith(t, spoiled{seeded(t), func(_ *reference.Captured, rows [][]float64) error {
		rows[0][0] = math.Inf(1)
		return nil
	}}, a, old)
	require.ErrorContains(t, err, "3 of 3 cases not written")
	var res captureResult
	require.NoError(t, json.Unmarshal([]byte(text), &res))
	require.Equal(t, 3, res.Failed)
	require.Zero(t, res.Written)
	require.Contains(t, res.Cases[2].Failed, "capture: row 0")
	require.Equal(t, []string{"engine.json"}, names(t, old))
	require.Equal(t, []string{"out"}, names(t, dir))
}

// After Ctrl-C there is no folder, no temporary one either, and what was to be
// replaced is as it was.
func TestInterruptedCaptureLeavesNothing(t *testing.T) {
	for _, overwrite := range []bool{false, true} {
		dir := t.TempDir()
		out, want := filepath.Join(dir, "out"), []string(nil)
		if overwrite {
			require.NoError(t, os.Mkdir(out, 0o755))
			require.NoError(t, writeFile(filepath.Join(out, "engine.json"), []byte(`{"name":"old"}`)))
			want = []string{"engine.json"}
		}
		done := 0
		text, err := captureWith(t, spoiled{seeded(t), func(*reference.Captured, [][]float64) error {
			if done++; done == 3 {
				require.Len(t, names(t, dir), 1+len(want), "the temporary folder is there")
				return context.Canceled
			}
			return nil
		}}, &app{overwrite: overwrite}, out)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "capture: nothing written")
		require.Equal(t, exitBroken, exitCode(err))
		require.Empty(t, text)
		require.Equal(t, want, names(t, out))
		require.Len(t, names(t, dir), len(want))
	}
}

// What appears in the folder while the work goes on isn't lost.
func TestCaptureLeavesWhatAppearedMeanwhile(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	_, err := captureWith(t, spoiled{seeded(t), func(c *reference.Captured, _ [][]float64) error {
		if c.Index != 2 {
			return nil
		}
		return errors.Join(os.Mkdir(out, 0o755), writeFile(filepath.Join(out, "mine"), nil))
	}}, &app{}, out)
	require.ErrorIs(t, err, fs.ErrExist)
	require.Equal(t, []string{"mine"}, names(t, out))
	require.Equal(t, []string{"out"}, names(t, dir))
}

// Through a link the folder behind it is replaced, and the link stays.
func TestCaptureFollowsALink(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "real"), 0o755))
	link := filepath.Join(dir, "link")
	if err := os.Symlink("real", link); err != nil {
		t.Logf("no symbolic links here: %v", err)
		return
	}
	_, err := captureWith(t, seeded(t), &app{}, link)
	require.NoError(t, err)
	require.Equal(t, []string{"link", "real"}, names(t, dir))
	require.Contains(t, names(t, filepath.Join(dir, "real")), "a.layers.bin")
}

// A decode that breaks ends the run: a case with half its files is none.
func TestCaptureEndsWhenTheDecodeBreaks(t *testing.T) {
	dir := t.TempDir()
	_, err := captureWith(t, brokenDecode{seeded(t)}, &app{}, filepath.Join(dir, "out"))
	require.ErrorContains(t, err, "nothing written: a: out of heads")
	require.Empty(t, names(t, dir))
}

type brokenDecode struct{ *reference.Engine }

func (brokenDecode) Decode(context.Context, []int, engine.DecodeOptions) (engine.Decoded, error) {
	return engine.Decoded{}, errors.New("out of heads")
}

func TestPromptNames(t *testing.T) {
	for name, ok := range map[string]bool{
		"a": true, "a.b": true, "été": true, "a b": true, strings.Repeat("n", maxName): true,
		"": false, ".a": false, "..": false, "a/b": false, `a\b`: false, "a\x00": false, "engine": false,
		strings.Repeat("n", maxName+1): false,
	} {
		quoted, err := json.Marshal(name)
		require.NoError(t, err)
		row, err := parsePrompt("p.jsonl", 7, []byte(`{"text":"x","token_ids":[1],"name":`+string(quoted)+`}`))
		if ok {
			require.NoError(t, err)
			require.Equal(t, name, row.name)
			require.NotContains(t, row.file.Extra, "name")
			continue
		}
		require.ErrorContains(t, err, "p.jsonl:7: name: got ")
	}
}

// Whatever a line holds, it is refused or can be written and read back.
func FuzzParsePrompt(f *testing.F) {
	for _, line := range []string{
		`{"name":"a","text":"x","token_ids":[1,2]}`, `{"name":"a","text":"x","token_ids":[1],"stop":[2],"system":null,"k":{}}`,
		`{"name":"é","text":"\ud83d\ude00","token_ids":[2147483647]}`, `{"prompt":"x"}`, `{"name":"a","prompt":"x"}`,
		`{"name":"a","prompt":"\u0000","system":null}`, `{"name":"a","text":""} `, `{"name":"a","prompt":null}`, `[]`, `{"name":"a","name":"b"}`, "\xff", ``,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		row, err := parsePrompt("p", 1, line)
		if err != nil {
			return
		}
		if row.name == "" || strings.ContainsAny(row.name, "/\\") || (len(row.file.TokenIDs) == 0) != row.noIDs || row.file.OutputIDs != nil ||
			row.noText && (row.file.Text != "" || row.file.Prompt == nil) {
			t.Errorf("accepted: %+v", row)
		}
		row.file.Stop = nil
		if err := checkPrompts("p", []promptRow{row}, engine.Arch{Vocab: math.MaxInt32 + 1}, 0); err != nil {
			t.Error(err)
		}
	})
}

func TestCaptureHelp(t *testing.T) {
	t.Setenv(modelEnv, "")
	var out, stderr bytes.Buffer
	require.Equal(t, exitDone, run([]string{"capture", "--help"}, &out, &stderr))
	goldie.New(t, goldie.WithFixtureDir("testdata/golden"), goldie.WithNameSuffix(".txt")).Assert(t, "capture-help", out.Bytes())
}
