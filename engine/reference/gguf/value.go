package gguf

import (
	"encoding/binary"
	"fmt"
	"math"
)

// kind is the type of a key's value, by its number in the format.
type kind uint32

const (
	kindUint8 kind = iota
	kindInt8
	kindUint16
	kindInt16
	kindUint32
	kindInt32
	kindFloat32
	kindBool
	kindString
	kindArray
	kindUint64
	kindInt64
	kindFloat64
	kinds
)

// sizes are those of the kinds with a fixed one, else what is read first.
var sizes = [kinds]uint64{1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8}

const (
	noLimit = math.MaxUint64
	preset  = 1 << 12 // elements that a list starts with room for, whatever it claims
)

// value reads a value of a kind.
func (s *scanner) value(k kind, what string) any {
	switch k {
	case kindString:
		return s.text(what, noLimit)
	case kindArray:
		return s.array(what)
	case kindBool:
		return s.boolean(what)
	}
	at := s.pos
	if k >= kinds {
		s.fail(at-4, what+": type", fmt.Sprint(uint32(k)), fmt.Sprintf("0 to %d", kinds-1))
		return nil
	}
	p := s.buf[:sizes[k]]
	if !s.read(p, what) {
		return nil
	}
	return number(k, p)
}

func (s *scanner) boolean(what string) bool {
	at := s.pos
	b := s.u8(what)
	if s.err == nil && b > 1 {
		s.fail(at, what, fmt.Sprint(b), "0 or 1")
	}
	return b == 1
}

// number decodes a number of a kind.
func number(k kind, p []byte) any {
	le := binary.LittleEndian
	switch k {
	case kindUint8:
		return p[0]
	case kindInt8:
		return int8(p[0])
	case kindUint16:
		return le.Uint16(p)
	case kindInt16:
		return int16(le.Uint16(p))
	case kindUint32:
		return le.Uint32(p)
	case kindInt32:
		return int32(le.Uint32(p))
	case kindFloat32:
		return math.Float32frombits(le.Uint32(p))
	case kindUint64:
		return le.Uint64(p)
	case kindInt64:
		return int64(le.Uint64(p))
	}
	return math.Float64frombits(le.Uint64(p))
}

// array reads a kind, a count and as many values.
func (s *scanner) array(what string) any {
	at := s.pos
	k := kind(s.u32(what + ": element type"))
	switch {
	case s.err != nil:
		return nil
	case k >= kinds:
		s.fail(at, what+": element type", fmt.Sprint(uint32(k)), fmt.Sprintf("0 to %d", kinds-1))
		return nil
	case k == kindArray:
		s.refuse(what+": an array of arrays", "no key of a model has one")
		return nil
	}
	n := s.count(what+": length", sizes[k])
	element := func(i int) string { return fmt.Sprintf("%s: element %d", what, i) }
	switch k {
	case kindString:
		all := make([]string, 0, min(n, preset))
		for i := 0; i < n && s.err == nil; i++ {
			// The name of an element is wanted where it fails only: there are
			// hundreds of thousands.
			if text, ok := s.quickText(); ok {
				all = append(all, text)
			} else {
				all = append(all, s.text(element(i), noLimit))
			}
		}
		return all
	case kindBool:
		all := make([]bool, 0, min(n, preset))
		for i := 0; i < n && s.err == nil; i++ {
			all = append(all, s.boolean(element(i)))
		}
		return all
	}
	raw := make([]byte, uint64(n)*sizes[k])
	if !s.read(raw, what) {
		return nil
	}
	switch k {
	case kindUint8:
		return raw
	case kindInt8:
		return numbers[int8](k, raw)
	case kindUint16:
		return numbers[uint16](k, raw)
	case kindInt16:
		return numbers[int16](k, raw)
	case kindUint32:
		return numbers[uint32](k, raw)
	case kindInt32:
		return numbers[int32](k, raw)
	case kindFloat32:
		return numbers[float32](k, raw)
	case kindUint64:
		return numbers[uint64](k, raw)
	case kindInt64:
		return numbers[int64](k, raw)
	}
	return numbers[float64](k, raw)
}

func numbers[T any](k kind, raw []byte) []T {
	size := int(sizes[k])
	all := make([]T, len(raw)/size)
	for i := range all {
		all[i] = number(k, raw[i*size:]).(T)
	}
	return all
}

// quickText reads a text that lies whole in the buffer; false where it doesn't,
// and then nothing is read.
func (s *scanner) quickText() (string, bool) {
	head, err := s.in.Peek(8)
	if err != nil || s.err != nil {
		return "", false
	}
	n := binary.LittleEndian.Uint64(head)
	if n > uint64(s.in.Size()) {
		return "", false
	}
	all, err := s.in.Peek(8 + int(n))
	if err != nil { // it doesn't fit, or there is no more
		return "", false
	}
	text := string(all[8:])
	_, _ = s.in.Discard(len(all)) // it is in the buffer
	s.pos += int64(len(all))
	return text, true
}
