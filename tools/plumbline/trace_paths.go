package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// apartPaths refuses a document within the report's folder, which has to be new when
// it is published, and a folder below the document.
func apartPaths(output, report string) error {
	o, err := resolved(output)
	if err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	r, err := resolved(report)
	if err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	if within(o, r) || within(r, o) {
		return usageErrorf("--output: got %s, with --report %s, want neither within the other", dumpfmt.Printable(output), dumpfmt.Printable(report))
	}
	return nil
}

// resolved is an absolute path, links resolved as far down as it exists.
func resolved(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	rest := ""
	for dir := path; ; dir = filepath.Dir(dir) {
		real, err := filepath.EvalSymlinks(dir)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		if dir == filepath.Dir(dir) {
			return path, nil
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}

// within reports whether a path is dir or lies in it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// spareInputs refuses an --output that --overwrite would put in place of a source or a
// file of the model, whatever name or link leads there.
func (t *tracing) spareInputs() error {
	out, err := os.Stat(t.flags.output)
	if err != nil {
		return nil // new
	}
	for _, x := range []struct{ flag, path string }{{"sources", t.flags.sources}, {"model", t.modelPath()}} {
		root, err := filepath.EvalSymlinks(x.path) // a walk doesn't follow its root
		if err != nil {
			continue
		}
		err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			if st, err := os.Stat(path); err == nil && os.SameFile(st, out) {
				return usageErrorf("--output: got %s, a file of --%s, want another", dumpfmt.Printable(t.flags.output), x.flag)
			}
			return nil
		})
		var usage *usageError
		if errors.As(err, &usage) {
			return err
		} // what can't be read is the business of who reads it
	}
	return nil
}
