package dumpfmt

import "io"

// FloatLayers reads a float layer dump: a 32-byte [LayerHeader], then
// Rows*Width float32.
type FloatLayers struct {
	src source
	h   LayerHeader
	v   values[float32]
}

var _ Float32Reader = (*FloatLayers)(nil)

// OpenFloatLayers opens the dump at path. The caller closes it.
func OpenFloatLayers(path string) (*FloatLayers, error) {
	s, err := openSource(path, formatFloatLayers)
	if err != nil {
		return nil, err
	}
	d, err := newFloatLayers(s)
	if err != nil {
		_ = s.close() // the first error is the one to tell
	}
	return d, err
}

// NewFloatLayers reads a dump of size bytes from r; name stands in for the
// file in errors. Close leaves r open.
func NewFloatLayers(r io.ReaderAt, size int64, name string) (*FloatLayers, error) {
	return newFloatLayers(source{r: r, size: size, file: name, format: formatFloatLayers})
}

func newFloatLayers(s source) (*FloatLayers, error) {
	h, trailing, err := readLayerHeader(&s, 4, 0)
	if err != nil {
		return nil, err
	}
	if err := s.noTrailing(trailing); err != nil {
		return nil, err
	}
	d := &FloatLayers{src: s, h: h}
	d.v.src, d.v.start, d.v.count = &d.src, layerHeaderBytes, int64(h.Rows)*int64(h.Width)
	return d, nil
}

// Header returns the dump's header.
func (d *FloatLayers) Header() LayerHeader { return d.h }

// File returns the dump's name, as its errors give it.
func (d *FloatLayers) File() string { return d.src.file }

// Row reads row i into dst, of length Width, bit for bit.
func (d *FloatLayers) Row(i int, dst []float32) error {
	return d.v.row("FloatLayers.Row", dst, i, d.h.Rows, d.h.Width)
}

// Row64 reads row i into dst, of length Width; the conversion is exact. It
// keeps one float32 row of scratch.
func (d *FloatLayers) Row64(i int, dst []float64) error {
	return d.v.row64("FloatLayers.Row64", dst, i, d.h.Rows, d.h.Width)
}

// Len returns Rows*Width.
func (d *FloatLayers) Len() int64 { return d.v.count }

// ReadValues reads by flat index (row*Width + channel); see [Float32Reader].
func (d *FloatLayers) ReadValues(dst []float32, index int64) (int, error) {
	return d.v.readSome("FloatLayers.ReadValues", dst, index)
}

// Close closes the file that OpenFloatLayers opened.
func (d *FloatLayers) Close() error { return d.src.close() }

// FloatLayersWriter writes a float layer dump row by row.
type FloatLayersWriter struct {
	rowWriter
}

// CreateFloatLayers starts the dump at path. Commit makes it visible, and
// Abort, which does nothing after Commit, removes what was begun.
func CreateFloatLayers(path string, h LayerHeader, o WriteOptions) (*FloatLayersWriter, error) {
	head, err := h.encode("CreateFloatLayers")
	if err != nil {
		return nil, err
	}
	w := &FloatLayersWriter{}
	if err := w.begin("FloatLayersWriter", path, head, h.Rows, h.Width, o); err != nil {
		return nil, err
	}
	return w, nil
}

// WriteRow appends one row, of length Width.
func (w *FloatLayersWriter) WriteRow(row []float32) error {
	return writeRow4(&w.rowWriter, row)
}
