package engine

import (
	"fmt"
	"slices"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// probeFile is the probe file of a case as a ProbeSource: a probe is read when
// it is asked for. It is safe for concurrent use.
type probeFile struct {
	d     *dumpfmt.Safetensors
	names []Probe // in name order
}

// newProbeFile takes a file that dumpfmt.Case.OpenProbes found well-formed. A
// name that is a place in no model at all is a *MalformedError. Whether the
// judged model has the others is not known here.
func newProbeFile(d *dumpfmt.Safetensors) (*probeFile, error) {
	f := &probeFile{d: d}
	for _, t := range d.Tensors() {
		if !Probe(t.Name).known() {
			return nil, &MalformedError{File: d.File(), Err: fmt.Errorf("engine: probe file %s: name of a tensor: got %q, want %s",
				dumpfmt.Printable(d.File()), t.Name, probeNames("from 0 on"))}
		}
		f.names = append(f.names, Probe(t.Name))
	}
	slices.Sort(f.names)
	return f, nil
}

func (f *probeFile) Probes() []Probe { return slices.Clone(f.names) }

func (f *probeFile) Shape(p Probe) (positions, width int) {
	t, ok := f.d.Tensor(string(p))
	if !ok {
		return 0, 0
	}
	return t.Shape[0], t.Shape[1]
}

func (f *probeFile) Matrix(p Probe) (Matrix, error) {
	rows, width := f.Shape(p)
	if rows == 0 {
		return Matrix{}, fmt.Errorf("engine: probe file %s: got no probe %q, want one of those it lists", dumpfmt.Printable(f.d.File()), p)
	}
	t, err := f.d.Float32s(string(p))
	if err != nil {
		return Matrix{}, err
	}
	m := Matrix{Rows: rows, Width: width, Data: make([]float32, rows*width)}
	n, err := t.ReadValues(m.Data, 0)
	if err == nil && n != len(m.Data) {
		err = fmt.Errorf("engine: probe file %s: probe %s: got %d values, want %d", dumpfmt.Printable(f.d.File()), p, n, len(m.Data))
	}
	if err != nil {
		return Matrix{}, err
	}
	return m, nil
}

func (f *probeFile) Close() error { return f.d.Close() }
