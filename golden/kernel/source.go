package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// Source is one side of a comparison.
type Source interface {
	// Session returns a reader for one goroutine.
	Session() Session
}

// Session reads tensors, for one goroutine.
type Session interface {
	// Tensor returns a tensor, valid until the next call. A *ProblemError says why
	// there is none; any other error counts as Unreadable.
	Tensor(k Key) (Tensor, error)
	// Close releases what the session holds.
	Close() error
}

// Tensor is one side's tensor: its values, or a reader for one that is too large
// to hold.
type Tensor struct {
	Values []float32
	Reader dumpfmt.Float32Reader
}

// ProblemError says why a side has no tensor to compare.
type ProblemError struct {
	Problem Problem
	// Note is what the CSV says of it.
	Note string
}

func (e *ProblemError) Error() string { return "kernel: " + e.Note }

// Func is a side in memory, as an engine answers: values of the tensor's length,
// or nil where there are none. It must be safe for concurrent use.
type Func func(k Key) []float32

// Of makes it the source of an inventory's tensors.
func (f Func) Of(inv *Inventory) Source { return funcSource{f, inv} }

type funcSource struct {
	f   Func
	inv *Inventory
}

func (s funcSource) Session() Session { return s }
func (s funcSource) Close() error     { return nil }

func (s funcSource) Tensor(k Key) (Tensor, error) {
	v := s.f(k)
	heads, width := s.inv.Shape(k)
	switch {
	case v == nil:
		return Tensor{}, &ProblemError{Missing, "MISSING:" + s.inv.FileOf(k)}
	case len(v) != heads*width:
		return Tensor{}, wrongSize(s.inv.FileOf(k), 4*int64(heads)*int64(width), 4*int64(len(v)))
	}
	return Tensor{Values: v}, nil
}

func wrongSize(path string, want, got int64) *ProblemError {
	return &ProblemError{WrongSize, fmt.Sprintf("SIZE_MISMATCH:%s:expected=%d,got=%d", path, want, got)}
}

// Folder is a folder of dumped tensors, named as the inventory says.
func Folder(dir string, inv *Inventory) Source { return folder{dir, inv} }

type folder struct {
	dir string
	inv *Inventory
}

func (f folder) Session() Session {
	s := &folderSession{folder: f, format: f.inv.format()}
	// As Python joins paths: the folder as it was given.
	if s.prefix = f.dir; f.dir != "" && f.dir[len(f.dir)-1] != filepath.Separator {
		s.prefix += string(filepath.Separator)
	}
	return s
}

// wholeBytes is the largest tensor that is read at once; what is beyond streams.
const wholeBytes = 1 << 20

type folderSession struct {
	folder
	format format
	prefix string
	path   []byte
	small  dumpfmt.RawBuffer
	open   interface{ Close() error } // what the last large tensor streams from
	// archives are open, at most one per op: op is the index that changes fastest,
	// and opening reads a whole table of contents.
	archives [maxArchives]openArchive
}

// maxArchives bounds what a session holds open. Ops beyond it share.
const maxArchives = 16

// openArchive is an archive, or why there is none.
type openArchive struct {
	path string
	file interface{ Close() error }
	err  error
}

func (a *openArchive) close() error {
	defer func() { *a = openArchive{} }()
	if a.file == nil {
		return nil
	}
	return a.file.Close()
}

// archive returns the open archive at path, or opens it in place of the op's last.
func archive[T interface{ Close() error }](s *folderSession, path string, op int, open func(string) (T, error)) (T, error) {
	a := &s.archives[0]
	if s.inv.file.has([]field{fieldOp}) {
		a = &s.archives[op%maxArchives]
	}
	if a.path != path {
		_ = a.close() // it was only read
		a.path = path
		var d T
		if d, a.err = open(path); a.err == nil {
			a.file = d
		}
	}
	d, _ := a.file.(T)
	return d, a.err
}

func (s *folderSession) Close() error {
	var err error
	if s.open != nil {
		err = s.open.Close()
		s.open = nil
	}
	for i := range s.archives {
		err = errors.Join(err, s.archives[i].close())
	}
	return err
}

func (s *folderSession) Tensor(k Key) (Tensor, error) {
	if s.open != nil {
		_ = s.open.Close() // it was only read
		s.open = nil
	}
	s.path = s.inv.file.append(append(s.path[:0], s.prefix...), s.inv, k)
	path := string(s.path)
	heads, width := s.inv.Shape(k)
	count := heads * width
	var t Tensor
	var err error
	switch s.format {
	case formatRaw:
		if 4*count <= wholeBytes {
			t.Values, err = s.small.Read(path, count)
			break
		}
		var d *dumpfmt.Raw
		if d, err = dumpfmt.OpenRaw(path, int64(count)); err == nil {
			s.open, t.Reader = d, d
		}
	case formatNPY:
		var d *dumpfmt.NPY
		if d, err = dumpfmt.OpenNPY(path); err == nil {
			s.open = d
			t.Reader, err = d, checkShape(path, d.Shape(), heads, width)
		}
	case formatNPZ:
		t.Reader, err = s.fromNPZ(path, k.Op, string(s.inv.tensor.append(nil, s.inv, k)), heads, width)
	case formatSafetensors:
		t.Reader, err = s.fromSafetensors(path, k.Op, string(s.inv.tensor.append(nil, s.inv, k)), heads, width)
	}
	if err != nil {
		if s.format == formatRaw {
			err = asTheScriptLooks(path, 4*int64(count), err)
		}
		return Tensor{}, problemOf(path, err)
	}
	return t, nil
}

// asTheScriptLooks puts what the script would say in place of err, where it says
// something: it asks whether the name is there, then for its size, whatever is
// behind it, and opens it only then.
func asTheScriptLooks(path string, size int64, err error) error {
	st, statErr := os.Stat(path)
	switch {
	case statErr != nil:
		return &ProblemError{Missing, "MISSING:" + path}
	case st.Size() != size:
		return wrongSize(path, size, st.Size())
	}
	return err
}

func (s *folderSession) fromNPZ(path string, op int, name string, heads, width int) (dumpfmt.Float32Reader, error) {
	d, err := archive(s, path, op, dumpfmt.OpenNPZ)
	if err != nil {
		return nil, err
	}
	if !d.Has(name) {
		return nil, &ProblemError{Missing, "MISSING:" + path + "#" + name}
	}
	// The shape comes first: a deflated array is inflated whole.
	shape, err := d.Shape(name)
	if err != nil {
		return nil, err
	}
	if err := checkShape(path+"#"+name, shape, heads, width); err != nil {
		return nil, err
	}
	return d.Float32s(name)
}

func (s *folderSession) fromSafetensors(path string, op int, name string, heads, width int) (dumpfmt.Float32Reader, error) {
	d, err := archive(s, path, op, dumpfmt.OpenSafetensors)
	if err != nil {
		return nil, err
	}
	info, ok := d.Tensor(name)
	if !ok {
		return nil, &ProblemError{Missing, "MISSING:" + path + "#" + name}
	}
	if err := checkShape(path+"#"+name, info.Shape, heads, width); err != nil {
		return nil, err
	}
	return d.Float32s(name)
}

// checkShape accepts [heads, width], the same flat, and either behind dimensions
// of 1.
func checkShape(path string, shape []int, heads, width int) error {
	have := int64(1)
	for _, n := range shape {
		have *= int64(n) // the reader has checked the product
	}
	if want := int64(heads) * int64(width); have != want {
		return wrongSize(path, 4*want, 4*have)
	}
	given := shape
	for len(shape) > 1 && shape[0] == 1 {
		shape = shape[1:]
	}
	if len(shape) <= 1 || len(shape) == 2 && shape[0] == heads {
		return nil
	}
	return &ProblemError{WrongSize, fmt.Sprintf("SHAPE_MISMATCH:%s:expected=%dx%d,got=%v", path, heads, width, given)}
}

// problemOf sorts what a reader said.
func problemOf(path string, err error) *ProblemError {
	var p *ProblemError
	var size *dumpfmt.SizeError
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return &ProblemError{Missing, "MISSING:" + path}
	case errors.As(err, &size):
		return wrongSize(path, size.Want, size.Got)
	}
	return &ProblemError{Unreadable, "UNREADABLE:" + path + ":" + dumpfmt.Printable(err.Error())}
}
