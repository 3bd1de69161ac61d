//go:build unix

package dumpfmt

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// The environment of a child: where it writes, the step after which it is killed, and
// whether its file has a temporary name.
const (
	crashPath  = "PLUMBLINE_TEST_CRASH_PATH"
	crashStep  = "PLUMBLINE_TEST_CRASH_STEP"
	crashNamed = "PLUMBLINE_TEST_CRASH_NAMED"
)

// A writer that is killed (kill -9) after any of its steps leaves the whole file or
// none under the final name, and the next run isn't hindered. Where files need no name
// it leaves nothing else; where they do, only hidden ones.
func TestKilledBetweenAnyTwoSteps(t *testing.T) {
	if path := os.Getenv(crashPath); path != "" {
		_, _ = writeTarget(path, WriteOptions{named: os.Getenv(crashNamed) != "", step: func(step string) {
			if step == os.Getenv(crashStep) {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		}})
		t.Fatal("not killed")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	good := unhex(t, targetHex)
	for _, named := range []string{"", "1"} {
		var steps []string
		_, err := writeTarget(filepath.Join(t.TempDir(), "target.bin"), WriteOptions{named: named != "", step: func(s string) { steps = append(steps, s) }})
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(steps), 8, steps)
		nameless := named == "" && !slices.Contains(steps, "close")
		for i, step := range steps {
			t.Run("named="+named+"/"+step, func(t *testing.T) {
				dir := t.TempDir()
				path := filepath.Join(dir, "target.bin")
				child := exec.CommandContext(t.Context(), self, "-test.run=^TestKilledBetweenAnyTwoSteps$")
				child.Env = append(os.Environ(), crashPath+"="+path, crashStep+"="+step, crashNamed+"="+named)
				out, err := child.CombinedOutput()
				require.Error(t, err)
				status, ok := child.ProcessState.Sys().(syscall.WaitStatus)
				require.True(t, ok && status.Signaled() && status.Signal() == syscall.SIGKILL, "%v: %s", err, out)

				linked := i >= slices.Index(steps, "link")
				entries, err := os.ReadDir(dir)
				require.NoError(t, err)
				for _, e := range entries {
					switch {
					case e.Name() == "target.bin":
						require.True(t, linked, "after %s it must not be there", step)
					case nameless:
						t.Errorf("%s is left", e.Name())
					default:
						require.True(t, strings.HasPrefix(e.Name(), ".target.bin.tmp-"), e.Name())
					}
				}
				if linked {
					wantFile(t, path, good)
					st, err := os.Stat(path)
					require.NoError(t, err)
					require.Equal(t, fs.FileMode(0o600), st.Mode())
					_, err = writeTarget(path, WriteOptions{named: named != ""})
					require.ErrorIs(t, err, fs.ErrExist)
					return
				}
				_, err = writeTarget(path, WriteOptions{named: named != ""})
				require.NoError(t, err)
				wantFile(t, path, good)
			})
		}
	}
}

// Of two files that belong together a killed writer leaves both, neither, or the first,
// each of them whole; the first alone only right after it got its name.
func TestKilledBetweenTwoFiles(t *testing.T) {
	if path := os.Getenv(crashPath); path != "" {
		_ = writeBoth(path, WriteOptions{named: os.Getenv(crashNamed) != ""}, func(step string) {
			if step == os.Getenv(crashStep) {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		})
		t.Fatal("not killed")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	for _, named := range []string{"", "1"} {
		var steps []string
		require.NoError(t, writeBoth(filepath.Join(t.TempDir(), "target.bin"), WriteOptions{named: named != ""}, func(s string) { steps = append(steps, s) }))
		first, second := slices.Index(steps, "target: link"), slices.Index(steps, "beside: link")
		require.Less(t, slices.Index(steps, "beside: sync"), first, steps)
		require.LessOrEqual(t, second-first, 2, "back to back: %s", steps)
		nameless := named == "" && !slices.Contains(steps, "target: close")
		for i, step := range steps {
			if !strings.HasPrefix(step, "beside: ") && i < first {
				continue // as of one file
			}
			t.Run("named="+named+"/"+step, func(t *testing.T) {
				dir := t.TempDir()
				path := filepath.Join(dir, "target.bin")
				child := exec.CommandContext(t.Context(), self, "-test.run=^TestKilledBetweenTwoFiles$")
				child.Env = append(os.Environ(), crashPath+"="+path, crashStep+"="+step, crashNamed+"="+named)
				out, err := child.CombinedOutput()
				require.Error(t, err)
				status, ok := child.ProcessState.Sys().(syscall.WaitStatus)
				require.True(t, ok && status.Signaled() && status.Signal() == syscall.SIGKILL, "%v: %s", err, out)

				want := map[string]string{}
				if i >= first {
					want["target.bin"] = string(unhex(t, targetHex))
				}
				if i >= second {
					want["target.bin.json"] = targetSHA256
				}
				got := map[string]string{}
				entries, err := os.ReadDir(dir)
				require.NoError(t, err)
				for _, e := range entries {
					if !nameless && strings.Contains(e.Name(), ".tmp-") && e.Name()[0] == '.' {
						continue
					}
					data, err := os.ReadFile(filepath.Join(dir, e.Name()))
					require.NoError(t, err)
					got[e.Name()] = string(data)
				}
				require.Equal(t, want, got)
			})
		}
	}
}

// Mode 0600 is neither widened nor narrowed by a umask.
func TestTargetModeWhateverTheUmask(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	for _, mask := range []int{0, 0o022, 0o077, 0o777} {
		for _, named := range []bool{false, true} {
			dir := t.TempDir()
			syscall.Umask(mask)
			_, err := writeTarget(filepath.Join(dir, "target.bin"), WriteOptions{named: named})
			syscall.Umask(0)
			require.NoError(t, err)
			st, err := os.Stat(filepath.Join(dir, "target.bin"))
			require.NoError(t, err)
			require.Equal(t, fs.FileMode(0o600), st.Mode(), "umask %04o, named %t", mask, named)
		}
	}
}

func TestTargetInAReadOnlyFolder(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root writes into any folder; TestTargetOnAFullOrReadOnlyDisk covers it")
	}
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o555))
	_, err := writeTarget(filepath.Join(dir, "target.bin"), WriteOptions{})
	require.ErrorIs(t, err, fs.ErrPermission)
	_, err = writeTarget(filepath.Join(dir, "made", "target.bin"), WriteOptions{})
	require.ErrorIs(t, err, fs.ErrPermission)
	wantEmpty(t, dir)
}
