//go:build unix

package engine_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
)

// openOnce returns a pipe in the file system, and two channels: the first is
// closed when a process has opened it for writing, the second when no process
// holds it any more.
func openOnce(t *testing.T) (path string, opened, gone chan struct{}) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	opened, gone = make(chan struct{}), make(chan struct{})
	go func() {
		f, err := os.Open(path) // waits for a writer
		if err != nil {
			return
		}
		defer f.Close()
		close(opened)
		_, _ = io.Copy(io.Discard, f)
		close(gone)
	}()
	return path, opened, gone
}

func within(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(30 * time.Second):
		t.Fatal("not seen within 30s:", what)
	}
}

// TestExecEndsGrandchildren: what the program started goes with it, even when
// nobody listens to a polite request.
func TestExecEndsGrandchildren(t *testing.T) {
	pipe, opened, gone := openOnce(t)
	line := `sh -c 'trap "" TERM; (trap "" TERM; sleep 3600 > "$1"; sleep 3600) & wait' sh '` + pipe + `' {ids} {dir}`
	e, err := engine.Exec(line, engine.ProgramOptions{Info: float32Side, Grace: 100 * time.Millisecond})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := e.Run(ctx, request("x")); err != context.Canceled {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
	}()
	within(t, "the grandchild runs", opened)
	cancel()
	within(t, "Run returns", done)
	within(t, "the grandchild is gone", gone)
}

func TestExecTimesOutTheWholeGroup(t *testing.T) {
	t.Parallel()
	pipe, opened, gone := openOnce(t)
	line := `sh -c 'sleep 3600 > "$1" & wait' sh '` + pipe + `' {ids} {dir}`
	e, err := engine.Exec(line, engine.ProgramOptions{Info: float32Side, Timeout: 2 * time.Second})
	require.NoError(t, err)
	_, err = e.Run(t.Context(), request("x"))
	var dead *engine.ProcessError
	require.ErrorAs(t, err, &dead)
	require.True(t, dead.TimedOut)
	within(t, "the grandchild ran", opened)
	within(t, "the grandchild is gone", gone)
}

// TestExecDoesntWaitForWhatIsLeftBehind: a child that outlives the program holds
// its output open.
func TestExecDoesntWaitForWhatIsLeftBehind(t *testing.T) {
	e, temp := execFake(t, "child left behind", engine.ProgramOptions{})
	r, err := e.Run(t.Context(), request("x"))
	require.NoError(t, err)
	require.NoError(t, r.Close())
	requireEmpty(t, temp)
}

// TestExecEndsWhatIsLeftBehind: it could write into files that are being read.
func TestExecEndsWhatIsLeftBehind(t *testing.T) {
	pipe, opened, gone := openOnce(t)
	line := `sh -c '(exec 3> "$1"; : > "$1.open"; exec sleep 3600) & until [ -e "$1.open" ]; do :; done; exit 3' sh '` + pipe + `' {ids} {dir}`
	e, err := engine.Exec(line, engine.ProgramOptions{Info: float32Side})
	require.NoError(t, err)
	_, err = e.Run(t.Context(), request("x"))
	var dead *engine.ProcessError
	require.ErrorAs(t, err, &dead)
	require.Equal(t, 3, dead.ExitCode)
	within(t, "the child ran", opened)
	within(t, "the child is gone", gone)
}

func TestExecNamesTheSignal(t *testing.T) {
	e, err := engine.Exec(`sh -c 'echo bye >&2; kill -SEGV $$' {ids} {dir}`, engine.ProgramOptions{Info: float32Side})
	require.NoError(t, err)
	_, err = e.Run(t.Context(), request("x"))
	var dead *engine.ProcessError
	require.ErrorAs(t, err, &dead)
	require.Equal(t, -1, dead.ExitCode)
	require.Equal(t, "segmentation fault", dead.Signal)
	require.Equal(t, "bye\n", dead.Stderr)
	require.ErrorContains(t, err, "ended by the signal: segmentation fault")
}
