package adapters_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// unittests runs the tests of a folder of Python files that need nothing but
// the standard library.
func unittests(t *testing.T, dir string) {
	t.Helper()
	readSources(t, dir)
	cmd := exec.Command(python(t), "-B", "-m", "unittest", "discover")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Regexp(t, `Ran [1-9]\d* tests`, string(out), "discovery found them")
}

// TestWhatAdaptersShare runs the tests of python/plumbline_adapter.
func TestWhatAdaptersShare(t *testing.T) { unittests(t, "python") }

// readSources reads what a program in dir is made of: the go command's cache
// knows what a test read, not what its children did.
func readSources(t *testing.T, dir string) {
	t.Helper()
	for _, under := range []string{dir, "python"} {
		found := 0
		for _, pattern := range []string{"*.py", "*/*.py"} {
			files, err := filepath.Glob(filepath.Join(under, pattern))
			require.NoError(t, err)
			for _, f := range files {
				_, err := os.ReadFile(f)
				require.NoError(t, err)
			}
			found += len(files)
		}
		require.NotZero(t, found, under)
	}
}

// byteCode lists what Python kept of compiled modules beside their sources.
func byteCode(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"*/__pycache__/*", "*/*/__pycache__/*"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		all = append(all, files...)
	}
	return all
}
