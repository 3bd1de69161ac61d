//go:build unix

package dumpfmt

import (
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// What isn't a file with values is said, without blocking.
func TestRawOfSomethingElse(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	var buf RawBuffer
	for path, want := range map[string]string{dir: "file type: got d---------, want a regular file", pipe: "file type: got p---------, want a regular file"} {
		_, err := OpenRaw(path, 1)
		require.ErrorContains(t, err, want)
		_, err = buf.Read(path, 1)
		var f *FormatError
		require.ErrorAs(t, err, &f)
		require.ErrorContains(t, err, want)
	}
	_, err := buf.Read(filepath.Join(dir, "nothing"), 1)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = OpenRaw(filepath.Join(dir, "nothing"), 1)
	require.ErrorIs(t, err, fs.ErrNotExist)
}
