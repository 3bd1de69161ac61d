package dumpfmt

import (
	"fmt"
	"io"
)

// SizeError says that a file without a header doesn't have the size of the tensor
// that it should hold. It unwraps to a [*FormatError].
type SizeError struct {
	File string
	// Bytes that the tensor has, and that the file has.
	Want, Got int64
}

func (e *SizeError) Error() string { return e.Unwrap().Error() }

// Unwrap returns the same as a [*FormatError].
func (e *SizeError) Unwrap() error {
	if e.Got < e.Want {
		return &FormatError{File: e.File, Format: formatRaw, Offset: 0, What: whatBytes, Got: itoa(e.Got), Want: itoa(e.Want)}
	}
	return &FormatError{File: e.File, Format: formatRaw, Offset: e.Want, What: "end of file",
		Got: itoa(e.Got-e.Want) + " trailing bytes", Want: "none"}
}

// Raw reads a headerless file of little-endian float32.
type Raw struct {
	src source
	v   values[float32]
}

var _ Float32Reader = (*Raw)(nil)

// OpenRaw opens the file at path, which has to hold count values exactly: another
// size is a [*SizeError]. The caller closes it.
func OpenRaw(path string, count int64) (*Raw, error) {
	s, err := openSource(path, formatRaw)
	if err != nil {
		return nil, err
	}
	d, err := newRaw(s, count)
	if err != nil {
		_ = s.close() // the first error is the one to tell
	}
	return d, err
}

// NewRaw reads a file of size bytes from r; name stands in for the file in
// errors. Close leaves r open.
func NewRaw(r io.ReaderAt, size int64, name string, count int64) (*Raw, error) {
	return newRaw(source{r: r, size: size, file: name, format: formatRaw}, count)
}

func newRaw(s source, count int64) (*Raw, error) {
	if err := checkRawCount("OpenRaw", count); err != nil {
		return nil, err
	}
	if s.size != 4*count {
		return nil, &SizeError{File: s.file, Want: 4 * count, Got: s.size}
	}
	d := &Raw{src: s}
	d.v.src, d.v.count = &d.src, count
	return d, nil
}

// maxRawCount keeps 4*count from overflowing.
const maxRawCount = 1 << 60

func checkRawCount(op string, count int64) error {
	if count < 0 || count > maxRawCount {
		return &UsageError{Op: op, What: "count", Got: itoa(count), Want: fmt.Sprintf("0 <= count <= %d", int64(maxRawCount))}
	}
	return nil
}

// File returns the file's name, as its errors give it.
func (d *Raw) File() string { return d.src.file }

// Len returns the number of values.
func (d *Raw) Len() int64 { return d.v.count }

// ReadValues reads by index; see [Float32Reader].
func (d *Raw) ReadValues(dst []float32, index int64) (int, error) {
	return d.v.readSome("Raw.ReadValues", dst, index)
}

// Close closes the file that OpenRaw opened.
func (d *Raw) Close() error { return d.src.close() }

// RawBuffer reads small headerless files whole, one after the other, into one
// piece of memory: for folders of tens of thousands of them, where opening costs
// more than reading. The zero value is ready. It isn't safe for concurrent use.
type RawBuffer struct {
	mem []float32
}

// Read returns the count values of the file at path, valid until the next call.
// Another size is a [*SizeError], anything but a regular file a [*FormatError].
func (b *RawBuffer) Read(path string, count int) ([]float32, error) {
	if err := checkRawCount("RawBuffer.Read", int64(count)); err != nil {
		return nil, err
	}
	// The size is checked before the memory is there to hold it.
	err := readWhole(path, 4*int64(count), func() []byte {
		if cap(b.mem) < count {
			b.mem = make([]float32, count)
		}
		b.mem = b.mem[:count]
		return bytesOf(b.mem)
	})
	if err != nil {
		return nil, err
	}
	if !littleEndian {
		swap4(bytesOf(b.mem))
	}
	return b.mem, nil
}
