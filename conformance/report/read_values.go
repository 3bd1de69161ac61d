package report

import (
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/plumbline-go/plumbline/conformance"
)

// decoding fills Go values from a stream of tokens. A decoder for any JSON takes what
// isn't there for zero, which would turn a report that lost a part into a better one:
// here what is missing, null, unknown or given twice is an error.
type decoding struct {
	d       *jsontext.Decoder
	file    string
	version bool // schema_version was seen, and is this one
}

var (
	numberType = reflect.TypeFor[conformance.Number]()
	reportType = reflect.TypeFor[conformance.Report]()
)

func (d *decoding) report() (*conformance.Report, error) {
	rep := new(conformance.Report)
	if err := d.value(reflect.ValueOf(rep).Elem(), anyInt); err != nil {
		return nil, d.versionFirst(err)
	}
	switch tok, err := d.d.ReadToken(); {
	case err == io.EOF:
		return rep, nil
	case err != nil:
		var s *jsontext.SyntacticError
		if errors.As(err, &s) {
			return nil, &FormatError{File: d.file, Offset: s.ByteOffset, Got: "something after the report: " + s.Err.Error(), Want: "its end", Err: err}
		}
		return nil, d.syntax(err)
	default:
		return nil, &FormatError{File: d.file, Offset: d.d.InputOffset(), Got: kindName(tok.Kind()) + " after the report", Want: "its end"}
	}
}

// versionFirst says that the version is another, where that is so, in place of what
// else is of another shape then.
func (d *decoding) versionFirst(err error) error {
	var f *FormatError
	if d.version || !errors.As(err, &f) || f.Err != nil {
		return err
	}
	for {
		tok, broken := d.d.ReadToken()
		if broken != nil {
			return err
		}
		if d.d.StackDepth() != 1 || d.d.StackPointer() != "/schema_version" || tok.Kind() != '0' {
			continue
		}
		if got, broken := strconv.Atoi(tok.String()); broken == nil {
			if other := wrongVersion(d.file, got); other != nil {
				return other
			}
		}
	}
}

// value reads a value, of which a whole number is at least least.
func (d *decoding) value(v reflect.Value, least int64) error {
	t := v.Type()
	if t == numberType {
		return d.number(v)
	}
	switch t.Kind() {
	case reflect.Pointer:
		if d.d.PeekKind() == 'n' {
			_, err := d.token('n', "")
			return err
		}
		v.Set(reflect.New(t.Elem()))
		return d.value(v.Elem(), least)
	case reflect.Struct:
		return d.object(v)
	case reflect.Map:
		return d.members(v)
	case reflect.Slice:
		return d.array(v, least)
	case reflect.String:
		tok, err := d.token('"', "a string")
		if err != nil {
			return err
		}
		s := tok.String()
		if want := allowed[t]; want != nil && !want[s] {
			return d.shape(strconv.Quote(s), "one of "+strings.Join(quoted(t), ", "))
		}
		v.SetString(s)
	case reflect.Bool:
		tok, err := d.d.ReadToken()
		if err != nil {
			return d.syntax(err)
		}
		if k := tok.Kind(); k != 't' && k != 'f' {
			return d.shape(kindName(k), "true or false")
		}
		v.SetBool(tok.Bool())
	case reflect.Int:
		tok, err := d.token('0', "a whole number")
		if err != nil {
			return err
		}
		n, err := strconv.ParseInt(tok.String(), 10, strconv.IntSize)
		if err != nil {
			return d.shape(tok.String(), "a whole number")
		}
		if n < least {
			return d.shape(tok.String(), fmt.Sprintf("at least %d", least))
		}
		v.SetInt(n)
	default:
		panic(fmt.Sprintf("report: a report has a %s, which Read doesn't know", t)) // a test reads every field
	}
	return nil
}

// number reads a Number: NaN and infinities are strings.
func (d *decoding) number(v reflect.Value) error {
	const want = `a number, "NaN", "+Inf" or "-Inf"`
	tok, err := d.d.ReadToken()
	if err != nil {
		return d.syntax(err)
	}
	var x float64
	switch s := tok.String(); {
	case tok.Kind() == '0':
		if x, err = strconv.ParseFloat(s, 64); err != nil {
			return d.shape(s, "a number that a float64 holds")
		}
	case tok.Kind() != '"':
		return d.shape(kindName(tok.Kind()), want)
	case s == "NaN":
		x = math.NaN()
	case s == "+Inf":
		x = math.Inf(1)
	case s == "-Inf":
		x = math.Inf(-1)
	default:
		return d.shape(strconv.Quote(s), want)
	}
	v.SetFloat(x)
	return nil
}

func (d *decoding) object(v reflect.Value) error {
	fields := fieldsOf(v.Type())
	if _, err := d.token('{', "an object"); err != nil {
		return err
	}
	seen := make([]bool, len(fields.list))
	for d.d.PeekKind() != '}' {
		tok, err := d.d.ReadToken()
		if err != nil {
			return d.syntax(err)
		}
		name := tok.String()
		i, ok := fields.byName[name]
		if !ok {
			return d.shape("an unknown key "+strconv.Quote(name), "one of the schema's")
		}
		f := fields.list[i]
		if d.d.PeekKind() == 'n' && !f.nullable {
			_, _ = d.d.ReadToken()
			return d.shape("null", "a value")
		}
		if err := d.value(v.FieldByIndex(f.index), f.least); err != nil {
			return err
		}
		seen[i] = true
		if name == "schema_version" && v.Type() == reportType {
			if err := wrongVersion(d.file, int(v.FieldByIndex(f.index).Int())); err != nil {
				return err
			}
			d.version = true
		}
	}
	if _, err := d.token('}', "its end"); err != nil {
		return err
	}
	for i, f := range fields.list {
		if f.required && !seen[i] {
			return d.shape("no "+f.name, "one")
		}
	}
	return nil
}

func (d *decoding) members(v reflect.Value) error {
	if _, err := d.token('{', "an object"); err != nil {
		return err
	}
	v.Set(reflect.MakeMap(v.Type()))
	for d.d.PeekKind() != '}' {
		tok, err := d.d.ReadToken()
		if err != nil {
			return d.syntax(err)
		}
		name := tok.String()
		item := reflect.New(v.Type().Elem()).Elem()
		if err := d.value(item, anyInt); err != nil {
			return err
		}
		v.SetMapIndex(reflect.ValueOf(name), item)
	}
	_, err := d.token('}', "its end")
	return err
}

func (d *decoding) array(v reflect.Value, least int64) error {
	if _, err := d.token('[', "an array"); err != nil {
		return err
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	for d.d.PeekKind() != ']' {
		item := reflect.New(v.Type().Elem()).Elem()
		if err := d.value(item, least); err != nil {
			return err
		}
		v.Set(reflect.Append(v, item))
	}
	_, err := d.token(']', "its end")
	return err
}

// token reads a token of a kind.
func (d *decoding) token(kind jsontext.Kind, want string) (jsontext.Token, error) {
	tok, err := d.d.ReadToken()
	if err != nil {
		return tok, d.syntax(err)
	}
	if tok.Kind() != kind {
		return tok, d.shape(kindName(tok.Kind()), want)
	}
	return tok, nil
}

// shape is a value of another shape, the one that was read last.
func (d *decoding) shape(got, want string) error {
	return &FormatError{File: d.file, Offset: d.d.InputOffset(), Path: string(d.d.StackPointer()), Got: shorten(got, nameLength), Want: want}
}

// syntax is what the decoder refuses, or what stopped it.
func (d *decoding) syntax(err error) error {
	e := &FormatError{File: d.file, Offset: d.d.InputOffset(), Path: string(d.d.StackPointer()), Want: "a report in JSON", Err: err}
	var s *jsontext.SyntacticError
	switch {
	case errors.Is(err, errTooLarge):
		e.Got, e.Want = err.Error(), "at most as many"
	case err == io.EOF:
		e.Got, e.Err = "an empty file", io.ErrUnexpectedEOF
	case errors.Is(err, io.ErrUnexpectedEOF):
		e.Got, e.Want = "the end of the file", "the rest of the report: it was cut off"
		if errors.As(err, &s) {
			e.Offset = s.ByteOffset
		}
	case errors.As(err, &s):
		e.Offset, e.Got = s.ByteOffset, shorten(s.Err.Error(), sentenceLength)
		if errors.Is(err, jsontext.ErrDuplicateName) {
			e.Path, e.Got, e.Want = string(s.JSONPointer), "a key for the second time", "each once"
		}
	default:
		return fmt.Errorf("report: %sbyte %d: %w", prefix(d.file), e.Offset, err)
	}
	return e
}

func kindName(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '{', '}':
		return "an object"
	}
	return "an array"
}
