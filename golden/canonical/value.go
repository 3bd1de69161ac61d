package canonical

import (
	"math"
	"slices"
	"strconv"
)

// Kind is what a [Value] is.
type Kind uint8

// The kinds of values. An integer and a float are two kinds, as in Python.
const (
	KindNull Kind = iota
	KindBool
	KindInteger
	KindFloat
	KindString
	KindArray
	KindObject
)

func (k Kind) String() string {
	return [...]string{"null", "a boolean", "an integer", "a float", "a string", "an array", "an object"}[k]
}

// Value is a JSON value that doesn't change. The zero Value is null.
type Value struct {
	// ref holds string, []Value, []int64 or []Member; for a number its spelling,
	// where bits don't give it back.
	ref  any
	bits uint64 // a boolean, an int64, a float64
	kind Kind
}

// bigInteger is the spelling of an integer beyond int64, spelling that of a number
// which Python writes in another way.
type (
	bigInteger string
	spelling   string
)

// Member is a key of an object with its value.
type Member struct {
	Key   string
	Value Value
}

// Null returns null.
func Null() Value { return Value{} }

// Bool returns true or false.
func Bool(b bool) Value {
	v := Value{kind: KindBool}
	if b {
		v.bits = 1
	}
	return v
}

// Int returns an integer.
func Int(i int64) Value { return Value{kind: KindInteger, bits: uint64(i)} }

// Float returns a float. One that isn't finite can't be written.
func Float(f float64) Value { return Value{kind: KindFloat, bits: math.Float64bits(f)} }

// String returns a string. One that isn't UTF-8 can't be written.
func String(s string) Value { return Value{kind: KindString, ref: s} }

// Array returns an array. The slice isn't copied.
func Array(elements ...Value) Value { return Value{kind: KindArray, ref: elements} }

// Ints returns an array of integers. The slice isn't copied.
func Ints(elements []int64) Value { return Value{kind: KindArray, ref: elements} }

// Object returns an object. One with a key twice can't be written. The slice
// isn't copied.
func Object(members ...Member) Value { return Value{kind: KindObject, ref: members} }

// Kind returns what v is.
func (v Value) Kind() Kind { return v.kind }

// Bool returns a boolean.
func (v Value) Bool() (b, ok bool) { return v.bits == 1, v.kind == KindBool }

// Int returns an integer; ok is false for one beyond int64.
func (v Value) Int() (i int64, ok bool) {
	_, big := v.ref.(bigInteger)
	return int64(v.bits), v.kind == KindInteger && !big
}

// Float returns a float; ok is false for an integer.
func (v Value) Float() (f float64, ok bool) {
	return math.Float64frombits(v.bits), v.kind == KindFloat
}

// Text returns a string.
func (v Value) Text() (s string, ok bool) {
	s, ok = v.ref.(string)
	return s, ok && v.kind == KindString
}

// Number returns a number as the text spelled it, or as Python writes it where it
// comes from Go.
func (v Value) Number() (text string, ok bool) {
	switch s := v.ref.(type) {
	case bigInteger:
		return string(s), true
	case spelling:
		return string(s), true
	}
	switch v.kind {
	case KindInteger:
		return strconv.FormatInt(int64(v.bits), 10), true
	case KindFloat:
		return FloatText(math.Float64frombits(v.bits)), true
	}
	return "", false
}

// Ints returns the elements of an array that holds nothing but integers of int64,
// each spelled as Python writes it. The caller doesn't change them.
func (v Value) Ints() (elements []int64, ok bool) {
	if v.kind != KindArray {
		return nil, false
	}
	switch e := v.ref.(type) {
	case []int64:
		return e, true
	case []Value:
		return nil, len(e) == 0
	}
	return nil, true
}

// Len returns the number of elements or members, 0 for a scalar.
func (v Value) Len() int {
	switch e := v.ref.(type) {
	case []int64:
		return len(e)
	case []Value:
		return len(e)
	case []Member:
		return len(e)
	}
	return 0
}

// Index returns element i of an array, null for a value that has no such element.
func (v Value) Index(i int) Value {
	if i < 0 || i >= v.Len() {
		return Value{}
	}
	switch e := v.ref.(type) {
	case []int64:
		return Int(e[i])
	case []Value:
		return e[i]
	}
	return Value{}
}

// Members returns the members of an object, in order. The caller doesn't change
// them.
func (v Value) Members() []Member {
	m, _ := v.ref.([]Member)
	return m
}

// Get returns a member of an object.
func (v Value) Get(key string) (member Value, ok bool) {
	for _, m := range v.Members() {
		if m.Key == key {
			return m.Value, true
		}
	}
	return Value{}, false
}

// With returns a copy of an object with a member replaced, or added at the end.
func (v Value) With(key string, member Value) Value {
	members := slices.Clone(v.Members())
	for i, m := range members {
		if m.Key == key {
			members[i].Value = member
			return Object(members...)
		}
	}
	return Object(append(members, Member{key, member})...)
}

// Without returns a copy of an object that lacks a member.
func (v Value) Without(key string) Value {
	return Object(slices.DeleteFunc(slices.Clone(v.Members()), func(m Member) bool { return m.Key == key })...)
}
