package dumpfmt

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
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

	named bool                         // tests: as where a file can't be without a name
	step  func(string)                 // tests: called with what was just done
	link  func(*os.File, string) error // tests: names a file that has no name
	sync  func(dir string) error       // tests: makes a name durable
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
	finished  bool  // it is whole and synced, and a named one closed
	done      bool  // the file has its final name
	step      func(string)
	name      func(*os.File, string) error // gives a file without a name one
	durable   func(dir string) error       // makes a new name last
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
	dir, _ := filepath.Split(path)
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
	if o.link == nil {
		o.link = linkNameless
	}
	if o.sync == nil {
		o.sync = syncDir
	}
	w := &File{path: path, overwrite: o.Overwrite, step: o.step, name: o.link, durable: o.sync}
	if !o.Overwrite && !o.named {
		w.f = openNameless(dir, o.Perm)
	}
	if w.f == nil {
		var err error
		if w.f, w.tmp, err = openNamed(path, o.Perm); err != nil {
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

// openNamed makes a file under a temporary name in path's folder.
func openNamed(path string, perm fs.FileMode) (*os.File, string, error) {
	dir, base := filepath.Split(path)
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails, see crypto/rand
	// The leading dot keeps a folder reader from seeing it; the cut keeps the
	// name within what file systems allow.
	tmp := dir + "." + base[:min(len(base), 100)] + ".tmp-" + hex.EncodeToString(random[:])
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	return f, tmp, err
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
	if f.finished {
		return 0, f.wrap("write", errors.New("already finished"))
	}
	n, err := f.buf.Write(p)
	if err != nil {
		return n, f.fail("write", err)
	}
	return n, nil
}

// Commit syncs the file and gives it its final name. On an error there is no
// file under that name that wasn't there before; one that was, and may be
// overwritten, can have been replaced.
func (f *File) Commit() error {
	if err := f.finish(); err != nil {
		return err
	}
	return f.publish()
}

// publish gives a finished file its name, and takes it back if that may not last.
func (f *File) publish() error {
	err := f.link()
	if err == nil {
		err = f.syncFolder()
	}
	if err != nil && f.done && !f.overwrite { // what was overwritten is gone anyway
		if err2 := os.Remove(f.path); err2 != nil {
			return errors.Join(err, err2)
		}
	}
	return err
}

// finish makes the file whole and syncs it; link is what is left to do.
func (f *File) finish() error {
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
	if f.tmp != "" {
		if err := f.f.Close(); err != nil {
			return f.fail("close", err)
		}
		f.step("close")
	}
	f.finished = true
	return nil
}

// link gives a finished file its final name.
func (f *File) link() error {
	if f.err != nil {
		return f.wrap("commit", f.err)
	}
	if f.tmp == "" {
		err := f.name(f.f, f.path)
		if err == nil {
			f.err, f.done = errFinished, true
			f.step("link")
			_ = f.f.Close() // it is synced, and has its name
			f.step("name")
			return nil
		}
		if errors.Is(err, fs.ErrExist) {
			return f.fail("link", err)
		}
		// Some file systems and sandboxes have such files, but no way to name them.
		if err2 := f.copyNamed(); err2 != nil {
			return f.fail("link", fmt.Errorf("%w; and as a copy: %w", err, err2))
		}
	}
	if err := f.rename(); err != nil {
		return err
	}
	f.step("name")
	return nil
}

// copyNamed goes on with a copy that has a temporary name.
func (f *File) copyNamed() error {
	st, err := f.f.Stat()
	if err != nil {
		return err
	}
	to, tmp, err := openNamed(f.path, st.Mode().Perm())
	if err != nil {
		return err
	}
	from := f.f
	defer func() { _ = from.Close() }()
	f.f, f.tmp = to, tmp // Abort removes it
	if err := to.Chmod(st.Mode().Perm()); err != nil {
		return err
	}
	if _, err := io.Copy(to, io.NewSectionReader(from, 0, st.Size())); err != nil {
		return err
	}
	if err := to.Sync(); err != nil {
		return err
	}
	return to.Close()
}

// rename gives the file its final name in place of the temporary one.
func (f *File) rename() error {
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

// syncFolder makes the final name durable.
func (f *File) syncFolder() error {
	if err := f.durable(filepath.Dir(f.path)); err != nil {
		return f.wrap("sync folder", err)
	}
	f.step("sync folder")
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
