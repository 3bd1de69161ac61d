package canonical

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxDepth is how deep arrays and objects may nest: CPython 3.11 gives up, with a
// RecursionError, a few levels above.
const MaxDepth = 990

// Parse reads one JSON text; name stands for it in errors, which are a
// [*SyntaxError]. The value doesn't refer to data.
func Parse(name string, data []byte) (Value, error) { return parse(name, data, math.MaxInt) }

// ParseAtMost is [Parse] of a text that holds no more than that many values, by a rule
// of our own. The elements of an array of integers don't count; any other value takes
// up to 100 bytes of memory, for as little as two of the text.
func ParseAtMost(name string, data []byte, values int) (Value, error) {
	return parse(name, data, values)
}

func parse(name string, data []byte, most int, o ...jsontext.Options) (Value, error) {
	p := &parser{name: name, most: most, d: jsontext.NewDecoder(bytes.NewBuffer(data), o...), keys: map[string]string{}}
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		return Value{}, &SyntaxError{File: name, Got: "a byte order mark", Want: "a JSON value"}
	}
	v, err := p.value()
	if err != nil {
		return Value{}, p.syntax(err, int64(len(data)))
	}
	if rest := bytes.TrimLeft(data[p.d.InputOffset():], " \t\r\n"); len(rest) > 0 {
		return Value{}, &SyntaxError{File: name, Offset: int64(len(data) - len(rest)), Got: "more after the JSON value", Want: "the end"}
	}
	return v, nil
}

type parser struct {
	name  string
	d     *jsontext.Decoder
	depth int
	// most is how many values may be made, made how many are.
	most, made int
	// keys has each key once, however many objects share it.
	keys map[string]string
}

// syntax gives an error of the decoder this package's form.
func (p *parser) syntax(err error, size int64) error {
	var own *SyntaxError
	if errors.As(err, &own) {
		return err
	}
	e := &SyntaxError{File: p.name, Offset: size, Got: "the end", Want: "a JSON value"}
	var s *jsontext.SyntacticError
	switch {
	case errors.As(err, &s) && errors.Is(err, jsontext.ErrDuplicateName):
		e.Offset, e.Pointer, e.Own = s.ByteOffset, string(s.JSONPointer), true
		e.Got, e.Want = fmt.Sprintf("key %q twice", s.JSONPointer.LastToken()), "each key once"
	case errors.As(err, &s) && errors.Is(err, io.ErrUnexpectedEOF):
		e.Pointer, e.Want = string(s.JSONPointer), "the rest of the JSON value"
	case errors.As(err, &s):
		e.Offset, e.Pointer, e.Got, e.Want = s.ByteOffset, string(s.JSONPointer), s.Err.Error(), ""
	}
	return e
}

// count counts values that are made.
func (p *parser) count(values int) error {
	if p.made += values; p.made <= p.most {
		return nil
	}
	return &SyntaxError{File: p.name, Offset: p.d.InputOffset(), Got: "more values", Own: true,
		Want: fmt.Sprintf("at most %d, those in arrays of integers not counted", p.most)}
}

func (p *parser) value() (Value, error) {
	if err := p.count(1); err != nil {
		return Value{}, err
	}
	switch p.d.PeekKind() {
	case jsontext.KindBeginArray:
		return p.array()
	case jsontext.KindBeginObject:
		return p.object()
	case jsontext.KindNumber:
		raw, err := p.d.ReadValue()
		if err != nil {
			return Value{}, err
		}
		return p.number(raw)
	}
	t, err := p.d.ReadToken()
	if err != nil {
		return Value{}, err
	}
	switch t.Kind() {
	case jsontext.KindString:
		return String(t.String()), nil
	case jsontext.KindTrue, jsontext.KindFalse:
		return Bool(t.Bool()), nil
	}
	return Null(), nil
}

func (p *parser) number(raw []byte) (Value, error) {
	v, got, want := number(raw)
	if got != "" {
		return Value{}, &SyntaxError{File: p.name, Offset: p.d.InputOffset() - int64(len(raw)), Pointer: string(p.d.StackPointer()), Got: got, Want: want}
	}
	return v, nil
}

// enter reads the start of an array or object.
func (p *parser) enter() error {
	if _, err := p.d.ReadToken(); err != nil {
		return err
	}
	if p.depth++; p.depth > MaxDepth {
		return &SyntaxError{File: p.name, Offset: p.d.InputOffset() - 1, Got: "deeper nesting", Want: fmt.Sprintf("at most %d levels", MaxDepth)}
	}
	return nil
}

// leave reads its end.
func (p *parser) leave() error {
	p.depth--
	_, err := p.d.ReadToken()
	return err
}

// array reads an array. As long as there are only small integers it holds just
// them.
func (p *parser) array() (Value, error) {
	if err := p.enter(); err != nil {
		return Value{}, err
	}
	var small []int64
	var all []Value
	for {
		kind := p.d.PeekKind()
		if kind == jsontext.KindEndArray {
			break
		}
		var v Value
		if kind == jsontext.KindNumber && all == nil {
			raw, err := p.d.ReadValue()
			if err != nil {
				return Value{}, err
			}
			if n, ok := smallInt(raw); ok {
				small = append(small, n)
				continue
			}
			if err = p.count(1); err != nil {
				return Value{}, err
			}
			if v, err = p.number(raw); err != nil {
				return Value{}, err
			}
		} else {
			var err error
			if v, err = p.value(); err != nil {
				return Value{}, err
			}
		}
		if small != nil {
			if err := p.count(len(small)); err != nil {
				return Value{}, err
			}
			all = make([]Value, len(small), len(small)+1)
			for i, n := range small {
				all[i] = Int(n)
			}
			small = nil
		}
		all = append(all, v)
	}
	if all == nil {
		return Ints(small), p.leave()
	}
	return Array(all...), p.leave()
}

func (p *parser) object() (Value, error) {
	if err := p.enter(); err != nil {
		return Value{}, err
	}
	var members []Member
	for p.d.PeekKind() != jsontext.KindEndObject {
		t, err := p.d.ReadToken()
		if err != nil {
			return Value{}, err
		}
		key := t.String()
		if known, ok := p.keys[key]; ok {
			key = known
		} else {
			p.keys[key] = key
		}
		v, err := p.value()
		if err != nil {
			return Value{}, err
		}
		members = append(members, Member{key, v})
	}
	return Object(members...), p.leave()
}
