package dumpfmt

import (
	"encoding/binary"
	"io"
	"sync"
	"unsafe"
)

// littleEndian is true where memory has the byte order of the files, so that
// values can be read in place.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// bytesOf returns the memory of s.
func bytesOf[T int8 | float32 | int32](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(s[0])))
}

// swap4 reverses the bytes of every 4-byte element of p.
func swap4(p []byte) {
	for ; len(p) >= 4; p = p[4:] {
		binary.LittleEndian.PutUint32(p, binary.BigEndian.Uint32(p))
	}
}

// values is a stored run of 4-byte numbers, addressed by index.
type values[T float32 | int32] struct {
	src   *source
	start int64 // byte of value 0
	count int64
	rows  sync.Pool // of *[]T, scratch of the conversions to float64
}

// read fills dst from value index on; the caller has checked the range.
func (v *values[T]) read(dst []T, index int64) error {
	p := bytesOf(dst)
	if err := v.src.read(p, v.start+4*index); err != nil {
		return err
	}
	if !littleEndian {
		swap4(p)
	}
	return nil
}

// readSome is read up to the end; io.EOF when nothing is left.
func (v *values[T]) readSome(op string, dst []T, index int64) (int, error) {
	if index < 0 || index > v.count {
		return 0, &UsageError{Op: op, What: "index", Got: itoa(index), Want: "0 <= index <= " + itoa(v.count)}
	}
	if index == v.count {
		return 0, io.EOF
	}
	dst = dst[:min(int64(len(dst)), v.count-index)]
	if err := v.read(dst, index); err != nil {
		return 0, err
	}
	return len(dst), nil
}

// row fills dst with row i.
func (v *values[T]) row(op string, dst []T, i, rows, width int) error {
	if err := checkIndex(op, i, rows); err != nil {
		return err
	}
	if err := checkLen(op, len(dst), width); err != nil {
		return err
	}
	return v.read(dst, int64(i)*int64(width))
}

// row64 is row with every value converted to float64, which is exact.
func (v *values[T]) row64(op string, dst []float64, i, rows, width int) error {
	buf, _ := v.rows.Get().(*[]T)
	if buf == nil {
		s := make([]T, width)
		buf = &s
	}
	defer v.rows.Put(buf)
	if err := checkLen(op, len(dst), width); err != nil {
		return err
	}
	if err := v.row(op, *buf, i, rows, width); err != nil {
		return err
	}
	for j, x := range *buf {
		dst[j] = float64(x)
	}
	return nil
}
