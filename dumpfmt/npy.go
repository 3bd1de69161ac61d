package dumpfmt

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// NPY reads numpy's file of one array, float32 in row-major order.
//
// Byte 0 "\x93NUMPY", two bytes of version, the header's length as u16 (version 1)
// or u32 (2 and 3), the header, the data. The header is a literal of a Python dict with
// exactly the keys descr, fortran_order and shape, ended by a line feed. Another
// type or order is an [*UnsupportedError], another size than the shape's a
// [*FormatError]. Source: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html.
type NPY struct {
	src   source
	v     values[float32]
	shape []int
}

var _ Float32Reader = (*NPY)(nil)

const (
	npyMagic = "\x93NUMPY"
	// maxNPYHeader is what version 1 can tell, and more than a shape needs.
	maxNPYHeader = 1<<16 - 1
)

// OpenNPY opens the file at path. The caller closes it.
func OpenNPY(path string) (*NPY, error) {
	s, err := openSource(path, formatNPY)
	if err != nil {
		return nil, err
	}
	d, err := newNPY(s)
	if err != nil {
		_ = s.close() // the first error is the one to tell
	}
	return d, err
}

// NewNPY reads a file of size bytes from r; name stands in for the file in
// errors. Close leaves r open.
func NewNPY(r io.ReaderAt, size int64, name string) (*NPY, error) {
	return newNPY(source{r: r, size: size, file: name, format: formatNPY})
}

func newNPY(s source) (*NPY, error) {
	start, err := s.header(10)
	if err != nil {
		return nil, err
	}
	if string(start[:6]) != npyMagic {
		return nil, s.broken(0, "magic", fmt.Sprintf("% X", start[:6]), fmt.Sprintf("% X", npyMagic))
	}
	at, n := int64(10), int64(binary.LittleEndian.Uint16(start[8:]))
	switch version := fmt.Sprintf("%d.%d", start[6], start[7]); version {
	case "1.0":
	case "2.0", "3.0":
		if start, err = s.header(12); err != nil {
			return nil, err
		}
		at, n = 12, int64(binary.LittleEndian.Uint32(start[8:]))
	default:
		return nil, &UnsupportedError{File: s.file, Format: s.format, Offset: 6, What: "version", Got: version, Supported: "1.0, 2.0 and 3.0"}
	}
	if n > s.size-at {
		return nil, s.short(at, s.size-at, itoa(n), "header")
	}
	if n > maxNPYHeader {
		return nil, s.broken(8, "header length", itoa(n), fmt.Sprintf("at most %d", maxNPYHeader))
	}
	d := &NPY{src: s}
	p := npyParser{src: &d.src, base: at, data: make([]byte, n)}
	if err := s.read(p.data, at); err != nil {
		return nil, err
	}
	if d.shape, err = p.header(); err != nil {
		return nil, err
	}
	bytes, ok := tensorBytes(d.shape, 4)
	if !ok {
		return nil, s.broken(at, "shape", fmt.Sprint(d.shape), "a product below 2^63 bytes")
	}
	at += n
	switch have := s.size - at; {
	case have < bytes:
		return nil, s.short(at, have, itoa(bytes), fmt.Sprintf("float32 %v", d.shape))
	case have > bytes:
		return nil, s.noTrailing(have - bytes)
	}
	d.v.src, d.v.start, d.v.count = &d.src, at, bytes/4
	return d, nil
}

// Shape returns the shape, without entries for a scalar.
func (d *NPY) Shape() []int { return slices.Clone(d.shape) }

// File returns the file's name, as its errors give it.
func (d *NPY) File() string { return d.src.file }

// Len returns the number of values.
func (d *NPY) Len() int64 { return d.v.count }

// ReadValues reads by flat index, row-major; see [Float32Reader].
func (d *NPY) ReadValues(dst []float32, index int64) (int, error) {
	return d.v.readSome("NPY.ReadValues", dst, index)
}

// Close closes the file that OpenNPY opened.
func (d *NPY) Close() error { return d.src.close() }

// npyParser reads the Python literal of a header.
type npyParser struct {
	src  *source
	base int64 // file offset of data[0]
	data []byte
	pos  int
}

func (p *npyParser) bad(what, want string) error {
	got := "the end"
	if p.pos < len(p.data) {
		got = strconv.QuoteRune(rune(p.data[p.pos]))
	}
	return p.src.broken(p.base+int64(p.pos), what, got, want)
}

func (p *npyParser) space() {
	for p.pos < len(p.data) && (p.data[p.pos] == ' ' || p.data[p.pos] == '\t') {
		p.pos++
	}
}

// take skips spaces and then c, if it is there.
func (p *npyParser) take(c byte) bool {
	p.space()
	if p.pos < len(p.data) && p.data[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

// text reads a string in either kind of quotes, without escapes.
func (p *npyParser) text(what string) (string, error) {
	p.space()
	if p.pos == len(p.data) || p.data[p.pos] != '\'' && p.data[p.pos] != '"' {
		return "", p.bad(what, "a string")
	}
	quote := p.data[p.pos]
	for i := p.pos + 1; i < len(p.data); i++ {
		switch c := p.data[i]; {
		case c == quote:
			s := string(p.data[p.pos+1 : i])
			p.pos = i + 1
			return s, nil
		case c == '\\' || c < ' ' || c > '~':
			p.pos = i
			return "", p.bad(what, "printable ASCII without escapes")
		}
	}
	p.pos = len(p.data)
	return "", p.bad(what, "a closing quote")
}

// header reads the whole dict and returns the shape.
func (p *npyParser) header() (shape []int, err error) {
	if !p.take('{') {
		return nil, p.bad("header", "'{'")
	}
	seen := map[string]bool{}
	for !p.take('}') {
		at := p.pos
		key, err := p.text("key")
		if err != nil {
			return nil, err
		}
		if seen[key] {
			p.pos = at
			return nil, p.bad(fmt.Sprintf("key %q twice", key), "each key once")
		}
		seen[key] = true
		if !p.take(':') {
			return nil, p.bad(fmt.Sprintf("after key %q", key), "':'")
		}
		p.space()
		switch key {
		case "descr":
			err = p.descr()
		case "fortran_order":
			err = p.fortranOrder()
		case "shape":
			shape, err = p.shape()
		default:
			p.pos = at
			err = p.bad(fmt.Sprintf("key %q", key), "descr, fortran_order and shape only")
		}
		if err != nil {
			return nil, err
		}
		if !p.take(',') {
			if !p.take('}') {
				return nil, p.bad("after a value", "',' or '}'")
			}
			break
		}
	}
	for _, key := range []string{"descr", "fortran_order", "shape"} {
		if !seen[key] {
			return nil, p.bad("header without "+key, "descr, fortran_order and shape")
		}
	}
	p.space()
	if p.pos != len(p.data)-1 || p.data[p.pos] != '\n' {
		return nil, p.bad("after the header", "spaces and one line feed")
	}
	return shape, nil
}

func (p *npyParser) descr() error {
	at := p.pos
	unsupported := func(got string) error {
		return &UnsupportedError{File: p.src.file, Format: p.src.format, Offset: p.base + int64(at), What: "descr", Got: got, Supported: "'<f4'"}
	}
	if at < len(p.data) && p.data[at] == '[' {
		return unsupported("a structured type")
	}
	s, err := p.text("descr")
	if err != nil {
		return err
	}
	if s != "<f4" {
		return unsupported(strconv.Quote(s))
	}
	return nil
}

func (p *npyParser) fortranOrder() error {
	for _, word := range []string{"False", "True"} {
		if len(p.data)-p.pos >= len(word) && string(p.data[p.pos:p.pos+len(word)]) == word {
			if word == "True" {
				return &UnsupportedError{File: p.src.file, Format: p.src.format, Offset: p.base + int64(p.pos),
					What: "fortran_order", Got: word, Supported: "False"}
			}
			p.pos += len(word)
			return nil
		}
	}
	return p.bad("fortran_order", "False")
}

// shape reads a tuple: (), (3,), (3, 4), (3, 4,).
func (p *npyParser) shape() ([]int, error) {
	if !p.take('(') {
		return nil, p.bad("shape", "'('")
	}
	shape := []int{}
	for !p.take(')') {
		p.space()
		end := p.pos
		for end < len(p.data) && p.data[end] >= '0' && p.data[end] <= '9' {
			end++
		}
		what := fmt.Sprintf("shape[%d]", len(shape))
		n, err := strconv.Atoi(string(p.data[p.pos:end]))
		if err != nil {
			return nil, p.bad(what, "an integer in [0, 2^63)")
		}
		p.pos = end
		shape = append(shape, n)
		if p.take(',') {
			continue
		}
		if len(shape) == 1 { // (3) is a number, not a tuple
			return nil, p.bad("after "+what, "','")
		}
		if !p.take(')') {
			return nil, p.bad("after "+what, "',' or ')'")
		}
		break
	}
	return shape, nil
}
