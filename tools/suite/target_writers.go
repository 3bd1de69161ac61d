package suite

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/dumpfmt"
)

// writerFaults are writers of target files that are as such writers often are.
var writerFaults = map[string]func(path string, spec dumpfmt.TargetSpec) (conformance.TargetWriter, error){
	"target-overwritten": func(path string, spec dumpfmt.TargetSpec) (conformance.TargetWriter, error) {
		w, err := dumpfmt.CreateTarget(path+".new", spec)
		return renaming{w, path}, err
	},
	"target-emptied": func(path string, spec dumpfmt.TargetSpec) (conformance.TargetWriter, error) {
		_ = os.Truncate(path, 0) // before it looks whether there is one
		return dumpfmt.CreateTarget(path, spec)
	},
	"target-in-place": func(path string, _ dumpfmt.TargetSpec) (conformance.TargetWriter, error) {
		return newPlain(path, path)
	},
	"target-leftovers": func(path string, _ dumpfmt.TargetSpec) (conformance.TargetWriter, error) {
		return newPlain(path+".tmp", path)
	},
	"target-readable": func(path string, spec dumpfmt.TargetSpec) (conformance.TargetWriter, error) {
		w, err := dumpfmt.CreateTarget(path, spec)
		return readable{w, path}, err
	},
}

// renaming puts a whole file in the place of another.
type renaming struct {
	*dumpfmt.TargetWriter
	path string
}

func (w renaming) Commit() (dumpfmt.TargetSum, error) {
	sum, err := w.TargetWriter.Commit()
	if err != nil {
		return sum, err
	}
	return sum, os.Rename(w.path+".new", w.path)
}

// readable lets everybody read what it wrote. Where files have no modes, it can't.
type readable struct {
	*dumpfmt.TargetWriter
	path string
}

func (w readable) Commit() (dumpfmt.TargetSum, error) {
	sum, err := w.TargetWriter.Commit()
	if err != nil {
		return sum, err
	}
	return sum, os.Chmod(w.path, 0o644)
}

// plain writes into a file as it goes. Under its final name from the start, it shows
// half a target, which it takes away if it lives to; under another, it is never taken
// away.
type plain struct {
	f     *os.File
	final string
}

func newPlain(path, final string) (plain, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return plain{}, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	return plain{f, final}, err
}

func (w plain) WriteRow(_ int, row []float32) error {
	return binary.Write(w.f, binary.LittleEndian, row)
}

func (w plain) Commit() (dumpfmt.TargetSum, error) {
	err := w.f.Close()
	if err == nil && w.f.Name() != w.final {
		err = os.Link(w.f.Name(), w.final)
	}
	return dumpfmt.TargetSum{}, err
}

func (w plain) Abort() error {
	if err := w.f.Close(); errors.Is(err, os.ErrClosed) || w.f.Name() != w.final {
		return nil
	}
	return os.Remove(w.final)
}
