package trace

import (
	"fmt"
	"slices"

	"github.com/plumbline-go/plumbline/golden/canonical"
)

// object is one JSON object of a document, being written or being read. Each type
// lists its members once, in the order of the document, for both.
type object struct {
	reading bool
	out     []canonical.Member // writing

	in   canonical.Value // reading
	path string
	seen []string
	err  *FormatError // shared by all objects of a document
}

// encode lists members and returns the object.
func encode(fields func(*object)) canonical.Value {
	o := &object{}
	fields(o)
	return canonical.Object(o.out...)
}

// decode reads an object that has exactly the listed members.
func decode(v canonical.Value, path string, err *FormatError, fields func(*object)) {
	o := &object{reading: true, in: v, path: path, err: err}
	if v.Kind() != canonical.KindObject {
		o.bad(path, v.Kind().String(), "an object")
		return
	}
	fields(o)
	for _, m := range v.Members() {
		if !slices.Contains(o.seen, m.Key) {
			o.bad(o.at(m.Key), "an unknown key", "none but "+fmt.Sprint(o.seen))
			return
		}
	}
}

// bad keeps the first error.
func (o *object) bad(path, got, want string) {
	if o.err.Path == "" {
		if path == "" {
			path = "the document"
		}
		o.err.Path, o.err.Got, o.err.Want = path, got, want
	}
}

func (o *object) failed() bool { return o.reading && o.err.Path != "" }

func (o *object) at(key string) string {
	if o.path == "" {
		return key
	}
	return o.path + "." + key
}

// member reads a member.
func (o *object) member(key string) (canonical.Value, bool) {
	o.seen = append(o.seen, key)
	if o.failed() {
		return canonical.Value{}, false
	}
	v, ok := o.in.Get(key)
	if !ok {
		o.bad(o.at(key), "nothing", "a value")
	}
	return v, ok
}

// scalar writes or reads one value; take reports whether it is of the kind.
func (o *object) scalar(key, want string, give func() canonical.Value, take func(canonical.Value) bool) {
	if !o.reading {
		o.out = append(o.out, canonical.Member{Key: key, Value: give()})
		return
	}
	if v, ok := o.member(key); ok && !take(v) {
		o.bad(o.at(key), v.String(), want)
	}
}

func (o *object) str(key string, to *string) {
	o.scalar(key, "a string", func() canonical.Value { return canonical.String(*to) }, func(v canonical.Value) (ok bool) {
		*to, ok = v.Text()
		return ok
	})
}

// optional is a string or null.
func (o *object) optional(key string, to **string) {
	o.scalar(key, "a string or null", func() canonical.Value {
		if *to == nil {
			return canonical.Null()
		}
		return canonical.String(**to)
	}, func(v canonical.Value) bool {
		if v.Kind() == canonical.KindNull {
			*to = nil
			return true
		}
		s, ok := v.Text()
		*to = &s
		return ok
	})
}

// hash is a SHA-256 in lower-case hexadecimal.
func (o *object) hash(key string, to *string) {
	o.scalar(key, "64 hexadecimal digits in lower case", func() canonical.Value { return canonical.String(*to) }, func(v canonical.Value) (ok bool) {
		*to, ok = v.Text()
		return ok && isHash(*to)
	})
}

func isHash(s string) bool {
	for _, c := range s {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(s) == 64
}

func (o *object) boolean(key string, to *bool) {
	o.scalar(key, "true or false", func() canonical.Value { return canonical.Bool(*to) }, func(v canonical.Value) (ok bool) {
		*to, ok = v.Bool()
		return ok
	})
}

// count is an integer of 0 or more.
func (o *object) count(key string, to *int) {
	n := int64(*to)
	o.count64(key, &n)
	*to = int(n)
}

func (o *object) count64(key string, to *int64) {
	o.scalar(key, "an integer of 0 or more", func() canonical.Value { return canonical.Int(*to) }, func(v canonical.Value) (ok bool) {
		*to, ok = v.Int()
		return ok && *to >= 0
	})
}

// optionalCount is an integer of 0 or more, or null.
func (o *object) optionalCount(key string, to **int64) {
	o.scalar(key, "an integer of 0 or more, or null", func() canonical.Value {
		if *to == nil {
			return canonical.Null()
		}
		return canonical.Int(**to)
	}, func(v canonical.Value) bool {
		if v.Kind() == canonical.KindNull {
			*to = nil
			return true
		}
		n, ok := v.Int()
		*to = &n
		return ok && n >= 0
	})
}

// number is a float; an integer stands for one.
func (o *object) number(key string, to *float64) {
	o.scalar(key, "a number", func() canonical.Value { return canonical.Float(*to) }, func(v canonical.Value) (ok bool) {
		*to, ok = floatOf(v)
		return ok
	})
}

func floatOf(v canonical.Value) (float64, bool) {
	if f, ok := v.Float(); ok {
		return f, true
	}
	n, ok := v.Int()
	return float64(n), ok
}

func (o *object) numbers(key string, to *[]float64) {
	o.scalar(key, "a list of numbers", func() canonical.Value {
		all := make([]canonical.Value, len(*to))
		for i, x := range *to {
			all[i] = canonical.Float(x)
		}
		return canonical.Array(all...)
	}, func(v canonical.Value) bool {
		*to = make([]float64, v.Len())
		for i := range *to {
			var ok bool
			if (*to)[i], ok = floatOf(v.Index(i)); !ok {
				return false
			}
		}
		return v.Kind() == canonical.KindArray
	})
}

func (o *object) ints(key string, to *[]int) {
	o.scalar(key, "a list of integers", func() canonical.Value { return canonical.Ints(wide(*to)) }, func(v canonical.Value) bool { return intsOf(v, to) })
}

func (o *object) ints64(key string, to *[]int64) {
	o.scalar(key, "a list of integers", func() canonical.Value { return canonical.Ints(*to) }, func(v canonical.Value) bool {
		all, ok := v.Ints()
		*to = slices.Clone(all)
		return ok && len(all) == v.Len()
	})
}

func wide(ids []int) []int64 {
	all := make([]int64, len(ids))
	for i, id := range ids {
		all[i] = int64(id)
	}
	return all
}

func (o *object) strs(key string, to *[]string) {
	o.scalar(key, "a list of strings", func() canonical.Value {
		all := make([]canonical.Value, len(*to))
		for i, s := range *to {
			all[i] = canonical.String(s)
		}
		return canonical.Array(all...)
	}, func(v canonical.Value) bool {
		*to = make([]string, v.Len())
		for i := range *to {
			var ok bool
			if (*to)[i], ok = v.Index(i).Text(); !ok {
				return false
			}
		}
		return v.Kind() == canonical.KindArray
	})
}

// free is an object of anything.
func (o *object) free(key string, to *canonical.Value) {
	o.scalar(key, "an object", func() canonical.Value {
		if to.Kind() != canonical.KindObject {
			return canonical.Object()
		}
		return *to
	}, func(v canonical.Value) bool {
		*to = v
		return v.Kind() == canonical.KindObject
	})
}

// inner is an object within.
func (o *object) inner(key string, fields func(*object)) {
	if !o.reading {
		o.out = append(o.out, canonical.Member{Key: key, Value: encode(fields)})
		return
	}
	if v, ok := o.member(key); ok {
		decode(v, o.at(key), o.err, fields)
	}
}

// list is an array of objects. resize makes room for n of them.
func (o *object) list(key string, n int, resize func(int), fields func(i int, o *object)) {
	if !o.reading {
		all := make([]canonical.Value, n)
		for i := range all {
			all[i] = encode(func(o *object) { fields(i, o) })
		}
		o.out = append(o.out, canonical.Member{Key: key, Value: canonical.Array(all...)})
		return
	}
	v, ok := o.member(key)
	if !ok {
		return
	}
	if v.Kind() != canonical.KindArray {
		o.bad(o.at(key), v.Kind().String(), "a list of objects")
		return
	}
	resize(v.Len())
	for i := range v.Len() {
		if decode(v.Index(i), fmt.Sprintf("%s[%d]", o.at(key), i), o.err, func(o *object) { fields(i, o) }); o.failed() {
			return
		}
	}
}

// named is an object whose keys are names that are known before: fields gets the
// place of each.
func (o *object) named(key string, names []string, fields func(i int, key string, o *object)) {
	o.inner(key, func(o *object) {
		for i, name := range names {
			fields(i, name, o)
		}
	})
}

// resize returns s with n elements.
func resize[T any](s *[]T, n int) {
	if len(*s) != n {
		*s = make([]T, n)
	}
}
