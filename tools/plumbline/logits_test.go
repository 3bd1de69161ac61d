package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/fixtures"
	"github.com/plumbline-go/plumbline/golden"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// goldenFolder is what transformers made of the trained checkpoint.
const goldenFolder = "../../golden/qwen2-trained"

// trainedFolder is the trained checkpoint, which has a tokenizer, on disk.
func trainedFolder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "model")
	require.NoError(t, os.CopyFS(dir, fixtures.Model()))
	return dir
}

// recordedCases are the goldens' case files by name.
func recordedCases(t *testing.T) map[string]dumpfmt.CaseFile {
	t.Helper()
	folder, err := dumpfmt.OpenFolder(goldenFolder)
	require.NoError(t, err)
	cases := map[string]dumpfmt.CaseFile{}
	for _, c := range folder.Cases() {
		require.NoError(t, c.Err)
		cases[c.Name] = c.File
	}
	return cases
}

// Each prompt's text becomes the ids, the tokens, the decoded text and, within
// the derived bound, the logits that transformers recorded.
func TestLogitsAreThoseOfTransformers(t *testing.T) {
	slow(t)
	t.Setenv(modelEnv, "")
	model, out := trainedFolder(t), t.TempDir()
	set, err := golden.Trained()
	require.NoError(t, err)
	cases := recordedCases(t)
	require.Len(t, cases, 20)
	text, err := (&app{model: model, dtype: "float32"}).text()
	require.NoError(t, err)
	for name, c := range cases {
		ids, err := text.encode(c.Text)
		require.NoError(t, err)
		assert.Equal(t, c.TokenIDs, ids, name)

		dump := filepath.Join(out, name+".bin")
		var stdout, stderr bytes.Buffer
		require.Equal(t, exitDone, run([]string{"logits", c.Text, "--templated", "--model", model, "--dump-logits", dump, "--quiet",
			"--max-new", fmt.Sprint(set.Manifest.MaxNew), "--stop", commas(c.Stop)}, &stdout, &stderr), stderr.String())
		require.Empty(t, stderr.String())
		reason := 0
		if n := len(c.OutputIDs); n > 0 && strings.Contains(","+commas(c.Stop)+",", fmt.Sprintf(",%d,", c.OutputIDs[n-1])) {
			reason = 1
		}
		want := fmt.Sprintf("prompt_tokens: %d\noutput_ids: %s\nstop_reason: %d\n", len(c.TokenIDs), strings.ReplaceAll(commas(c.OutputIDs), ",", " "), reason)
		got := stdout.String()
		assert.True(t, strings.HasPrefix(got, want), "%s: got\n%swant\n%s", name, got, want)
		assert.True(t, strings.HasSuffix(got, fmt.Sprintf("\nlogit_rows_dumped: %d rows x 2048 vocab -> %s\n---DECODED---\n%s\n", len(c.OutputIDs), dump, *c.Decoded)), "%s: %s", name, got)

		recorded, err := set.Logits(name)
		require.NoError(t, err)
		ours, err := dumpfmt.OpenFloatLogits(dump)
		require.NoError(t, err)
		require.Equal(t, recorded.Header(), ours.Header(), name)
		floors := set.Manifest.Precision.Cases[name].Logits
		require.Len(t, floors, ours.Header().Rows)
		a, b := make([]float64, ours.Header().Vocab), make([]float64, ours.Header().Vocab)
		for i, floor := range floors {
			require.NoError(t, ours.Row64(i, a))
			require.NoError(t, recorded.Row64(i, b))
			bound := 4 * max(floor, math.Exp2(-24)) // both sides stray as far from float64
			got := metric.RelativeL2(a, b)
			assert.True(t, got <= bound, "%s: row %d: relative L2 %.3g, want at most %.3g", name, i, got, bound)
		}
		require.NoError(t, ours.Close())
	}
}

func commas(ids []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(ids), " ", ","), "[]")
}

// toy is a reference that decodes what it is told to.
type toy struct {
	out engine.Decoded
	err error
}

func (toy) Describe() engine.Info { return engine.Info{} }
func (d toy) Decode(context.Context, []int, engine.DecodeOptions) (engine.Decoded, error) {
	return d.out, d.err
}

// Whatever goes wrong, there is no dump and no result.
func TestNoLogitsWhenTheDecodeBreaks(t *testing.T) {
	for _, tt := range []struct {
		name string
		ref  toy
		says string
	}{
		{"sound", toy{out: engine.Decoded{OutputIDs: []int{1, 0}, Logits: [][]float64{{1, 2}, {3, 2}}}}, ""},
		{"interrupted", toy{err: context.Canceled}, "logits: no dump written: context canceled"},
		{"a value that float32 doesn't have", toy{out: engine.Decoded{OutputIDs: []int{1, 0}, Logits: [][]float64{{1, 2}, {3, 1e39}}}},
			"logits: no dump written: row 1: element 1: got 1e+39, want a finite float32"},
		{"NaN", toy{out: engine.Decoded{OutputIDs: []int{1}, Logits: [][]float64{{math.NaN(), 2}}}}, "row 0: element 0: got NaN"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "x.bin")
			var stdout, stderr bytes.Buffer
			a := &app{stdout: &stdout, stderr: &stderr, quiet: true, words: &modelText{err: errors.New("none"), missing: true}}
			err := a.writeDecode(t.Context(), tt.ref, asked{Case: engine.Case{TokenIDs: []int{1}}}, logitsFlags{dump: path, maxNew: 2})
			if tt.says == "" {
				require.NoError(t, err)
				data, err := os.ReadFile(path)
				require.NoError(t, err)
				// u64 rows, u64 vocab, then 1, 2, 3, 2 as float32, worked out by hand.
				require.Equal(t, "\x02\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00"+
					"\x00\x00\x80\x3f\x00\x00\x00\x40\x00\x00\x40\x40\x00\x00\x00\x40", string(data))
				return
			}
			require.ErrorContains(t, err, tt.says)
			require.Equal(t, exitBroken, exitCode(err))
			require.Empty(t, stdout.String())
			require.Empty(t, names(t, dir))
		})
	}
}

// A checkpoint may be finite and its logits not.
func TestLogitsThatOverflowAreRefused(t *testing.T) {
	t.Setenv(modelEnv, "")
	dir := modelFolder(t)
	path := filepath.Join(dir, "model.safetensors")
	weights, err := dumpfmt.OpenSafetensors(path)
	require.NoError(t, err)
	norm, ok := weights.Tensor("model.norm.weight")
	require.True(t, ok)
	require.NoError(t, weights.Close())
	require.Equal(t, dumpfmt.BF16, norm.DType)
	require.NoError(t, os.Chmod(path, 0o644))
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	largest := bytes.Repeat([]byte{0x7F, 0x7F}, int(norm.Bytes)/2) // 3.39e38
	_, err = f.WriteAt(largest, norm.Offset)
	require.NoError(t, err)
	require.NoError(t, f.Close())

	out := t.TempDir()
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitBroken, run([]string{"logits", "--ids", "1,2", "--stop", "1", "--model", dir, "--dump-logits", filepath.Join(out, "x.bin")}, &stdout, &stderr))
	require.Regexp(t, `logits: no dump written: reference: logit row 0: id \d+: got (\+Inf|-Inf|NaN), want a finite value`, stderr.String())
	require.Empty(t, stdout.String())
	require.Empty(t, names(t, out))
}

// Lines with a prompt, or with a text, become the cases that transformers made.
func TestCaptureMakesTheGoldensCases(t *testing.T) {
	slow(t)
	t.Setenv(modelEnv, "")
	cases := recordedCases(t)
	var lines bytes.Buffer
	for name, c := range cases {
		line := map[string]any{"name": name, "stop": c.Stop}
		if c.Prompt != nil {
			line["prompt"], line["system"] = *c.Prompt, c.System // null: the template's own
		} else {
			line["text"] = c.Text
		}
		require.NoError(t, json.NewEncoder(&lines).Encode(line))
	}
	dir := t.TempDir()
	prompts, out := filepath.Join(dir, "p.jsonl"), filepath.Join(dir, "out")
	require.NoError(t, writeFile(prompts, lines.Bytes()))
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitDone, run([]string{"capture", "--model", trainedFolder(t), "--prompts", prompts, "--out", out, "--quiet", "--stop", "2000"}, &stdout, &stderr), stderr.String())
	require.Empty(t, stderr.String())
	folder, err := dumpfmt.OpenFolder(out)
	require.NoError(t, err)
	require.Len(t, folder.Cases(), len(cases))
	for _, c := range folder.Cases() {
		require.NoError(t, c.Check())
		assert.Equal(t, cases[c.Name], c.File, c.Name)
	}
}
