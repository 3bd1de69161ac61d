package gguf

import (
	"fmt"
	"math"
	"math/bits"
)

// Bounds that the format sets.
const (
	maxKey  = 1<<16 - 1
	maxName = 64
	maxDims = 4

	// The fewest bytes that a key and a tensor info take: lengths of 1, a value
	// of 1 byte, one dimension.
	leastKey    = 8 + 1 + 4 + 1
	leastTensor = 8 + 1 + 4 + 8 + 4 + 8

	alignmentKey     = "general.alignment"
	defaultAlignment = 32
	leastAlignment   = 8
)

// Tensor is a tensor of a file.
type Tensor struct {
	Name string
	// Shape is in row-major order, the other way round than in the file, which
	// has the fastest dimension first.
	Shape []int
	Type  Type
	// Offset is the file offset of the first byte, Bytes the length.
	Offset, Bytes int64
}

// Elements is the product of the shape.
func (t Tensor) Elements() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// header reads and checks all that stands before the data.
func (f *File) header(s *scanner) error {
	var magic [4]byte
	if s.read(magic[:], "the magic"); s.err == nil && string(magic[:]) != "GGUF" {
		s.fail(0, "the magic", fmt.Sprintf("%q", magic), `"GGUF"`)
	}
	f.version = s.u32("the version")
	if v := f.version; s.err == nil && v != 2 && v != 3 {
		switch {
		case v == 0:
			s.fail(4, "the version", "0", "2 or 3")
		case bits.ReverseBytes32(v) <= 1<<16-1:
			s.refuse("big-endian", "only little-endian files are read")
		default:
			s.refuse(fmt.Sprintf("version %d", v), "only versions 2 and 3 are read")
		}
	}
	tensors := s.count("the number of tensors", leastTensor)
	keys := s.count("the number of keys", leastKey)
	f.readKeys(s, keys)
	alignment := f.alignment(s)
	f.readTensors(s, tensors)
	f.place(s, alignment)
	return s.err
}

func (f *File) readKeys(s *scanner, n int) {
	f.values = map[string]any{} // not of size n: that is a claim so far
	for i := 0; i < n && s.err == nil; i++ {
		at := s.pos
		key := s.text(fmt.Sprintf("key %d", i), maxKey)
		if key == alignmentKey {
			f.alignmentAt = at
		}
		if s.err == nil && key == "" {
			s.fail(at, fmt.Sprintf("key %d", i), "an empty name", "a name")
		}
		if _, again := f.values[key]; again {
			s.fail(at, "key "+key, "a second one", "each key once")
		}
		k := kind(s.u32("key " + key + ": type"))
		v := s.value(k, "key "+key)
		if s.err == nil {
			f.values[key] = v
			f.keys = append(f.keys, key)
		}
	}
}

func (f *File) alignment(s *scanner) int64 {
	v, ok := f.values[alignmentKey]
	if !ok || s.err != nil {
		return defaultAlignment
	}
	n, isUint32 := v.(uint32)
	if !isUint32 || n < leastAlignment || n&(n-1) != 0 {
		s.fail(f.alignmentAt, "key "+alignmentKey, fmt.Sprintf("%v (%T)", v, v), fmt.Sprintf("a power of two from %d on (uint32)", leastAlignment))
		return defaultAlignment
	}
	return int64(n)
}

// readTensors reads the infos. Offset is that of the info, from the start of the
// data, until place makes it one of the file.
func (f *File) readTensors(s *scanner, n int) {
	f.index = map[string]int{}
	for i := 0; i < n && s.err == nil; i++ {
		at := s.pos
		t := Tensor{Name: s.text(fmt.Sprintf("tensor %d: name", i), maxName)}
		if s.err == nil && t.Name == "" {
			s.fail(at, fmt.Sprintf("tensor %d: name", i), "an empty one", "a name")
		}
		if _, again := f.index[t.Name]; again {
			s.fail(at, "tensor "+t.Name, "a second one", "each tensor once")
		}
		f.readInfo(s, &t)
		if s.err == nil {
			f.index[t.Name] = i
			f.tensors = append(f.tensors, t)
			f.infos = append(f.infos, at)
		}
	}
}

func (f *File) readInfo(s *scanner, t *Tensor) {
	what := "tensor " + t.Name
	at := s.pos
	dims := s.u32(what + ": number of dimensions")
	if s.err == nil && (dims < 1 || dims > maxDims) {
		s.fail(at, what+": number of dimensions", fmt.Sprint(dims), fmt.Sprintf("1 to %d", maxDims))
		return
	}
	t.Shape = make([]int, dims)
	elements := uint64(1)
	first := uint64(1)
	at = s.pos
	for i := range t.Shape {
		d := s.u64(what + ": dimensions")
		if i == 0 {
			first = d
		}
		high, low := bits.Mul64(elements, d)
		if s.err == nil && (d == 0 || high != 0 || low > math.MaxInt64) {
			s.fail(at, what+": dimensions", fmt.Sprintf("%d as number %d", d, i), "at least 1, and a product below 2^63")
			return
		}
		elements = low
		t.Shape[len(t.Shape)-1-i] = int(d)
	}
	t.Type = Type(s.u32(what + ": type"))
	at = s.pos
	offset := s.u64(what + ": offset")
	if s.err == nil && offset > math.MaxInt64 {
		s.fail(at, what+": offset", fmt.Sprint(offset), "less than 2^63")
	}
	t.Offset = int64(offset)
	l, known := layouts[t.Type]
	if s.err != nil {
		return
	}
	if !known {
		s.refuse(fmt.Sprintf("tensor %s: type %s", t.Name, t.Type), readable)
		return
	}
	if first%uint64(l.elements) != 0 {
		s.fail(at, what+": row", fmt.Sprintf("%d elements", first), fmt.Sprintf("whole blocks of %d, as %s has", l.elements, t.Type))
		return
	}
	high, size := bits.Mul64(elements/uint64(l.elements), uint64(l.bytes))
	if high != 0 || size > uint64(s.size) {
		s.fail(at, what, fmt.Sprintf("%v of %s", t.Shape, t.Type), fmt.Sprintf("at most the %d bytes of the file", s.size))
		return
	}
	t.Bytes = int64(size)
}

// place demands that the tensors follow each other from the end of the header on,
// each at the next multiple of the alignment, and end with the file.
func (f *File) place(s *scanner, alignment int64) {
	if s.err != nil {
		return
	}
	start := align(s.pos, alignment)
	next := int64(0)
	for i := range f.tensors {
		t := &f.tensors[i]
		if t.Offset != next {
			s.fail(f.infos[i], "tensor "+t.Name+": offset", fmt.Sprint(t.Offset), fmt.Sprintf("%d: the tensors lie one behind the other, in the order of their infos", next))
			return
		}
		// start and next are at most the size and an alignment: no overflow.
		if left := s.size - start - next; t.Bytes > left {
			s.fail(f.infos[i], "tensor "+t.Name, fmt.Sprintf("%d bytes to the end", max(0, left)), fmt.Sprint(t.Bytes))
			return
		}
		t.Offset += start
		next = align(next+t.Bytes, alignment)
	}
	if end := start + next; s.size > end {
		s.fail(end, "the end", fmt.Sprintf("%d bytes more", s.size-end), "the end of the last tensor")
	}
}

func align(n, to int64) int64 { return (n + to - 1) &^ (to - 1) }
