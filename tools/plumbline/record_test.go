package main

import (
	"bytes"
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
