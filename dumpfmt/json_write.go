package dumpfmt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// jsonWriter writes one object with its keys in order and a member per line.
type jsonWriter struct {
	b    bytes.Buffer
	keys []string
	err  error
}

func (w *jsonWriter) raw(key string, v []byte) {
	k := quoteJSON(key)
	if !utf8.ValidString(key) {
		w.err = fmt.Errorf("key %q is not UTF-8", key)
	}
	w.keys = append(w.keys, key)
	if w.b.Len() > 0 {
		w.b.WriteString(",\n")
	}
	fmt.Fprintf(&w.b, " %s: %s", k, v)
}

func (w *jsonWriter) str(key, v string) {
	if !utf8.ValidString(v) {
		w.err = fmt.Errorf("%s %q is not UTF-8", key, v)
	}
	w.raw(key, quoteJSON(v))
}

func (w *jsonWriter) strs(key string, v []string) {
	quoted := make([]string, len(v))
	for i, s := range v {
		if !utf8.ValidString(s) {
			w.err = fmt.Errorf("%s[%d] %q is not UTF-8", key, i, s)
		}
		quoted[i] = string(quoteJSON(s))
	}
	w.raw(key, []byte("["+strings.Join(quoted, ", ")+"]"))
}

func (w *jsonWriter) ints(key string, v []int) {
	w.raw(key, []byte(strings.ReplaceAll(fmt.Sprint(v), " ", ", ")))
}

// extra writes the other keys in sorted order.
func (w *jsonWriter) extra(m map[string]json.RawMessage) {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		w.raw(key, m[key])
	}
}

func (w *jsonWriter) finish(op string) ([]byte, error) {
	if w.err != nil {
		return nil, &UsageError{Op: op, What: "text", Got: w.err.Error(), Want: "UTF-8"}
	}
	return fmt.Appendf(nil, "{\n%s\n}\n", w.b.Bytes()), nil
}

// quoteJSON keeps <, > and &, which encoding/json escapes by default.
func quoteJSON(s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic("dumpfmt: a string that does not marshal: " + err.Error()) // unreachable: every string does
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
