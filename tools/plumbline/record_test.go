package main

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/golden"
)

// TestRecordTakesBack: a folder that can't get its name leaves no manifest, and a
// manifest that was to be replaced as it was.
func TestRecordTakesBack(t *testing.T) {
	for name, before := range map[string]string{"new": "", "replaced": "the one before\n"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			manifest := filepath.Join(dir, "g.manifest.json")
			a := &app{overwrite: before != ""}
			if before != "" {
				require.NoError(t, os.WriteFile(manifest, []byte(before), 0o666))
			}
			r, err := a.startRecording(filepath.Join(dir, "g"))
			require.NoError(t, err)
			// Somebody makes a folder of another kind there meanwhile.
			require.NoError(t, os.Mkdir(filepath.Join(dir, "g"), 0o777))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "g", "thesis.tex"), nil, 0o666))
			require.ErrorContains(t, r.publish(&golden.Recording{}), "g")
			require.NoError(t, r.discard())
			var left []string
			entries, err := os.ReadDir(dir)
			require.NoError(t, err)
			for _, e := range entries {
				left = append(left, e.Name())
			}
			if before == "" {
				assert.Equal(t, []string{"g"}, left)
				return
			}
			assert.Equal(t, []string{"g", "g.manifest.json"}, left)
			data, err := os.ReadFile(manifest)
			require.NoError(t, err)
			assert.Equal(t, before, string(data))
		})
	}
}

// TestRecordMeasuresTheRecordedSide: how far transformers' rows are from float64 is what
// the recorder of the module's goldens, a forward of its own in numpy, measured.
func TestRecordMeasuresTheRecordedSide(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	cases := []string{"cjk", "emoji", "mutex", "one_token"}
	from, recorded := t.TempDir(), filepath.Join(root, "golden", "qwen2-trained")
	require.NoError(t, copyFile(filepath.Join(recorded, "engine.json"), filepath.Join(from, "engine.json")))
	for _, name := range cases {
		for _, suffix := range []string{".json", ".layers.bin", ".logits.bin"} {
			require.NoError(t, copyFile(filepath.Join(recorded, name+suffix), filepath.Join(from, name+suffix)))
		}
	}
	out := filepath.Join(t.TempDir(), "g")
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitDone, run([]string{"record", "--quiet", "--model", filepath.Join(root, "fixtures", "qwen2-trained"),
		"--from", from, "--out", out}, &stdout, &stderr), stderr.String())
	got, err := golden.OpenFolder(out)
	require.NoError(t, err)
	want, err := golden.Trained()
	require.NoError(t, err)
	require.Equal(t, cases, got.Manifest.Cases)
	for _, name := range cases {
		w := want.LayerFloor(name)
		require.Len(t, got.LayerFloor(name), len(w))
		for i, x := range got.LayerFloor(name) {
			// The two float64 forwards agree to 1e-14, a floor's fourth digit not.
			assert.LessOrEqual(t, math.Abs(x-w[i]), 0.01*w[i], "case %s, row %d: got %g, want %g", name, i, x, w[i])
		}
		assert.Len(t, got.LogitFloor(name), len(want.LogitFloor(name)))
	}
}

// TestRecordOfAGGUF: the file is the checkpoint, whatever lies beside it.
func TestRecordOfAGGUF(t *testing.T) {
	t.Setenv(modelEnv, "")
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, copyFile(tinyGGUF, at("mine.gguf")))
	require.NoError(t, os.WriteFile(at("p.jsonl"), []byte(`{"name":"a","text":"use the user"}`), 0o666))
	do := func(args ...string) (int, string) {
		var out, errs bytes.Buffer
		code := run(append(args, "--quiet"), &out, &errs)
		return code, out.String() + errs.String()
	}
	code, text := do("record", "--model", at("mine.gguf"), "--prompts", at("p.jsonl"), "--out", at("g"), "--stop", "63", "--max-new", "2")
	require.Equal(t, exitDone, code, text)
	require.NoError(t, os.CopyFS(at("cand"), os.DirFS(at("g"))))
	require.NoError(t, os.WriteFile(at("cand/engine.json"), []byte(`{"name":"mine","layers":"f32","logits":"f32"}`), 0o666))
	require.NoError(t, copyFile(tinyGGUF, at("other.gguf")))
	gate := []string{"gate", "--golden", at("g"), "--candidate", at("cand"), "--allow-partial", "--model"}
	code, text = do(append(gate, at("mine.gguf"))...)
	require.Equal(t, exitDone, code, text)
	code, text = do(append(gate, at("other.gguf"))...)
	require.Equal(t, exitBroken, code)
	require.Contains(t, text, "other.gguf: orphan")
	data, err := os.ReadFile(at("mine.gguf"))
	require.NoError(t, err)
	data[len(data)-1] ^= 1
	require.NoError(t, os.WriteFile(at("mine.gguf"), data, 0o666))
	code, text = do(append(gate, at("mine.gguf"))...)
	require.Equal(t, exitBroken, code)
	require.Contains(t, text, "mine.gguf: sha256")
}

// TestRecordInterrupted: a run that is ended leaves nothing.
func TestRecordInterrupted(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	for name, f := range map[string]recordFlags{
		"import": {from: filepath.Join(root, "golden", "qwen2-trained")},
		"record": {capture: captureFlags{maxNew: 2, system: "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, prompts := t.TempDir(), filepath.Join(t.TempDir(), "p.jsonl")
			require.NoError(t, os.WriteFile(prompts, []byte(`{"name":"a","prompt":"hi"}`), 0o666))
			f.capture.out = filepath.Join(dir, "g")
			if f.from == "" {
				f.capture.prompts = prompts
			}
			a := &app{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}, quiet: true, model: filepath.Join(root, "fixtures", "qwen2-trained"), dtype: "float32"}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			require.ErrorIs(t, a.record(ctx, f), context.Canceled)
			entries, err := os.ReadDir(dir)
			require.NoError(t, err)
			assert.Empty(t, entries)
		})
	}
}
