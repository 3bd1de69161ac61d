package main

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// terminal is a pseudo-terminal: what is written to tty can be read from the other end.
func terminal(t *testing.T) (other, tty *os.File) {
	t.Helper()
	other, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("this system has no pseudo-terminals: ", err)
	}
	t.Cleanup(func() { _ = other.Close() })
	fd := int(other.Fd())
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("this system has no pseudo-terminals: ", err)
	}
	t.Cleanup(func() { _ = tty.Close() })
	return other, tty
}

func TestColourOnATerminal(t *testing.T) {
	for _, tt := range []struct {
		noColour string
		want     string
	}{{"", "conclusion: \x1b[32mconforms\x1b[0m\r\n"}, {"1", "conclusion: conforms\r\n"}} {
		other, tty := terminal(t)
		t.Setenv("NO_COLOR", tt.noColour)
		t.Setenv("TERM", "xterm")
		require.Equal(t, exitDone, run(exactPair(t, false), tty, os.Stderr))
		b := make([]byte, len(tt.want))
		n, err := other.Read(b)
		require.NoError(t, err)
		require.Equal(t, tt.want, string(b[:n]))
	}
}
