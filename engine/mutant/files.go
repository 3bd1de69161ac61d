package mutant

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"testing/fstest"
)

// FlipBit returns a copy of a folder in which one bit of one file is another.
func FlipBit(fsys fs.FS, name string, bit int) (fs.FS, error) {
	out, err := copyOf(fsys)
	if err != nil {
		return nil, err
	}
	f, ok := out[name]
	if !ok || bit < 0 || bit >= 8*len(f.Data) {
		return nil, fmt.Errorf("mutant: flip bit %d of %s: got no such bit", bit, name)
	}
	f.Data[bit/8] ^= 1 << (bit % 8)
	return out, nil
}

// WithoutFile returns a copy of a folder in which one file is gone.
func WithoutFile(fsys fs.FS, name string) (fs.FS, error) {
	out, err := copyOf(fsys)
	if err != nil {
		return nil, err
	}
	if _, ok := out[name]; !ok {
		return nil, fmt.Errorf("mutant: remove %s: got no such file", name)
	}
	delete(out, name)
	return out, nil
}

// WithFile returns a copy of a folder that has one file more.
func WithFile(fsys fs.FS, name string, data []byte) (fs.FS, error) {
	out, err := copyOf(fsys)
	if err != nil {
		return nil, err
	}
	if _, ok := out[name]; ok {
		return nil, fmt.Errorf("mutant: add %s: got a file of that name", path.Clean(name))
	}
	out[name] = &fstest.MapFile{Data: bytes.Clone(data)}
	return out, nil
}

func copyOf(fsys fs.FS) (fstest.MapFS, error) {
	out := fstest.MapFS{}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(fsys, name)
		out[name] = &fstest.MapFile{Data: bytes.Clone(data)}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("mutant: %w", err)
	}
	return out, nil
}
