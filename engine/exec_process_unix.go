//go:build unix

package engine

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup puts the program into a process group of its own, so that a signal
// reaches its children too, and a Ctrl-C on the terminal reaches neither.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// The group keeps its id while a member lives, so it can be signalled after the
// program itself is gone. An id that nobody has is not an error worth telling.
func terminateGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// ended returns the exit code, -1 when a signal ended the program, and the
// signal.
func ended(s *os.ProcessState) (code int, signal string) {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return -1, w.Signal().String()
	}
	return s.ExitCode(), ""
}
