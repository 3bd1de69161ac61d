package trace

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/plumbline-go/plumbline/golden/canonical"
)

// Difference is one value in which two documents differ. "nothing" stands for a key
// or an element that one of them doesn't have.
type Difference struct {
	// Path is the place, Field the same with *, for every stage, gate, condition,
	// edge and source. Sources are matched by id.
	Path, Field string
	A, B        string
	// Abs is |a - b|, Rel that over |a|: of a number, or the largest in a list of
	// numbers. NaN where the values are no numbers.
	Abs, Rel float64
}

// FieldSummary is all values of one field.
type FieldSummary struct {
	Field               string
	Compared, Different int
	// MaxAbs and MaxRel are the largest differences of numbers, and At is where the
	// former is; the first difference for values that are no numbers.
	MaxAbs, MaxRel float64
	At             string
}

// Comparison is how two documents differ.
type Comparison struct {
	// Compared is how many values were looked at, Different how many of them differ,
	// without those of Run.
	Compared, Different int
	// Fields has a line for each field, by name.
	Fields []FieldSummary
	// Differences are the first of each field, in the order of the document.
	Differences []Difference
	// Run are the differences of what any two runs differ in: times, memory, the
	// machine.
	Run []Difference
}

// perField bounds the differences that are listed of a field.
const perField = 20

// Compare lists how document b differs from a: every key and every value of either.
// Numbers are compared as numbers, so 1 equals 1.0.
func Compare(a, b *Document) *Comparison {
	c := &comparer{out: &Comparison{}, fields: map[string]*FieldSummary{}, star: map[string]bool{}}
	for _, d := range []*Document{a, b} {
		l := newLayout(d.Trace)
		for _, names := range [][]string{l.conditions, l.edges, l.stages, l.gates} {
			for _, n := range names {
				c.star[n] = true
			}
		}
	}
	c.value("", "", a.value(), b.value())
	for _, f := range c.fields {
		c.out.Fields = append(c.out.Fields, *f)
	}
	slices.SortFunc(c.out.Fields, func(x, y FieldSummary) int { return cmp.Compare(x.Field, y.Field) })
	return c.out
}

type comparer struct {
	out    *Comparison
	fields map[string]*FieldSummary
	star   map[string]bool
}

// volatile are the fields in which any two runs differ.
func volatile(field string) bool {
	return field == "captured_at" || strings.HasPrefix(field, "execution.") ||
		field == "sources[*].forward_seconds" || field == "sources[*].peak_cuda_memory_allocated_bytes"
}

func (c *comparer) value(path, field string, a, b canonical.Value) {
	ka, kb := a.Kind(), b.Kind()
	switch {
	case ka == canonical.KindObject && kb == canonical.KindObject:
		c.object(path, field, a, b)
	case ka == canonical.KindArray && kb == canonical.KindArray && field == "sources":
		c.sources(a, b)
	default:
		c.leaf(path, field, a.String(), b.String(), a, b)
	}
}

func (c *comparer) object(path, field string, a, b canonical.Value) {
	join := func(at, key string) string {
		if at == "" {
			return key
		}
		return at + "." + key
	}
	name := func(key string) string {
		if c.star[key] {
			return "*"
		}
		return key
	}
	for _, m := range a.Members() {
		at, of := join(path, m.Key), join(field, name(m.Key))
		if other, ok := b.Get(m.Key); ok {
			c.value(at, of, m.Value, other)
		} else {
			c.add(Difference{at, of, m.Value.String(), "nothing", math.NaN(), math.NaN()})
		}
	}
	for _, m := range b.Members() {
		if _, ok := a.Get(m.Key); !ok {
			c.add(Difference{join(path, m.Key), join(field, name(m.Key)), "nothing", m.Value.String(), math.NaN(), math.NaN()})
		}
	}
}

// sources compares the sources of the same id.
func (c *comparer) sources(a, b canonical.Value) {
	byID := func(v canonical.Value) (ids []string, of map[string]canonical.Value) {
		of = map[string]canonical.Value{}
		for i := range v.Len() {
			id := "?"
			if m, ok := v.Index(i).Get("id"); ok {
				id, _ = m.Text()
			}
			ids, of[id] = append(ids, id), v.Index(i)
		}
		return ids, of
	}
	idsA, ofA := byID(a)
	idsB, ofB := byID(b)
	for _, id := range idsA {
		path := "sources[" + id + "]"
		if other, ok := ofB[id]; ok {
			c.value(path, "sources[*]", ofA[id], other)
		} else {
			c.add(Difference{path, "sources[*]", "the source", "nothing", math.NaN(), math.NaN()})
		}
	}
	for _, id := range idsB {
		if _, ok := ofA[id]; !ok {
			c.add(Difference{"sources[" + id + "]", "sources[*]", "nothing", "the source", math.NaN(), math.NaN()})
		}
	}
	if !slices.Equal(idsA, idsB) {
		c.leaf("sources, order", "sources, order", fmt.Sprint(idsA), fmt.Sprint(idsB), canonical.Null(), canonical.Null())
	}
}

// leaf compares two values that aren't taken apart: scalars and lists.
func (c *comparer) leaf(path, field, textA, textB string, a, b canonical.Value) {
	d := Difference{path, field, textA, textB, math.NaN(), math.NaN()}
	if abs, rel, ok := numeric(a, b); ok {
		if abs == 0 {
			c.same(field)
			return
		}
		d.Abs, d.Rel = abs, rel
		c.add(d)
		return
	}
	if equal(a, b) && textA == textB {
		c.same(field)
		return
	}
	c.add(d)
}

// numeric is the largest difference of two numbers, or of two lists of as many.
func numeric(a, b canonical.Value) (abs, rel float64, ok bool) {
	if x, isX := floatOf(a); isX {
		y, isY := floatOf(b)
		if !isY {
			return 0, 0, false
		}
		if abs = math.Abs(x - y); abs > 0 {
			rel = abs / math.Abs(x)
		}
		return abs, rel, true
	}
	if a.Kind() != canonical.KindArray || b.Kind() != canonical.KindArray || a.Len() != b.Len() || a.Len() == 0 {
		return 0, 0, false
	}
	for i := range a.Len() {
		x, y, isNumber := numeric(a.Index(i), b.Index(i))
		if !isNumber {
			return 0, 0, false
		}
		abs, rel = math.Max(abs, x), math.Max(rel, y)
	}
	return abs, rel, true
}

// equal compares the canonical bytes.
func equal(a, b canonical.Value) bool {
	x, errX := a.Append(nil, canonical.SortedKeys)
	y, errY := b.Append(nil, canonical.SortedKeys)
	return errX == nil && errY == nil && slices.Equal(x, y)
}

func (c *comparer) field(name string) *FieldSummary {
	f := c.fields[name]
	if f == nil {
		f = &FieldSummary{Field: name}
		c.fields[name] = f
	}
	return f
}

func (c *comparer) same(field string) {
	if !volatile(field) {
		c.out.Compared++
		c.field(field).Compared++
	}
}

func (c *comparer) add(d Difference) {
	if volatile(d.Field) {
		c.out.Run = append(c.out.Run, d)
		return
	}
	c.out.Compared++
	c.out.Different++
	f := c.field(d.Field)
	f.Compared++
	f.Different++
	if f.At == "" || d.Abs > f.MaxAbs {
		f.At = d.Path
	}
	if d.Abs > f.MaxAbs { // not for NaN
		f.MaxAbs = d.Abs
	}
	if d.Rel > f.MaxRel {
		f.MaxRel = d.Rel
	}
	if f.Different <= perField {
		c.out.Differences = append(c.out.Differences, d)
	}
}
