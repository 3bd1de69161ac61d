package dumpfmt

import (
	"io/fs"
	"os"
	"strconv"
	"syscall"
	"unsafe"
)

const (
	openTmpfile   = 0x400000 | syscall.O_DIRECTORY // O_TMPFILE
	atWorkingDir  = -100                           // AT_FDCWD
	atFollowLinks = 0x400                          // AT_SYMLINK_FOLLOW
)

// openNameless opens a new file in dir that has no name, so that it is gone with
// the process, however that ends. It returns nil where the file system has no such
// files, or where it could not be named later. It can be read, so that a copy can be
// named where it can't be after all.
func openNameless(dir string, perm fs.FileMode) *os.File {
	if dir == "" {
		dir = "."
	}
	fd, err := retry(func() (int, error) {
		return syscall.Open(dir, syscall.O_RDWR|syscall.O_CLOEXEC|openTmpfile, uint32(perm.Perm()))
	})
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), dir)
	if _, err := os.Stat(procName(f)); err != nil { // no /proc
		_ = f.Close()
		return nil
	}
	return f
}

// linkNameless names it; like link(2) it fails on an existing name.
func linkNameless(f *os.File, path string) error {
	from, err := syscall.BytePtrFromString(procName(f))
	if err != nil {
		return err
	}
	to, err := syscall.BytePtrFromString(path)
	if err != nil {
		return err
	}
	at := atWorkingDir
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_LINKAT, uintptr(at), uintptr(unsafe.Pointer(from)),
			uintptr(at), uintptr(unsafe.Pointer(to)), atFollowLinks, 0)
		switch errno {
		case 0:
			return nil
		case syscall.EINTR:
		default:
			return errno
		}
	}
}

func procName(f *os.File) string {
	return "/proc/self/fd/" + strconv.FormatUint(uint64(f.Fd()), 10)
}
