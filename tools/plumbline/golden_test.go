package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/sebdah/goldie/v2"
	"github.com/stretchr/testify/require"
)

// TestOutput holds the layout of what people read. The figures in it are
// checked by the packages that compute them.
func TestOutput(t *testing.T) {
	fixtures, err := filepath.Abs("testdata/golden")
	require.NoError(t, err)
	t.Setenv(modelEnv, "")
	t.Chdir(t.TempDir()) // relative paths make the output the same everywhere
	require.NoError(t, writeDumps("ref", "float", []string{"berlin", "paris", "rome"}))
	require.NoError(t, writeDumps("cand", "int8", []string{"berlin", "paris", "rome"}))
	require.NoError(t, writeDumps("twin", "float", []string{"berlin", "paris", "rome"}))
	require.NoError(t, writeFile("cand/rome.layers.bin", []byte("short")))
	require.NoError(t, writeFile("groups.json", []byte(`{"test": ["berlin", "rome"], "control": ["paris"]}`)))

	for _, tt := range []struct {
		golden string
		code   int
		args   []string
	}{
		{"help", exitDone, []string{"--help"}},
		{"bisect-help", exitDone, []string{"bisect", "--help"}},
		{"inspect-help", exitDone, []string{"inspect", "--help"}},
		{"layers-help", exitDone, []string{"layers", "--help"}},
		{"bisect", exitFails, []string{"bisect", "--ref", "ref", "--cand", "cand", "--groups", "groups.json", "--ratio-to", "control", "--ref-repeat", "twin"}},
		{"inspect-folder", exitFails, []string{"inspect", "cand"}},
		{"inspect-file", exitDone, []string{"inspect", "cand/paris.layers.bin"}},
	} {
		t.Run(tt.golden, func(t *testing.T) {
			var out, stderr bytes.Buffer
			require.Equal(t, tt.code, run(tt.args, &out, &stderr), stderr.String())
			goldie.New(t, goldie.WithFixtureDir(fixtures), goldie.WithNameSuffix(".txt")).Assert(t, tt.golden, out.Bytes())
		})
	}
}

func writeFile(path string, data []byte) error { return os.WriteFile(path, data, 0o644) }
