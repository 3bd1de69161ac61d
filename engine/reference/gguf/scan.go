package gguf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// scanner reads a header from front to back and knows how many bytes are left.
// The first error sticks; what is read behind it is zero.
type scanner struct {
	file string
	in   *bufio.Reader
	pos  int64
	size int64
	err  error
	buf  [8]byte
}

func newScanner(r io.ReaderAt, size int64, file string) *scanner {
	return &scanner{file: file, in: bufio.NewReaderSize(io.NewSectionReader(r, 0, size), 64<<10), size: size}
}

// left is the number of bytes behind the scanner.
func (s *scanner) left() uint64 { return uint64(s.size - s.pos) }

// fail reports a fault at byte at.
func (s *scanner) fail(at int64, what, got, want string) {
	if s.err == nil {
		s.err = &FormatError{File: s.file, Offset: at, What: what, Got: got, Want: want}
	}
}

func (s *scanner) refuse(what, why string) {
	if s.err == nil {
		s.err = unsupported(s.file, what, why)
	}
}

// read fills p.
func (s *scanner) read(p []byte, what string) bool {
	if s.err != nil {
		return false
	}
	if uint64(len(p)) > s.left() {
		s.fail(s.pos, what, fmt.Sprintf("%d bytes to the end", s.left()), fmt.Sprint(len(p)))
		return false
	}
	n, err := io.ReadFull(s.in, p)
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF): // it shrank
		s.fail(s.pos, what, fmt.Sprintf("%d bytes to the end", n), fmt.Sprint(len(p)))
	case err != nil:
		s.err = fmt.Errorf("gguf: %s: read at byte 0x%X: %w", s.file, s.pos, err)
	}
	s.pos += int64(n)
	return s.err == nil
}

func (s *scanner) u8(what string) uint8 {
	if !s.read(s.buf[:1], what) {
		return 0
	}
	return s.buf[0]
}

func (s *scanner) u32(what string) uint32 {
	if !s.read(s.buf[:4], what) {
		return 0
	}
	return binary.LittleEndian.Uint32(s.buf[:4])
}

func (s *scanner) u64(what string) uint64 {
	if !s.read(s.buf[:8], what) {
		return 0
	}
	return binary.LittleEndian.Uint64(s.buf[:8])
}

// count reads a number of elements that take at least least bytes each.
func (s *scanner) count(what string, least uint64) int {
	at := s.pos
	n := s.u64(what)
	if most := s.left() / least; s.err == nil && n > most {
		s.fail(at, what, fmt.Sprint(n), fmt.Sprintf("at most %d, for which the file has bytes", most))
	}
	if s.err != nil {
		return 0
	}
	return int(n)
}

// text reads a length and as many bytes.
func (s *scanner) text(what string, most uint64) string {
	at := s.pos
	n := s.u64(what + ": length")
	switch {
	case s.err != nil:
		return ""
	case n > s.left():
		s.fail(at, what+": length", fmt.Sprint(n), fmt.Sprintf("at most %d, the bytes that are left", s.left()))
		return ""
	case n > most:
		s.fail(at, what+": length", fmt.Sprint(n), fmt.Sprintf("at most %d", most))
		return ""
	}
	p := make([]byte, n)
	if !s.read(p, what) {
		return ""
	}
	return string(p)
}
