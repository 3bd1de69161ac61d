package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/sebdah/goldie/v2"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/fixtures"
)

// smallInventory is 2 layers, 2 positions, and 3 ops of up to 16 values.
const smallInventory = `{"name": "small", "family": "test",
 "layer_types": {"local": {"heads": 2, "kv_heads": 1, "head_dim": 4}, "global": {"heads": 4, "kv_heads": 1, "head_dim": 4}},
 "layers": 2, "pattern": ["local", "global"],
 "positions": {"first_pos": 10, "steps": [1, 3]},
 "ops": [{"name": "q_normed", "label": "q"}, {"name": "k", "kv": true}, {"name": "sdpa_out", "label": "sdpa"}],
 "file": "{op}/{layer}-{step}.bin"}`

// TestOutput holds the layout of what people read. The figures in it are
// checked by the packages that compute them.
func TestOutput(t *testing.T) {
	golden, err := filepath.Abs("testdata/golden")
	require.NoError(t, err)
	t.Setenv(modelEnv, "")
	t.Chdir(t.TempDir()) // relative paths make the output the same everywhere
	require.NoError(t, writeDumps("ref", "float", []string{"berlin", "paris", "rome"}))
	require.NoError(t, writeDumps("cand", "int8", []string{"berlin", "paris", "rome"}))
	require.NoError(t, writeDumps("twin", "float", []string{"berlin", "paris", "rome"}))
	require.NoError(t, writeFile("cand/rome.layers.bin", []byte("short")))
	require.NoError(t, writeFile("groups.json", []byte(`{"test": ["berlin", "rome"], "control": ["paris"]}`)))

	require.NoError(t, writeFile("small.json", []byte(smallInventory)))
	require.NoError(t, writeTensorFolder("dense", "small.json", 0))
	require.NoError(t, writeTensorFolder("tq", "small.json", 0.5))
	require.NoError(t, os.Remove("tq/k/1-3.bin"))

	for _, tt := range []struct {
		golden string
		code   int
		args   []string
	}{
		{"help", exitDone, []string{"--help"}},
		{"gate-help", exitDone, []string{"gate", "--help"}},
		{"bisect-help", exitDone, []string{"bisect", "--help"}},
		{"diff", exitFails, []string{"diff", "--ref", "dense", "--cand", "tq", "--inventory", "small.json"}},
		{"diff-help", exitDone, []string{"diff", "--help"}},
		{"inspect-help", exitDone, []string{"inspect", "--help"}},
		{"layers-help", exitDone, []string{"layers", "--help"}},
		{"logits-help", exitDone, []string{"logits", "--help"}},
		{"report-help", exitDone, []string{"report", "--help"}},
		{"record-help", exitDone, []string{"record", "--help"}},
		{"selftest-help", exitDone, []string{"selftest", "--help"}},
		{"merge-help", exitDone, []string{"merge", "--help"}},
		{"targets-help", exitDone, []string{"targets", "--help"}},
		{"targets-verify-help", exitDone, []string{"targets", "verify", "--help"}},
		{"trace-help", exitDone, []string{"trace", "--help"}},
		{"trace-recorded-help", exitDone, []string{"trace", "recorded", "--help"}},
		{"bisect", exitFails, []string{"bisect", "--ref", "ref", "--cand", "cand", "--groups", "groups.json", "--ratio-to", "control", "--ref-repeat", "twin"}},
		{"inspect-folder", exitFails, []string{"inspect", "cand"}},
		{"inspect-file", exitDone, []string{"inspect", "cand/paris.layers.bin"}},
	} {
		t.Run(tt.golden, func(t *testing.T) {
			var out, stderr bytes.Buffer
			require.Equal(t, tt.code, run(tt.args, &out, &stderr), stderr.String())
			goldie.New(t, goldie.WithFixtureDir(golden), goldie.WithNameSuffix(".txt")).Assert(t, tt.golden, out.Bytes())
		})
	}
}

// figure is a number with decimals, or how many rows are over a limit: what may
// differ between CPUs.
var figure = regexp.MustCompile(`[0-9]+\.[0-9]+(e[+-][0-9]+)?|[0-9]+ more (?:row|finding)s?`)

// TestVerdictOutput holds the layout of verdicts on an int8 engine's dumps of
// the embedded model, without their figures.
func TestVerdictOutput(t *testing.T) {
	golden, err := filepath.Abs("testdata/golden")
	require.NoError(t, err)
	t.Setenv(modelEnv, "")
	clean, broken := dumpInt8(t, 2, "", 0), dumpInt8(t, 2, "gate-up-swapped", 7)
	t.Chdir(t.TempDir())
	require.NoError(t, os.CopyFS("model", fixtures.SeededModel()))
	require.NoError(t, os.CopyFS("clean", os.DirFS(clean)))
	require.NoError(t, os.CopyFS("broken", os.DirFS(broken)))
	for _, tt := range []struct {
		golden string
		code   int
		args   []string
	}{
		{"gate-partial", exitDone, []string{"gate", "--model", "model", "--candidate", "clean", "--allow-partial"}},
		{"gate-conforms", exitDone, []string{"gate", "--exact", "--golden", "clean", "--candidate", "clean"}},
		{"gate-fails", exitFails, []string{"gate", "--model", "model", "--candidate", "broken"}},
	} {
		t.Run(tt.golden, func(t *testing.T) {
			var out, stderr bytes.Buffer
			require.Equal(t, tt.code, run(append(tt.args, "--quiet"), &out, &stderr), stderr.String())
			goldie.New(t, goldie.WithFixtureDir(golden), goldie.WithNameSuffix(".txt")).
				Assert(t, tt.golden, figure.ReplaceAll(out.Bytes(), []byte("#")))
		})
	}
}

func writeFile(path string, data []byte) error { return os.WriteFile(path, data, 0o644) }
