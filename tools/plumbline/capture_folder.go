package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// newFolder is a folder that appears as a whole: it is built under a temporary
// name beside its final one, and renamed.
type newFolder struct {
	final, temp string
	old         string // where a folder that is replaced goes meanwhile
	overwrite   bool
}

// startFolder finds out whether path may be written, before the work, and makes
// the temporary folder. A folder that isn't empty is replaced only where
// overwriting is allowed, and only if it is a dump folder and nothing else.
func startFolder(path string, overwrite bool) (*newFolder, error) {
	final, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	// A link stays a link: what it points to is replaced.
	if target, err := filepath.EvalSymlinks(final); err == nil {
		final = target
	}
	if err := replaceable(final, overwrite); err != nil {
		return nil, err
	}
	dir, base := filepath.Split(final)
	if base == "" {
		return nil, fmt.Errorf("%s: got the root folder, want a folder to make", path)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	tag := rand.Text()[:12]
	f := &newFolder{
		final: final, overwrite: overwrite,
		temp: filepath.Join(dir, "."+base+".new-"+tag),
		old:  filepath.Join(dir, "."+base+".old-"+tag),
	}
	return f, os.Mkdir(f.temp, 0o777)
}

// replaceable says why the folder can't be written.
func replaceable(dir string, overwrite bool) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0:
		return nil
	case err != nil:
		return err
	case !overwrite:
		return fmt.Errorf("%w with %s: --overwrite replaces it", &fs.PathError{Op: "create", Path: dir, Err: fs.ErrExist}, plural(len(entries), "file"))
	}
	described := false
	for _, e := range entries {
		name := e.Name()
		described = described || name == "engine.json"
		known := false
		for _, suffix := range []string{".json", ".layers.bin", ".logits.bin", ".probes.safetensors"} {
			known = known || strings.HasSuffix(name, suffix)
		}
		if !known || !e.Type().IsRegular() {
			return fmt.Errorf("%s: --overwrite replaces a dump folder only: got %q in it", dir, name)
		}
	}
	if !described {
		return fmt.Errorf("%s: --overwrite replaces a dump folder only: got no engine.json in it", dir)
	}
	return nil
}

// publish gives the folder its final name. On an error, what was there before
// is there again.
func (f *newFolder) publish() error {
	if err := replaceable(f.final, f.overwrite); err != nil { // it may have changed meanwhile
		return err
	}
	err := os.Rename(f.final, f.old)
	replaces := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(f.temp, f.final); err != nil {
		if replaces {
			err = errors.Join(err, os.Rename(f.old, f.final))
		}
		return err
	}
	if replaces {
		return os.RemoveAll(f.old)
	}
	return nil
}

// discard removes what was built. After publish it does nothing.
func (f *newFolder) discard() error { return os.RemoveAll(f.temp) }
