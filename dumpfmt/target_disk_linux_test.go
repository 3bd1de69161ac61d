package dumpfmt

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

const diskDir = "PLUMBLINE_TEST_DISK_DIR"

// noMount is the child's exit code where nothing may be mounted.
const noMount = 77

// A child mounts a small file system in a mount namespace of its own, which nobody
// else sees and which goes with it.
func TestTargetOnAFullOrReadOnlyDisk(t *testing.T) {
	if dir := os.Getenv(diskDir); dir != "" {
		fullAndReadOnlyDisk(t, dir)
		return
	}
	self, err := os.Executable()
	require.NoError(t, err)
	child := exec.CommandContext(t.Context(), self, "-test.run=^TestTargetOnAFullOrReadOnlyDisk$", "-test.v")
	child.Env = append(os.Environ(), diskDir+"="+t.TempDir())
	child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if id := os.Getuid(); id != 0 {
		child.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		child.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: id, Size: 1}}
		child.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	out, err := child.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() == noMount, errors.Is(err, syscall.EPERM), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EINVAL):
		t.Skipf("no file system may be mounted here, not even in a namespace: %v %s", err, out)
	}
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "--- PASS: TestTargetOnAFullOrReadOnlyDisk")
}

func fullAndReadOnlyDisk(t *testing.T, dir string) {
	if err := errors.Join(syscall.Mount("", "/", "", syscall.MS_PRIVATE|syscall.MS_REC, ""), syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k")); err != nil {
		t.Log(err)
		os.Exit(noMount)
	}
	path := filepath.Join(dir, "target.bin")
	spec := TargetSpec{Vocab: 5000, Prefixes: make([][32]byte, 40)} // 800 kB
	for _, named := range []bool{false, true} {
		w, err := createTarget(path, spec, WriteOptions{named: named})
		require.NoError(t, err)
		for i := 0; i < len(spec.Prefixes) && err == nil; i++ {
			err = w.WriteRow(i, make([]float32, spec.Vocab))
		}
		if err == nil {
			_, err = w.Commit()
		}
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.ErrorContains(t, err, path)
		wantEmpty(t, dir)
		_, err = w.Commit()
		require.ErrorIs(t, err, syscall.ENOSPC, "it stays broken")
		wantEmpty(t, dir)
	}
	// What is full by then is found when the rest is written.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 64<<10), 0o600))
	for _, named := range []bool{false, true} {
		_, err := writeTarget(path, WriteOptions{named: named})
		require.ErrorIs(t, err, syscall.ENOSPC)
	}
	require.NoError(t, os.Remove(filepath.Join(dir, "filler")))
	wantEmpty(t, dir)
	require.NoError(t, syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	for _, p := range []string{path, filepath.Join(dir, "made", "target.bin")} {
		_, err := writeTarget(p, WriteOptions{})
		require.ErrorIs(t, err, syscall.EROFS)
		require.ErrorContains(t, err, p)
	}
	wantEmpty(t, dir)
}
