package dumpfmt

import "io"

// Int32Logits reads a logit dump of int32: a 16-byte [LogitHeader], then
// Rows*Vocab int32.
type Int32Logits struct {
	src source
	h   LogitHeader
	v   values[int32]
}

// OpenInt32Logits opens the dump at path. The caller closes it.
func OpenInt32Logits(path string) (*Int32Logits, error) {
	s, err := openSource(path, formatInt32Logits)
	if err != nil {
		return nil, err
	}
	d, err := newInt32Logits(s)
	if err != nil {
		_ = s.close() // the first error is the one to tell
	}
	return d, err
}

// NewInt32Logits reads a dump of size bytes from r; name stands in for the file
// in errors. Close leaves r open.
func NewInt32Logits(r io.ReaderAt, size int64, name string) (*Int32Logits, error) {
	return newInt32Logits(source{r: r, size: size, file: name, format: formatInt32Logits})
}

func newInt32Logits(s source) (*Int32Logits, error) {
	h, err := readLogitHeader(&s)
	if err != nil {
		return nil, err
	}
	d := &Int32Logits{src: s, h: h}
	d.v.src, d.v.start, d.v.count = &d.src, logitHeaderBytes, int64(h.Rows)*int64(h.Vocab)
	return d, nil
}

// Header returns the dump's header.
func (d *Int32Logits) Header() LogitHeader { return d.h }

// File returns the dump's name, as its errors give it.
func (d *Int32Logits) File() string { return d.src.file }

// Row reads row i into dst, of length Vocab.
func (d *Int32Logits) Row(i int, dst []int32) error {
	return d.v.row("Int32Logits.Row", dst, i, d.h.Rows, d.h.Vocab)
}

// Row64 reads row i into dst, of length Vocab; the conversion is exact. It
// keeps one int32 row of scratch.
func (d *Int32Logits) Row64(i int, dst []float64) error {
	return d.v.row64("Int32Logits.Row64", dst, i, d.h.Rows, d.h.Vocab)
}

// Len returns Rows*Vocab.
func (d *Int32Logits) Len() int64 { return d.v.count }

// ReadValues reads by flat index (row*Vocab + id): it fills dst from value
// index on and returns how many were read, fewer than len(dst) at the end only,
// and io.EOF when none is left.
func (d *Int32Logits) ReadValues(dst []int32, index int64) (int, error) {
	return d.v.readSome("Int32Logits.ReadValues", dst, index)
}

// Close closes the file that OpenInt32Logits opened.
func (d *Int32Logits) Close() error { return d.src.close() }

// Int32LogitsWriter writes a logit dump of int32 row by row.
type Int32LogitsWriter struct {
	rowWriter
}

// CreateInt32Logits starts the dump at path. Commit makes it visible, and Abort,
// which does nothing after Commit, removes what was begun.
func CreateInt32Logits(path string, h LogitHeader, o WriteOptions) (*Int32LogitsWriter, error) {
	head, err := h.encode("CreateInt32Logits")
	if err != nil {
		return nil, err
	}
	w := &Int32LogitsWriter{}
	if err := w.begin("Int32LogitsWriter", path, head, h.Rows, h.Vocab, o); err != nil {
		return nil, err
	}
	return w, nil
}

// WriteRow appends one row, of length Vocab.
func (w *Int32LogitsWriter) WriteRow(row []int32) error {
	return writeRow4(&w.rowWriter, row)
}
