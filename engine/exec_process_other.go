//go:build !unix

package engine

import (
	"os"
	"os/exec"
)

// There are no process groups here: only the program itself is ended, at once.
func ownGroup(*exec.Cmd) {}

func terminateGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

func ended(s *os.ProcessState) (code int, signal string) { return s.ExitCode(), "" }
