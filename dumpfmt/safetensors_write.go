package dumpfmt

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"
)

// SafetensorsWriter writes a safetensors file, tensor by tensor in the order
// of its specs, each in any number of pieces.
type SafetensorsWriter struct {
	f     *File
	specs []TensorSpec
	sizes []int64
	at    int   // the tensor being written
	done  int64 // its bytes so far
}

// CreateSafetensors starts the file at path with the tensors in the order
// given. Commit makes it visible, and Abort, which does nothing after Commit,
// removes what was begun. meta may be nil.
func CreateSafetensors(path string, specs []TensorSpec, meta map[string]string, o WriteOptions) (*SafetensorsWriter, error) {
	head, sizes, err := safetensorsHeader(specs, meta)
	if err != nil {
		return nil, err
	}
	f, err := Create(path, o)
	if err != nil {
		return nil, err
	}
	if _, err := f.Write(head); err != nil {
		return nil, err
	}
	w := &SafetensorsWriter{f: f, specs: slices.Clone(specs), sizes: sizes}
	w.skipEmpty()
	return w, nil
}

// safetensorsHeader returns the length and the JSON, padded with spaces so
// that the data is aligned to 8 bytes.
func safetensorsHeader(specs []TensorSpec, meta map[string]string) (head []byte, sizes []int64, err error) {
	bad := func(what, got, want string) ([]byte, []int64, error) {
		return nil, nil, &UsageError{Op: "CreateSafetensors", What: what, Got: got, Want: want}
	}
	head = append(make([]byte, 8), '{')
	if meta != nil {
		for k, v := range meta {
			if !utf8.ValidString(k) || !utf8.ValidString(v) {
				return bad("metadata", fmt.Sprintf("%q: %q", k, v), "UTF-8")
			}
		}
		m, err := json.Marshal(meta)
		if err != nil {
			return bad("metadata", err.Error(), "strings")
		}
		head = append(append(append(head, `"`+metadataKey+`":`...), m...), ',')
	}
	seen := map[string]bool{metadataKey: true}
	var end int64
	for _, t := range specs {
		if seen[t.Name] || !utf8.ValidString(t.Name) {
			return bad("tensor name", fmt.Sprintf("%q", t.Name), "UTF-8, each name once, not "+metadataKey)
		}
		seen[t.Name] = true
		if t.DType.Size() == 0 {
			return bad(fmt.Sprintf("dtype of %q", t.Name), fmt.Sprintf("%q", t.DType), knownDTypes)
		}
		size, ok := tensorBytes(t.Shape, t.DType.Size())
		if !ok || slices.ContainsFunc(t.Shape, func(n int) bool { return n < 0 }) || end+size < end {
			return bad(fmt.Sprintf("shape of %q", t.Name), fmt.Sprint(t.Shape), "non-negative, below 2^63 bytes in all")
		}
		shape := t.Shape
		if shape == nil {
			shape = []int{}
		}
		entry, err := json.Marshal(map[string]any{"dtype": t.DType, "shape": shape, "data_offsets": [2]int64{end, end + size}})
		if err != nil {
			return bad(fmt.Sprintf("tensor %q", t.Name), err.Error(), "valid JSON")
		}
		name, _ := json.Marshal(t.Name) // a valid string always marshals
		head = append(append(append(append(head, name...), ':'), entry...), ',')
		sizes = append(sizes, size)
		end += size
	}
	if head[len(head)-1] == ',' {
		head = head[:len(head)-1]
	}
	head = append(head, '}')
	for len(head)%8 != 0 {
		head = append(head, ' ')
	}
	if len(head)-8 > maxSafetensorsHeader {
		return bad("header length", fmt.Sprint(len(head)-8), fmt.Sprintf("at most %d", maxSafetensorsHeader))
	}
	binary.LittleEndian.PutUint64(head, uint64(len(head)-8))
	return head, sizes, nil
}

// WriteFloat32s appends values to the named F32 tensor.
func (w *SafetensorsWriter) WriteFloat32s(name string, v []float32) error {
	if err := w.next(name, F32, 4*int64(len(v))); err != nil {
		return err
	}
	return writeValues4(w.f, v)
}

// WriteBytes appends bytes, little-endian elements, to the named tensor.
func (w *SafetensorsWriter) WriteBytes(name string, p []byte) error {
	if err := w.next(name, "", int64(len(p))); err != nil {
		return err
	}
	_, err := w.f.Write(p)
	return err
}

// next checks that n more bytes belong to the named tensor.
func (w *SafetensorsWriter) next(name string, t DType, n int64) error {
	bad := func(what, got, want string) error {
		return &UsageError{Op: "SafetensorsWriter.Write", What: what, Got: got, Want: want}
	}
	if n == 0 && slices.ContainsFunc(w.specs, func(s TensorSpec) bool { return s.Name == name }) {
		return nil
	}
	if w.at == len(w.specs) {
		return bad("tensor", fmt.Sprintf("%q", name), "none, all are written")
	}
	spec := w.specs[w.at]
	switch left := w.sizes[w.at] - w.done; {
	case name != spec.Name:
		return bad("tensor", fmt.Sprintf("%q", name), fmt.Sprintf("%q, %d bytes of it missing", spec.Name, left))
	case t != "" && t != spec.DType:
		return bad(fmt.Sprintf("dtype of %q", name), string(t), string(spec.DType))
	case n > left:
		return bad(fmt.Sprintf("bytes of %q", name), fmt.Sprint(w.done+n), fmt.Sprint(w.sizes[w.at]))
	}
	if w.done += n; w.done == w.sizes[w.at] {
		w.at, w.done = w.at+1, 0
		w.skipEmpty()
	}
	return nil
}

// skipEmpty moves past tensors without elements.
func (w *SafetensorsWriter) skipEmpty() {
	for w.at < len(w.sizes) && w.sizes[w.at] == 0 {
		w.at++
	}
}

// Commit makes the file visible under its final name. Missing bytes are a
// *UsageError and leave nothing.
func (w *SafetensorsWriter) Commit() error {
	if w.at < len(w.specs) {
		_ = w.f.Abort()
		return &UsageError{Op: "SafetensorsWriter.Commit", What: fmt.Sprintf("bytes of %q", w.specs[w.at].Name),
			Got: fmt.Sprint(w.done), Want: fmt.Sprint(w.sizes[w.at])}
	}
	return w.f.Commit()
}

// Abort removes what was written; after Commit it does nothing.
func (w *SafetensorsWriter) Abort() error { return w.f.Abort() }
