package suite

import (
	"encoding/binary"
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
	"target-half-left": func(path string, _ dumpfmt.TargetSpec) (conformance.TargetWriter, error) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, err
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		return inPlace{f}, err
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

// inPlace writes under the final name from the start.
type inPlace struct{ f *os.File }

func (w inPlace) WriteRow(_ int, row []float32) error {
	return binary.Write(w.f, binary.LittleEndian, row)
}

func (w inPlace) Commit() (dumpfmt.TargetSum, error) { return dumpfmt.TargetSum{}, w.f.Close() }

func (w inPlace) Abort() error { return w.f.Close() }
