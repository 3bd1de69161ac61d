package dumpfmt

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWriteFileNeverOverwritesUnasked(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a", "b", "x")
	require.NoError(t, WriteFile(path, []byte("old"), WriteOptions{}))
	err := WriteFile(path, []byte("new"), WriteOptions{})
	require.ErrorIs(t, err, fs.ErrExist)
	require.Contains(t, err.Error(), path)
	wantFile(t, path, []byte("old"))
	require.NoError(t, WriteFile(path, []byte("new"), WriteOptions{Overwrite: true}))
	wantFile(t, path, []byte("new"))
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1, "no temporary file is left")
}

// A file that appears between Create and Commit is kept.
func TestCommitDoesNotOverwriteWhatAppeared(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	f, err := Create(path, WriteOptions{})
	require.NoError(t, err)
	_, err = f.Write([]byte("ours"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte("theirs"), 0o666))
	require.ErrorIs(t, f.Commit(), fs.ErrExist)
	wantFile(t, path, []byte("theirs"))
	require.NoError(t, os.Remove(path))
	wantEmpty(t, dir)
	require.ErrorIs(t, f.Commit(), fs.ErrExist, "a second Commit repeats the error")
	_, err = f.Write([]byte("more"))
	require.ErrorIs(t, err, fs.ErrExist)
	require.NoError(t, f.Abort())
}

// Where a file without a name can't be given one, a copy is.
func TestCommitWhereNothingCanBeNamedLater(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	refuse := func(*os.File, string) error { return syscall.EPERM }
	o := WriteOptions{Perm: 0o640, IgnoreUmask: true, link: refuse}
	data := strings.Repeat("0123456789", 1<<16)
	require.NoError(t, WriteFile(path, []byte(data), o))
	wantFile(t, path, []byte(data))
	st, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o640), st.Mode())
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)

	// It is no way around what appeared meanwhile, nor is what doesn't work left.
	require.NoError(t, os.Remove(path))
	o.step = func(step string) {
		if step == "sync" {
			require.NoError(t, os.WriteFile(path, []byte("theirs"), 0o666))
		}
	}
	require.ErrorIs(t, WriteFile(path, []byte("ours"), o), fs.ErrExist)
	wantFile(t, path, []byte("theirs"))
	require.NoError(t, os.Remove(path))
	wantEmpty(t, dir)
	gone := filepath.Join(dir, "gone")
	f, err := Create(filepath.Join(gone, "x"), WriteOptions{link: refuse})
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(gone))
	require.Error(t, f.Commit())
	wantEmpty(t, dir)
}

func TestDanglingLinkCountsAsExisting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	require.NoError(t, os.Symlink("nowhere", path))
	require.ErrorIs(t, WriteFile(path, nil, WriteOptions{}), fs.ErrExist)
}

func TestFailedCommitLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	require.NoError(t, os.MkdirAll(filepath.Join(path, "full"), 0o777)) // can't be renamed over
	f, err := Create(path, WriteOptions{Overwrite: true})
	require.NoError(t, err)
	require.Error(t, f.Commit())
	require.NoError(t, os.RemoveAll(path))
	wantEmpty(t, dir)
}

func TestFailedWriteLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	f, err := Create(filepath.Join(dir, "x"), WriteOptions{})
	require.NoError(t, err)
	require.NoError(t, f.f.Close()) // as if the disk were gone
	_, err = f.Write(make([]byte, 1<<20))
	require.ErrorIs(t, err, os.ErrClosed)
	wantEmpty(t, dir)
}

func TestUnfinishedFileIsInvisible(t *testing.T) {
	dir := t.TempDir()
	f, err := Create(filepath.Join(dir, strings.Repeat("n", 200)), WriteOptions{named: true})
	require.NoError(t, err)
	_, err = f.Write(make([]byte, 1<<20))
	require.NoError(t, err)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.True(t, strings.HasPrefix(entries[0].Name(), "."))
	require.NoError(t, f.Abort())
	require.NoError(t, f.Abort())
	wantEmpty(t, dir)
	require.Error(t, f.Commit(), "nothing can be committed after Abort")
	wantEmpty(t, dir)
}

func TestCreateBelowAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	require.NoError(t, os.WriteFile(path, nil, 0o666))
	_, err := Create(filepath.Join(path, "y"), WriteOptions{})
	require.Error(t, err)
	require.False(t, errors.Is(err, fs.ErrExist))
}

func TestPermissions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	require.NoError(t, WriteFile(path, nil, WriteOptions{Perm: 0o600}))
	st, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), st.Mode().Perm())
}

// A folder that can be written but not read can't be synced: the name is taken back.
func TestNameThatMayNotLastIsTakenBack(t *testing.T) {
	for _, named := range []bool{false, true} {
		dir := t.TempDir()
		path := filepath.Join(dir, "x")
		o := WriteOptions{named: named, sync: func(string) error {
			_, err := os.Stat(path)
			require.NoError(t, err, "it has its name by then")
			return syscall.EACCES
		}}
		require.ErrorIs(t, WriteFile(path, []byte("ours"), o), syscall.EACCES)
		wantEmpty(t, dir)
		_, err := writeTarget(path, o)
		require.ErrorIs(t, err, syscall.EACCES)
		wantEmpty(t, dir)
		require.ErrorIs(t, writeBoth(path, o, func(string) {}), syscall.EACCES)
		wantEmpty(t, dir)

		o.Overwrite = true
		require.NoError(t, os.WriteFile(path, []byte("old"), 0o666))
		require.ErrorIs(t, WriteFile(path, []byte("new"), o), syscall.EACCES)
		wantFile(t, path, []byte("new"))
	}
}
