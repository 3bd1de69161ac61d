package dumpfmt

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
)

// TensorSpec names a tensor and says what it holds.
type TensorSpec struct {
	Name  string
	DType DType
	// Shape has no entries for a scalar; an entry may be 0.
	Shape []int
}

// TensorInfo is a tensor in a file.
type TensorInfo struct {
	TensorSpec
	// Offset is the file offset of the first byte, Bytes the length.
	Offset, Bytes int64
}

// Safetensors reads a safetensors file: u64 header length, JSON header, data.
//
// The whole header is checked when the file is opened: its length against the
// file, no key twice at any level, nothing but the keys of the format, known
// types, shapes whose products don't overflow, offsets inside the data, sizes
// equal to the product of the shape, no overlap, no hole, the end of the data
// at the end of the file. It is stricter than the reference implementation in
// two things: keys it doesn't know, and an overflow of the dimensions beside a
// zero. Source: the format's README and reference
// implementation, https://github.com/huggingface/safetensors.
type Safetensors struct {
	src     source
	tensors []TensorInfo // by offset
	index   map[string]int
	meta    map[string]string
}

// OpenSafetensors opens the file at path. The caller closes it.
func OpenSafetensors(path string) (*Safetensors, error) {
	s, err := openSource(path, formatSafetensors)
	if err != nil {
		return nil, err
	}
	d, err := newSafetensors(s)
	if err != nil {
		_ = s.close() // the first error is the one to tell
	}
	return d, err
}

// NewSafetensors reads a file of size bytes from r; name stands in for the
// file in errors. Close leaves r open.
func NewSafetensors(r io.ReaderAt, size int64, name string) (*Safetensors, error) {
	return newSafetensors(source{r: r, size: size, file: name, format: formatSafetensors})
}

// CheckSafetensors checks the header of the file at path, reads no data and
// returns the tensors in file order. Use it before a file goes to a reader
// that trusts its header.
func CheckSafetensors(path string) ([]TensorInfo, error) {
	d, err := OpenSafetensors(path)
	if err != nil {
		return nil, err
	}
	return d.tensors, d.Close()
}

// Tensors returns the tensors in file order, in memory of their own.
func (d *Safetensors) Tensors() []TensorInfo { return slices.Clone(d.tensors) }

// Tensor returns the named tensor, false when there is none.
func (d *Safetensors) Tensor(name string) (TensorInfo, bool) {
	i, ok := d.index[name]
	if !ok {
		return TensorInfo{}, false
	}
	return d.tensors[i], true
}

// Metadata returns a copy of __metadata__, nil when there is none.
func (d *Safetensors) Metadata() map[string]string { return maps.Clone(d.meta) }

// File returns the file's name, as its errors give it.
func (d *Safetensors) File() string { return d.src.file }

// ReadBytes fills dst from byte off of the named tensor on.
func (d *Safetensors) ReadBytes(name string, off int64, dst []byte) error {
	t, ok := d.Tensor(name)
	if !ok {
		return &UsageError{Op: "Safetensors.ReadBytes", What: "tensor", Got: fmt.Sprintf("%q", name), Want: "a tensor of " + d.src.file}
	}
	if off < 0 || off > t.Bytes || int64(len(dst)) > t.Bytes-off {
		return &UsageError{Op: "Safetensors.ReadBytes", What: fmt.Sprintf("range in %q", name),
			Got: fmt.Sprintf("%d bytes from byte %d", len(dst), off), Want: fmt.Sprintf("a part of %d bytes", t.Bytes)}
	}
	return d.src.read(dst, t.Offset+off)
}

// Float32s reads an F32 tensor by flat index. A tensor of another type is an
// *UnsupportedError, a name that isn't there a *UsageError.
func (d *Safetensors) Float32s(name string) (*Float32Tensor, error) {
	t, ok := d.Tensor(name)
	if !ok {
		return nil, &UsageError{Op: "Safetensors.Float32s", What: "tensor", Got: fmt.Sprintf("%q", name), Want: "a tensor of " + d.src.file}
	}
	if t.DType != F32 {
		return nil, &UnsupportedError{File: d.src.file, Format: formatSafetensors, Offset: NoOffset,
			What: fmt.Sprintf("dtype of %q", name), Got: string(t.DType), Supported: "F32"}
	}
	return &Float32Tensor{info: t, v: values[float32]{src: &d.src, start: t.Offset, count: t.Bytes / 4, rows: sync.Pool{}}}, nil
}

// Close closes the file that OpenSafetensors opened.
func (d *Safetensors) Close() error { return d.src.close() }

// Float32Tensor is an F32 tensor of an open [Safetensors] file.
type Float32Tensor struct {
	info TensorInfo
	v    values[float32]
}

var _ Float32Reader = (*Float32Tensor)(nil)

// Info returns the tensor's name, type and place.
func (t *Float32Tensor) Info() TensorInfo { return t.info }

// Len returns the number of elements.
func (t *Float32Tensor) Len() int64 { return t.v.count }

// ReadValues reads by flat index, row-major; see [Float32Reader].
func (t *Float32Tensor) ReadValues(dst []float32, index int64) (int, error) {
	return t.v.readSome("Float32Tensor.ReadValues", dst, index)
}
