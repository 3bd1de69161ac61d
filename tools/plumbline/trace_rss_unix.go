//go:build unix

package main

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// maxRSSKiB is the most memory that this process had at once.
func maxRSSKiB() int64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	n := int64(u.Maxrss)
	if runtime.GOOS == "darwin" { // which counts bytes
		n /= 1024
	}
	return n
}
