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
	// IgnoreUmask gives the file Perm exactly.
	IgnoreUmask bool

	named bool         // tests: as where a file can't be without a name
	step  func(string) // tests: called with what was just done
}

// File is a file being written in its final folder: without a name where the
// system has such files (Linux, unless overwriting), else under a temporary one that
// starts with a dot. It is not safe for concurrent use. After the first error it is
// aborted.
type File struct {
	path, tmp string // no tmp: it has no name
	overwrite bool
	f         *os.File
	buf       *bufio.Writer
	err       error // what ended it; errFinished after Commit or Abort
	done      bool  // the file has its final name
	step      func(string)
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
	if o.step == nil {
		o.step = func(string) {}
	}
	if o.Perm == 0 {
		o.Perm = 0o666
	}
	w := &File{path: path, overwrite: o.Overwrite, step: o.step}
	if !o.Overwrite && !o.named {
		w.f = openNameless(dir, o.Perm)
	}
	if w.f == nil {
		var random [8]byte
		_, _ = rand.Read(random[:]) // never fails, see crypto/rand
		// The leading dot keeps a folder reader from seeing it; the cut keeps the
		// name within what file systems allow.
		w.tmp = dir + "." + base[:min(len(base), 100)] + ".tmp-" + hex.EncodeToString(random[:])
		var err error
		if w.f, err = os.OpenFile(w.tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, o.Perm); err != nil {
			return nil, fmt.Errorf("dumpfmt: create %s: %w", path, err)
		}
	}
	w.buf = bufio.NewWriterSize(w.f, 256<<10)
	if o.IgnoreUmask {
		if err := w.f.Chmod(o.Perm); err != nil {
			return nil, w.fail("set the mode of", err)
		}
	}
	w.step("create")
	return w, nil
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
	f.step("write")
	if err := f.f.Sync(); err != nil {
		return f.fail("sync", err)
	}
	f.step("sync")
	if f.tmp == "" {
		if err := linkNameless(f.f, f.path); err != nil {
			return f.fail("link", err)
		}
		f.err, f.done = errFinished, true
		f.step("link")
		_ = f.f.Close() // it is synced, and has its name
	} else if err := f.rename(); err != nil {
		return err
	}
	f.step("name")
	if err := syncDir(filepath.Dir(f.path)); err != nil {
		return f.wrap("sync folder", err)
	}
	f.step("sync folder")
	return nil
}

// rename gives the file its final name in place of the temporary one.
func (f *File) rename() error {
	if err := f.f.Close(); err != nil {
		return f.fail("close", err)
	}
	f.step("close")
	if f.overwrite {
		if err := os.Rename(f.tmp, f.path); err != nil {
			return f.fail("rename", err)
		}
		f.err, f.done = errFinished, true
		return nil
	}
	// link(2) fails on an existing name, whatever appeared meanwhile.
	if err := os.Link(f.tmp, f.path); err != nil {
		return f.fail("link", err)
	}
	f.err, f.done = errFinished, true
	f.step("link")
	if err := os.Remove(f.tmp); err != nil {
		return f.wrap("remove temporary file", err)
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
	if f.tmp == "" {
		return nil // it is gone
	}
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
