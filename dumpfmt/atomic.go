package dumpfmt

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// WriteOptions says how a file is created. The zero value never overwrites.
type WriteOptions struct {
	// Overwrite allows an existing file to be replaced.
	Overwrite bool
	// Perm is the file's mode before the umask; 0 means 0666.
	Perm fs.FileMode
}

// File is a file being written under a temporary name in its final folder. It
// is not safe for concurrent use. After the first error it is aborted.
type File struct {
	path, tmp string
	overwrite bool
	f         *os.File
	buf       *bufio.Writer
	err       error // what ended it; errFinished after Commit or Abort
	done      bool  // the file has its final name
}

var errFinished = errors.New("already committed or aborted")

// Create starts a file, and makes its parent folders. If path exists and
// overwriting isn't allowed, the error satisfies errors.Is(err, fs.ErrExist);
// that is checked again by Commit, so that nothing appears in between.
func Create(path string, o WriteOptions) (*File, error) {
	if !o.Overwrite {
		if _, err := os.Lstat(path); err == nil {
			return nil, fmt.Errorf("dumpfmt: %w", &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist})
		}
	}
	dir, base := filepath.Split(path)
	if dir != "" {
		if err := os.MkdirAll(filepath.Clean(dir), 0o777); err != nil {
			return nil, fmt.Errorf("dumpfmt: create %s: %w", path, err)
		}
	}
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails, see crypto/rand
	// The leading dot keeps a folder reader from seeing it; the cut keeps the
	// name within what file systems allow.
	tmp := dir + "." + base[:min(len(base), 100)] + ".tmp-" + hex.EncodeToString(random[:])
	perm := o.Perm
	if perm == 0 {
		perm = 0o666
	}
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return nil, fmt.Errorf("dumpfmt: create %s: %w", path, err)
	}
	return &File{path: path, tmp: tmp, overwrite: o.Overwrite, f: f, buf: bufio.NewWriterSize(f, 256<<10)}, nil
}

// WriteFile writes data to path in one go.
func WriteFile(path string, data []byte, o WriteOptions) error {
	f, err := Create(path, o)
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.Commit()
}

// Name returns the final name.
func (f *File) Name() string { return f.path }

// Write appends p.
func (f *File) Write(p []byte) (int, error) {
	if f.err != nil {
		return 0, f.wrap("write", f.err)
	}
	n, err := f.buf.Write(p)
	if err != nil {
		return n, f.fail("write", err)
	}
	return n, nil
}

// Commit syncs the file and gives it its final name. On an error there is no
// file under that name that wasn't there before.
func (f *File) Commit() error {
	if f.err != nil {
		return f.wrap("commit", f.err)
	}
	if err := f.buf.Flush(); err != nil {
		return f.fail("write", err)
	}
	if err := f.f.Sync(); err != nil {
		return f.fail("sync", err)
	}
	if err := f.f.Close(); err != nil {
		return f.fail("close", err)
	}
	if f.overwrite {
		if err := os.Rename(f.tmp, f.path); err != nil {
			return f.fail("rename", err)
		}
	} else {
		// link(2) fails on an existing name, whatever appeared meanwhile.
		if err := os.Link(f.tmp, f.path); err != nil {
			return f.fail("link", err)
		}
		if err := os.Remove(f.tmp); err != nil {
			f.err, f.done = errFinished, true
			return f.wrap("remove temporary file", err)
		}
	}
	f.err, f.done = errFinished, true
	if err := syncDir(filepath.Dir(f.path)); err != nil {
		return f.wrap("sync folder", err)
	}
	return nil
}

// Abort removes what was written. After Commit, or a second time, it does
// nothing.
func (f *File) Abort() error {
	if f.err != nil {
		return nil
	}
	f.err = errFinished
	_ = f.f.Close()
	if err := os.Remove(f.tmp); err != nil {
		return f.wrap("abort", err)
	}
	return nil
}

// fail ends the file and removes the temporary one.
func (f *File) fail(op string, err error) error {
	_ = f.Abort()
	f.err = err
	return f.wrap(op, err)
}

func (f *File) wrap(op string, err error) error {
	return fmt.Errorf("dumpfmt: %s %s: %w", op, f.path, err)
}

// syncDir makes a new name durable. File systems that can't sync a folder
// don't need it.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}
