//go:build unix

package dumpfmt

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// readWhole fills memory() from a regular file of exactly size bytes. Four system
// calls: the same through package os is seven, which is what a folder of small
// files spends its time on. Opening doesn't block on a pipe.
func readWhole(path string, size int64, memory func() []byte) error {
	failed := func(op string, err error) error {
		return fmt.Errorf("dumpfmt: %s: %w", formatRaw, &fs.PathError{Op: op, Path: path, Err: err})
	}
	fd, err := retry(func() (int, error) {
		return syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	})
	if err != nil {
		return failed("open", err)
	}
	defer func() { _ = syscall.Close(fd) }() // nothing was written
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		return failed("stat", err)
	}
	if st.Mode&syscall.S_IFMT != syscall.S_IFREG {
		info, err := os.Stat(path)
		if err != nil {
			return failed("stat", err)
		}
		return notRegular(path, formatRaw, info.Mode())
	}
	if st.Size != size {
		return &SizeError{File: path, Want: size, Got: st.Size}
	}
	p := memory()
	for done := 0; done < len(p); {
		n, err := retry(func() (int, error) { return syscall.Read(fd, p[done:]) })
		if err != nil {
			return failed("read", err)
		}
		if n == 0 { // it shrank since its size was taken
			return &SizeError{File: path, Want: size, Got: int64(done)}
		}
		done += n
	}
	return nil
}

func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != syscall.EINTR {
			return n, err
		}
	}
}
