//go:build unix

package engine_test

import (
	"errors"
	"syscall"
)

// processLives reports whether there is a process of this id, a zombie included.
func processLives(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
