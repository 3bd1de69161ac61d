package dumpfmt

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// maxDepth bounds nesting, so that a hostile file can't exhaust the stack.
const maxDepth = 100

// jsonScanner walks one JSON text (RFC 8259) strictly: a repeated key, invalid
// UTF-8, an unpaired surrogate and anything after the value are errors.
// encoding/json replaces bad UTF-8, lets the last of two equal keys win and
// matches keys in any case; each of these would read another file than the one
// on disk.
type jsonScanner struct {
	src   *source
	base  int64 // file offset of data[0]
	data  []byte
	pos   int
	depth int
}

func (s *jsonScanner) bad(pos int, what, got, want string) error {
	return s.src.broken(s.base+int64(pos), what, got, want)
}

// found describes the byte at pos.
func (s *jsonScanner) found(pos int) string {
	if pos >= len(s.data) {
		return "the end"
	}
	if pos == 0 && HasBOM(s.data) {
		return bomText
	}
	return strconv.QuoteRune(rune(s.data[pos]))
}

func (s *jsonScanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

// peek returns the next byte after white space, 0 at the end.
func (s *jsonScanner) peek() byte {
	s.space()
	if s.pos < len(s.data) {
		return s.data[s.pos]
	}
	return 0
}

func (s *jsonScanner) accept(c byte) bool {
	if s.peek() != c || s.pos >= len(s.data) {
		return false
	}
	s.pos++
	return true
}

func (s *jsonScanner) expect(c byte, what string) error {
	if !s.accept(c) {
		return s.bad(s.pos, what, s.found(s.pos), strconv.QuoteRune(rune(c)))
	}
	return nil
}

// end demands that nothing follows.
func (s *jsonScanner) end() error {
	s.space()
	if s.pos < len(s.data) {
		return s.bad(s.pos, "after the JSON value", s.found(s.pos), "the end")
	}
	return nil
}

func (s *jsonScanner) enter(what string) error {
	if s.depth++; s.depth > maxDepth {
		return s.bad(s.pos, what, "deeper nesting", fmt.Sprintf("at most %d levels", maxDepth))
	}
	return nil
}

// object calls fn for each member, with the scanner before its value.
func (s *jsonScanner) object(what string, fn func(key string, keyPos int) error) error {
	if err := s.expect('{', what); err != nil {
		return err
	}
	if err := s.enter(what); err != nil {
		return err
	}
	defer func() { s.depth-- }()
	if s.accept('}') {
		return nil
	}
	seen := map[string]struct{}{}
	for {
		s.space()
		keyPos := s.pos
		key, err := s.str("key in " + what)
		if err != nil {
			return err
		}
		if _, dup := seen[key]; dup {
			return s.bad(keyPos, what, fmt.Sprintf("key %q twice", key), "each key once")
		}
		seen[key] = struct{}{}
		if err := s.expect(':', fmt.Sprintf("after key %q in %s", key, what)); err != nil {
			return err
		}
		if err := fn(key, keyPos); err != nil {
			return err
		}
		if s.accept('}') {
			return nil
		}
		if err := s.expect(',', "member of "+what); err != nil {
			return err
		}
	}
}

// array calls fn for each element, with the scanner before it.
func (s *jsonScanner) array(what string, fn func(i int) error) error {
	if err := s.expect('[', what); err != nil {
		return err
	}
	if err := s.enter(what); err != nil {
		return err
	}
	defer func() { s.depth-- }()
	if s.accept(']') {
		return nil
	}
	for i := 0; ; i++ {
		if err := fn(i); err != nil {
			return err
		}
		if s.accept(']') {
			return nil
		}
		if err := s.expect(',', "element of "+what); err != nil {
			return err
		}
	}
}

// number returns a number's own spelling.
func (s *jsonScanner) number(what string) (string, error) {
	s.space()
	start := s.pos
	digits := func() bool {
		from := s.pos
		for s.pos < len(s.data) && '0' <= s.data[s.pos] && s.data[s.pos] <= '9' {
			s.pos++
		}
		return s.pos > from
	}
	next := func(set string) bool {
		for i := range len(set) {
			if s.pos < len(s.data) && s.data[s.pos] == set[i] {
				s.pos++
				return true
			}
		}
		return false
	}
	next("-")
	ok := next("0") || digits()
	if ok && next(".") {
		ok = digits()
	}
	if ok && next("eE") {
		next("+-")
		ok = digits()
	}
	if !ok {
		return "", s.bad(s.pos, what, s.found(s.pos), "a number")
	}
	return string(s.data[start:s.pos]), nil
}

// uint reads an integer in [0, limit], written without sign, point or exponent.
func (s *jsonScanner) uint(what string, limit uint64) (uint64, error) {
	want := fmt.Sprintf("an integer in [0, %d]", limit)
	s.space()
	start := s.pos
	if c := s.peek(); c != '-' && (c < '0' || c > '9') {
		return 0, s.bad(start, what, s.found(start), want)
	}
	n, err := s.number(what)
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseUint(n, 10, 64)
	if err != nil || v > limit {
		return 0, s.bad(start, what, n[:min(len(n), 40)], want)
	}
	return v, nil
}

// skip reads any value and returns its bytes, a part of data.
func (s *jsonScanner) skip(what string) (json.RawMessage, error) {
	s.space()
	start := s.pos
	var err error
	switch c := s.peek(); c {
	case '{':
		err = s.object(what, func(key string, _ int) error {
			_, err := s.skip(key)
			return err
		})
	case '[':
		err = s.array(what, func(int) error {
			_, err := s.skip("element of " + what)
			return err
		})
	case '"':
		_, err = s.str(what)
	case 't', 'f', 'n':
		word := map[byte]string{'t': "true", 'f': "false", 'n': "null"}[c]
		if s.pos+len(word) > len(s.data) || string(s.data[s.pos:s.pos+len(word)]) != word {
			return nil, s.bad(start, what, s.found(start), word)
		}
		s.pos += len(word)
	default:
		_, err = s.number(what)
	}
	if err != nil {
		return nil, err
	}
	return s.data[start:s.pos], nil
}
