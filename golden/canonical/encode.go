package canonical

import (
	"crypto/sha256"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Order is the order in which an object's members are written.
type Order uint8

const (
	// InsertionOrder is that of the text, or of the Go slice.
	InsertionOrder Order = iota
	// SortedKeys is by code point, as Python's sort_keys=True has it.
	SortedKeys
)

// Append appends the canonical bytes of v. A value from [Parse] has some; one made
// in Go may hold what JSON can't, which is a [*ValueError].
func (v Value) Append(dst []byte, order Order) ([]byte, error) {
	e := encoder{buf: dst, order: order}
	err := e.value(v, 0)
	return e.buf, err
}

// Write writes the canonical bytes of v, a piece at a time.
func (v Value) Write(w io.Writer, order Order) error {
	e := encoder{w: w, order: order, buf: make([]byte, 0, 2*flushBytes)}
	if err := e.value(v, 0); err != nil {
		return err
	}
	_, err := w.Write(e.buf)
	return err
}

// SHA256 is the SHA-256 of the canonical bytes of v.
func (v Value) SHA256(order Order) (sum [sha256.Size]byte, err error) {
	h := sha256.New()
	if err := v.Write(h, order); err != nil {
		return sum, err
	}
	h.Sum(sum[:0])
	return sum, nil
}

// String is the start of the canonical bytes, for people.
func (v Value) String() string {
	e := encoder{short: true}
	if err := e.value(v, 0); err != nil {
		return err.Error()
	}
	return shorten(string(e.buf))
}

// flushBytes is when the buffer goes to the writer.
const flushBytes = 32 << 10

type encoder struct {
	buf   []byte
	order Order
	w     io.Writer // nil keeps everything in buf
	short bool      // no more is needed than shorten leaves
}

// flush makes room; more is false where nothing more is needed.
func (e *encoder) flush() (more bool, err error) {
	if e.short && len(e.buf) > 1<<10 {
		return false, nil
	}
	if e.w != nil && len(e.buf) >= flushBytes {
		_, err = e.w.Write(e.buf)
		e.buf = e.buf[:0]
	}
	return true, err
}

func (e *encoder) value(v Value, depth int) error {
	if depth > MaxDepth {
		return &ValueError{What: "nesting", Got: "deeper nesting", Want: fmt.Sprintf("at most %d levels", MaxDepth)}
	}
	switch v.kind {
	case KindNull:
		e.buf = append(e.buf, "null"...)
	case KindBool:
		e.buf = strconv.AppendBool(e.buf, v.bits == 1)
	case KindInteger:
		if big, ok := v.ref.(bigInteger); ok {
			e.buf = append(e.buf, big...)
			return nil
		}
		e.buf = strconv.AppendInt(e.buf, int64(v.bits), 10)
	case KindFloat:
		f := math.Float64frombits(v.bits)
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return &ValueError{What: "float", Got: fmt.Sprint(f), Want: "a finite one"}
		}
		e.buf = append(e.buf, FloatText(f)...)
	case KindString:
		s, _ := v.ref.(string)
		return e.str(s)
	case KindArray:
		return e.array(v, depth)
	case KindObject:
		return e.object(v.Members(), depth)
	}
	return nil
}

func (e *encoder) str(s string) (err error) {
	if e.buf, err = jsontext.AppendQuote(e.buf, s); err != nil {
		return &ValueError{What: "string", Got: strconv.QuoteToASCII(shorten(s)), Want: "UTF-8"}
	}
	return nil
}

func (e *encoder) array(v Value, depth int) error {
	e.buf = append(e.buf, '[')
	small, _ := v.ref.([]int64)
	for i, n := range small {
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		e.buf = strconv.AppendInt(e.buf, n, 10)
		if i%1024 == 0 {
			if more, err := e.flush(); !more || err != nil {
				return err
			}
		}
	}
	all, _ := v.ref.([]Value)
	for i, x := range all {
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		if err := e.value(x, depth+1); err != nil {
			return err
		}
		if more, err := e.flush(); !more || err != nil {
			return err
		}
	}
	e.buf = append(e.buf, ']')
	return nil
}

func (e *encoder) object(members []Member, depth int) error {
	sorted := slices.Clone(members)
	slices.SortFunc(sorted, func(a, b Member) int { return strings.Compare(a.Key, b.Key) })
	for i := 1; i < len(sorted); i++ {
		if sorted[i].Key == sorted[i-1].Key {
			return &ValueError{What: "object", Got: fmt.Sprintf("key %q twice", sorted[i].Key), Want: "each key once"}
		}
	}
	if e.order == SortedKeys {
		members = sorted
	}
	e.buf = append(e.buf, '{')
	for i, m := range members {
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		if err := e.str(m.Key); err != nil {
			return err
		}
		e.buf = append(e.buf, ':')
		if err := e.value(m.Value, depth+1); err != nil {
			return err
		}
		if more, err := e.flush(); !more || err != nil {
			return err
		}
	}
	e.buf = append(e.buf, '}')
	return nil
}
