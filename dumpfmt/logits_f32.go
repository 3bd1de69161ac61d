package dumpfmt

import "io"

// FloatLogits reads a logit dump of float32: a 16-byte [LogitHeader], then
// Rows*Vocab float32.
type FloatLogits struct {
	src source
	h   LogitHeader
	v   values[float32]
}

// OpenFloatLogits opens the dump at path. The caller closes it.
func OpenFloatLogits(path string) (*FloatLogits, error) {
	s, err := openSource(path, formatFloatLogits)
	if err != nil {
		return nil, err
	}
	d, err := newFloatLogits(s)
	if err != nil {
		_ = s.close() // the first error is the one to tell
	}
	return d, err
}

// NewFloatLogits reads a dump of size bytes from r; name stands in for the file
// in errors. Close leaves r open.
func NewFloatLogits(r io.ReaderAt, size int64, name string) (*FloatLogits, error) {
	return newFloatLogits(source{r: r, size: size, file: name, format: formatFloatLogits})
}

func newFloatLogits(s source) (*FloatLogits, error) {
	h, err := readLogitHeader(&s)
	if err != nil {
		return nil, err
	}
	d := &FloatLogits{src: s, h: h}
	d.v.src, d.v.start, d.v.count = &d.src, logitHeaderBytes, int64(h.Rows)*int64(h.Vocab)
	return d, nil
}

// Header returns the dump's header.
func (d *FloatLogits) Header() LogitHeader { return d.h }

// File returns the dump's name, as its errors give it.
func (d *FloatLogits) File() string { return d.src.file }

// Row reads row i into dst, of length Vocab.
func (d *FloatLogits) Row(i int, dst []float32) error {
	return d.v.row("FloatLogits.Row", dst, i, d.h.Rows, d.h.Vocab)
}

// Row64 reads row i into dst, of length Vocab; the conversion is exact. It
// keeps one float32 row of scratch.
func (d *FloatLogits) Row64(i int, dst []float64) error {
	return d.v.row64("FloatLogits.Row64", dst, i, d.h.Rows, d.h.Vocab)
}

// Len returns Rows*Vocab.
func (d *FloatLogits) Len() int64 { return d.v.count }

// ReadValues reads by flat index (row*Vocab + id): it fills dst from value
// index on and returns how many were read, fewer than len(dst) at the end only,
// and io.EOF when none is left.
func (d *FloatLogits) ReadValues(dst []float32, index int64) (int, error) {
	return d.v.readSome("FloatLogits.ReadValues", dst, index)
}

// Close closes the file that OpenFloatLogits opened.
func (d *FloatLogits) Close() error { return d.src.close() }

// FloatLogitsWriter writes a logit dump of float32 row by row.
type FloatLogitsWriter struct {
	rowWriter
}

// CreateFloatLogits starts the dump at path. Commit makes it visible, and Abort,
// which does nothing after Commit, removes what was begun.
func CreateFloatLogits(path string, h LogitHeader, o WriteOptions) (*FloatLogitsWriter, error) {
	head, err := h.encode("CreateFloatLogits")
	if err != nil {
		return nil, err
	}
	w := &FloatLogitsWriter{}
	if err := w.begin("FloatLogitsWriter", path, head, h.Rows, h.Vocab, o); err != nil {
		return nil, err
	}
	return w, nil
}

// WriteRow appends one row, of length Vocab.
func (w *FloatLogitsWriter) WriteRow(row []float32) error {
	return writeRow4(&w.rowWriter, row)
}
