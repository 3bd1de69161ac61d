package dumpfmt

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"sync"
)

const scaleBytes = 16

// Scale is the scale of one int8 row: the value of a code is code*M*2^E.
type Scale struct {
	M, E int64
}

// Step returns M*2^E, the value of code 1, rounded to float64 where M has more
// than 53 bits. It is false for a scale that is no scale: M not positive, or a
// row whose values would overflow or vanish in float64 (a step below the
// smallest normal number loses bits silently).
func (s Scale) Step() (float64, bool) {
	// The bound on E keeps Ldexp's own exponent sum from overflowing; no M
	// below 2^63 can bring an exponent outside it back into range.
	if s.M <= 0 || s.E < -1100 || s.E > 1100 {
		return 0, false
	}
	step := math.Ldexp(float64(s.M), int(s.E))
	if !(step >= 0x1p-1022) || math.IsInf(step*128, 0) {
		return 0, false
	}
	return step, true
}

func (s Scale) String() string { return fmt.Sprintf("%d*2^%d", s.M, s.E) }

// Int8Layers reads an int8 layer dump: a 32-byte [LayerHeader], then per row a
// [Scale] and Width int8 codes.
type Int8Layers struct {
	src      source
	h        LayerHeader
	trailing int64
	codes    sync.Pool // of *[]int8, scratch of Row64
}

// OpenInt8Layers opens the dump at path. The caller closes it.
func OpenInt8Layers(path string) (*Int8Layers, error) {
	s, err := openSource(path, formatInt8Layers)
	if err != nil {
		return nil, err
	}
	d, err := newInt8Layers(s)
	if err != nil {
		_ = s.close() // the first error is the one to tell
	}
	return d, err
}

// NewInt8Layers reads a dump of size bytes from r; name stands in for the file
// in errors. Close leaves r open.
func NewInt8Layers(r io.ReaderAt, size int64, name string) (*Int8Layers, error) {
	return newInt8Layers(source{r: r, size: size, file: name, format: formatInt8Layers})
}

func newInt8Layers(s source) (*Int8Layers, error) {
	h, trailing, err := readLayerHeader(&s, 1, scaleBytes)
	if err != nil {
		return nil, err
	}
	return &Int8Layers{src: s, h: h, trailing: trailing}, nil
}

// Header returns the dump's header.
func (d *Int8Layers) Header() LayerHeader { return d.h }

// File returns the dump's name, as its errors give it.
func (d *Int8Layers) File() string { return d.src.file }

// TrailingBytes returns how many bytes follow the last row. They are worth a
// note, not an error: some engines append trailers.
func (d *Int8Layers) TrailingBytes() int64 { return d.trailing }

func (d *Int8Layers) rowOffset(i int) int64 {
	return layerHeaderBytes + int64(i)*(scaleBytes+int64(d.h.Width))
}

// Scale reads the scale of row i. A scale for which [Scale.Step] is false is a
// *FormatError.
func (d *Int8Layers) Scale(i int) (Scale, error) {
	if err := checkIndex("Int8Layers.Scale", i, d.h.Rows); err != nil {
		return Scale{}, err
	}
	p := make([]byte, scaleBytes)
	if err := d.src.read(p, d.rowOffset(i)); err != nil {
		return Scale{}, err
	}
	s := Scale{M: int64(binary.LittleEndian.Uint64(p)), E: int64(binary.LittleEndian.Uint64(p[8:]))}
	if _, ok := s.Step(); !ok {
		return s, d.src.broken(d.rowOffset(i), fmt.Sprintf("scale of row %d", i), s.String(),
			"m*2^e with m > 0, normal and finite in float64")
	}
	return s, nil
}

// CheckScales reads the scale of every row.
func (d *Int8Layers) CheckScales() error {
	for i := range d.h.Rows {
		if _, err := d.Scale(i); err != nil {
			return err
		}
	}
	return nil
}

// RowCodes reads the codes of row i into dst, of length Width.
func (d *Int8Layers) RowCodes(i int, dst []int8) (Scale, error) {
	if err := checkLen("Int8Layers.RowCodes", len(dst), d.h.Width); err != nil {
		return Scale{}, err
	}
	s, err := d.Scale(i)
	if err != nil {
		return s, err
	}
	return s, d.src.read(bytesOf(dst), d.rowOffset(i)+scaleBytes)
}

// Row64 reads row i into dst, of length Width, as code*step, and returns the
// step M*2^E. Both are exact while M has at most 46 bits. It keeps one row of
// codes as scratch.
func (d *Int8Layers) Row64(i int, dst []float64) (step float64, err error) {
	if err := checkLen("Int8Layers.Row64", len(dst), d.h.Width); err != nil {
		return 0, err
	}
	buf, _ := d.codes.Get().(*[]int8)
	if buf == nil {
		s := make([]int8, d.h.Width)
		buf = &s
	}
	defer d.codes.Put(buf)
	s, err := d.RowCodes(i, *buf)
	if err != nil {
		return 0, err
	}
	step, _ = s.Step()
	for j, c := range *buf {
		dst[j] = float64(c) * step
	}
	return step, nil
}

// Close closes the file that OpenInt8Layers opened.
func (d *Int8Layers) Close() error { return d.src.close() }

// Int8LayersWriter writes an int8 layer dump row by row.
type Int8LayersWriter struct {
	rowWriter
}

// CreateInt8Layers starts the dump at path. Commit makes it visible, and
// Abort, which does nothing after Commit, removes what was begun.
func CreateInt8Layers(path string, h LayerHeader, o WriteOptions) (*Int8LayersWriter, error) {
	head, err := h.encode("CreateInt8Layers")
	if err != nil {
		return nil, err
	}
	w := &Int8LayersWriter{}
	if err := w.begin("Int8LayersWriter", path, head, h.Rows, h.Width, o); err != nil {
		return nil, err
	}
	return w, nil
}

// WriteRow appends one row: its scale and its codes, of length Width.
func (w *Int8LayersWriter) WriteRow(s Scale, codes []int8) error {
	if _, ok := s.Step(); !ok {
		return &UsageError{Op: "Int8LayersWriter.WriteRow", What: fmt.Sprintf("scale of row %d", w.written),
			Got: s.String(), Want: "m*2^e with m > 0, normal and finite in float64"}
	}
	if err := w.next(len(codes)); err != nil {
		return err
	}
	p := binary.LittleEndian.AppendUint64(make([]byte, 0, scaleBytes), uint64(s.M))
	if _, err := w.f.Write(binary.LittleEndian.AppendUint64(p, uint64(s.E))); err != nil {
		return err
	}
	_, err := w.f.Write(bytesOf(codes))
	return err
}
