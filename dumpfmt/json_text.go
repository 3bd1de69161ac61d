package dumpfmt

import (
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// str reads a string.
func (s *jsonScanner) str(what string) (string, error) {
	if err := s.expect('"', what); err != nil {
		return "", err
	}
	var out []byte
	start := s.pos
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; {
		case c == '"':
			out = append(out, s.data[start:s.pos]...)
			s.pos++
			return string(out), nil
		case c < 0x20:
			return "", s.bad(s.pos, what, fmt.Sprintf("control character 0x%02X", c), "an escape sequence")
		case c == '\\':
			out = append(out, s.data[start:s.pos]...)
			r, err := s.escape(what)
			if err != nil {
				return "", err
			}
			out = utf8.AppendRune(out, r)
			start = s.pos
		case c < utf8.RuneSelf:
			s.pos++
		default:
			r, n := utf8.DecodeRune(s.data[s.pos:])
			if r == utf8.RuneError && n == 1 {
				return "", s.bad(s.pos, what, fmt.Sprintf("byte 0x%02X", c), "UTF-8")
			}
			s.pos += n
		}
	}
	return "", s.bad(s.pos, what, "the end", "the string's closing quote")
}

// escape reads one escape sequence, a surrogate pair as one.
func (s *jsonScanner) escape(what string) (rune, error) {
	start := s.pos
	s.pos++
	if s.pos >= len(s.data) {
		return 0, s.bad(s.pos, what, "the end", "an escape sequence")
	}
	c := s.data[s.pos]
	s.pos++
	switch c {
	case '"', '\\', '/':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
		r, err := s.hex4(what)
		if err != nil || !utf16.IsSurrogate(r) {
			return r, err
		}
		if s.pos+1 < len(s.data) && s.data[s.pos] == '\\' && s.data[s.pos+1] == 'u' {
			s.pos += 2
			low, err := s.hex4(what)
			if err != nil {
				return 0, err
			}
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
				return r, nil
			}
		}
		return 0, s.bad(start, what, "an unpaired surrogate", "text that UTF-8 can hold")
	}
	return 0, s.bad(start, what, "escape "+s.found(start+1), "an escape sequence of JSON")
}

func (s *jsonScanner) hex4(what string) (rune, error) {
	if s.pos+4 > len(s.data) {
		return 0, s.bad(len(s.data), what, "the end", "four hexadecimal digits")
	}
	v := rune(0)
	for _, c := range s.data[s.pos : s.pos+4] {
		switch {
		case '0' <= c && c <= '9':
			v = v<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			v = v<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, s.bad(s.pos, what, fmt.Sprintf("%q", s.data[s.pos:s.pos+4]), "four hexadecimal digits")
		}
	}
	s.pos += 4
	return v, nil
}
