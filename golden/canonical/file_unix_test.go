//go:build unix

package canonical

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Opening a pipe that nobody writes to would wait for ever.
func TestOnlyRegularFilesAreOpened(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for path, want := range map[string]string{dir: "d---------", pipe: "p---------"} {
		_, err := ReadFile(path, 1<<20)
		require.EqualError(t, err, "canonical: "+path+": file type: got "+want+", want a regular file")
	}
}
