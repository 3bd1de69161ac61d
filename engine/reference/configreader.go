package reference

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
)

// configReader reads a JSON object key by key and knows which keys were used.
// Keys are matched exactly (encoding/json's structs would take any case), a
// null counts as absent, as in transformers. The first error sticks.
type configReader struct {
	file   string
	prefix string // of key names in messages, e.g. "rope_parameters."
	family family // what may be in the file
	keys   map[string]json.RawMessage
	used   map[string]bool
	err    *error
}

func newConfigReader(file string, data []byte) (*configReader, error) {
	r := &configReader{file: file, used: map[string]bool{}, err: new(error)}
	if err := checkJSON(file, data); err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&r.keys); err != nil {
		return nil, &engine.ConfigError{File: file, What: "JSON", Got: err.Error(), Want: "an object"}
	}
	if r.keys == nil {
		return nil, &engine.ConfigError{File: file, What: "JSON", Got: "null", Want: "an object"}
	}
	return r, nil
}

// checkJSON refuses what encoding/json lets pass, such as a key twice in one
// object, of which it takes the last.
func checkJSON(file string, data []byte) error {
	err := dumpfmt.CheckJSON(file, data)
	var bad *dumpfmt.FormatError
	if errors.As(err, &bad) {
		return &engine.ConfigError{File: file, What: fmt.Sprintf("JSON: %s at byte 0x%X", bad.What, bad.Offset), Got: bad.Got, Want: bad.Want}
	}
	return err
}

// known is a key's name in the tables of what is known of keys: that of a nested
// text model's is the one that a text model's own file has.
func (r *configReader) known(key string) string {
	return strings.TrimPrefix(r.prefix+key, textConfig+".")
}

func (r *configReader) fail(key, got, want string) {
	if *r.err == nil {
		*r.err = &engine.ConfigError{File: r.file, What: r.prefix + key, Got: got, Want: want}
	}
}

func (r *configReader) refuse(what, why string) {
	if *r.err == nil {
		*r.err = &engine.UnsupportedError{What: fmt.Sprintf("%s: %s%s", r.file, r.prefix, what), Why: why}
	}
}

// raw marks a key as used and returns its value; false when absent or null.
func (r *configReader) raw(key string) (json.RawMessage, bool) {
	v, ok := r.keys[key]
	if !ok {
		return nil, false
	}
	r.used[key] = true
	return v, string(v) != "null"
}

// value decodes a key into dst and reports whether it was there.
func (r *configReader) value(key string, dst any, want string) bool {
	v, ok := r.raw(key)
	if !ok {
		return false
	}
	if err := json.Unmarshal(v, dst); err != nil {
		r.fail(key, string(v), want)
		return false
	}
	return true
}

// integer returns a whole number of at least 1, or def when the key is absent;
// a negative def means that the key must be there. A number like 64.0 is taken.
func (r *configReader) integer(key string, def int) int {
	const want = "a whole number of at least 1"
	var n json.Number
	if !r.value(key, &n, want) {
		if def < 0 {
			r.fail(key, "nothing", want)
		}
		return max(def, 0)
	}
	// json.Number takes a string that holds a number; a config must not.
	f, err := strconv.ParseFloat(string(r.keys[key]), 64)
	if i := int(f); err == nil && f == float64(i) && i >= 1 && i <= 1<<31-1 {
		return i
	}
	r.fail(key, string(r.keys[key]), want)
	return 0
}

// float returns a number; false when the key is absent.
func (r *configReader) float(key string) (float64, bool) {
	var f float64
	ok := r.value(key, &f, "a number")
	return f, ok
}

func (r *configReader) text(key string) (string, bool) {
	var s string
	ok := r.value(key, &s, "a string")
	return s, ok
}

func (r *configReader) flag(key string) bool {
	var b bool
	r.value(key, &b, "true or false")
	return b
}

// object returns a nested object; nil when absent.
func (r *configReader) object(key string) *configReader {
	sub := &configReader{file: r.file, prefix: r.prefix + key + ".", family: r.family, used: map[string]bool{}, err: r.err}
	if !r.value(key, &sub.keys, "an object") {
		return nil
	}
	return sub
}

// unused lists the keys that were not used and are not known to be harmless.
func (r *configReader) unused() []string {
	var names []string
	for k := range r.keys {
		if !r.used[k] && harmlessKeys[r.known(k)] == "" {
			names = append(names, r.prefix+k)
		}
	}
	slices.Sort(names)
	return names
}
