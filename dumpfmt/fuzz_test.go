package dumpfmt

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"testing"
)

// refused demands that an error is one of the two that a file can earn, and
// that it names the file.
func refused(t *testing.T, err error) {
	var broken *FormatError
	var unsupported *UnsupportedError
	if errors.As(err, &broken) && broken.File == testFile || errors.As(err, &unsupported) && unsupported.File == testFile {
		return
	}
	t.Fatalf("got %v (%T), want a *FormatError or *UnsupportedError of %s", err, err, testFile)
}

// rewritten demands that writing what was read gives the same bytes.
func rewritten(t *testing.T, data []byte, write func(path string) error) {
	path := filepath.Join(t.TempDir(), "again")
	if err := write(path); err != nil {
		t.Fatal(err)
	}
	again, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(again, data) {
		t.Fatalf("written again: got % x, want % x", again, data)
	}
}

func addSeeds(f *testing.F, good []byte) {
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add(append(bytes.Clone(good), 0))
	for off := 0; off+8 <= len(good) && off < layerHeaderBytes; off += 8 {
		for _, v := range []uint64{0, 2, 1 << 60, 1<<62 + 2, 1<<64 - 1} {
			f.Add(patched(good, off, v))
		}
	}
}

func FuzzFloatLayers(f *testing.F) {
	addSeeds(f, unhex(f, floatLayersHex))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := NewFloatLayers(bytes.NewReader(data), int64(len(data)), testFile)
		if err != nil {
			refused(t, err)
			return
		}
		h := d.Header()
		rewritten(t, data, func(path string) error {
			w, err := CreateFloatLayers(path, h, WriteOptions{})
			if err != nil {
				return err
			}
			row := make([]float32, h.Width)
			for i := range h.Rows {
				if err := errors.Join(d.Row(i, row), w.WriteRow(row)); err != nil {
					return err
				}
			}
			return w.Commit()
		})
	})
}

func FuzzInt8Layers(f *testing.F) {
	good := unhex(f, int8LayersHex)
	addSeeds(f, good)
	for _, v := range []uint64{0, 1 << 63, 1<<64 - 1100, 1100} {
		f.Add(patched(good, 32, v))
		f.Add(patched(good, 40, v))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := NewInt8Layers(bytes.NewReader(data), int64(len(data)), testFile)
		if err != nil {
			refused(t, err)
			return
		}
		if err := d.CheckScales(); err != nil {
			refused(t, err)
			return
		}
		h := d.Header()
		rewritten(t, data[:int64(len(data))-d.TrailingBytes()], func(path string) error {
			w, err := CreateInt8Layers(path, h, WriteOptions{})
			if err != nil {
				return err
			}
			codes, row := make([]int8, h.Width), make([]float64, h.Width)
			for i := range h.Rows {
				s, err := d.RowCodes(i, codes)
				if err != nil {
					return err
				}
				if _, err := d.Row64(i, row); err != nil {
					return err
				}
				// Exact where the product of code and m fits into 53 bits.
				want := new(big.Float).SetMantExp(new(big.Float).SetInt64(s.M), int(s.E))
				want.Mul(want, new(big.Float).SetInt64(int64(codes[0])))
				if v, _ := want.Float64(); s.M < 1<<46 && row[0] != v {
					t.Fatalf("row %d: got %v, want %v", i, row[0], v)
				}
				if err := w.WriteRow(s, codes); err != nil {
					return err
				}
			}
			return w.Commit()
		})
	})
}

func FuzzFloatLogits(f *testing.F) {
	addSeeds(f, unhex(f, floatLogitsHex))
	f.Add(unhex(f, emptyLogitsHex))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := NewFloatLogits(bytes.NewReader(data), int64(len(data)), testFile)
		if err != nil {
			refused(t, err)
			return
		}
		rewritten(t, data, func(path string) error {
			w, err := CreateFloatLogits(path, d.Header(), WriteOptions{})
			if err != nil {
				return err
			}
			row := make([]float32, d.Header().Vocab)
			for i := range d.Header().Rows {
				if err := errors.Join(d.Row(i, row), w.WriteRow(row)); err != nil {
					return err
				}
			}
			return w.Commit()
		})
	})
}

func FuzzInt32Logits(f *testing.F) {
	addSeeds(f, unhex(f, int32LogitsHex))
	f.Add(unhex(f, emptyLogitsHex))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := NewInt32Logits(bytes.NewReader(data), int64(len(data)), testFile)
		if err != nil {
			refused(t, err)
			return
		}
		rewritten(t, data, func(path string) error {
			w, err := CreateInt32Logits(path, d.Header(), WriteOptions{})
			if err != nil {
				return err
			}
			row := make([]int32, d.Header().Vocab)
			for i := range d.Header().Rows {
				if err := errors.Join(d.Row(i, row), w.WriteRow(row)); err != nil {
					return err
				}
			}
			return w.Commit()
		})
	})
}

// FuzzSafetensors states the layout rules once more, over what was accepted.
func FuzzSafetensors(f *testing.F) {
	addSeeds(f, unhex(f, safetensorsHex))
	for _, header := range []string{`{}`, `{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`,
		`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`,
		`{"a":{"dtype":"U8","shape":[0,9223372036854775807,2],"data_offsets":[0,0]},"b":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}}`,
		`{"a":{"dtype":"U8","shape":[],"data_offsets":[-1,0]}}`, `{"\u0061":{},"a":{}}`} {
		f.Add(st(header, 8))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := NewSafetensors(bytes.NewReader(data), int64(len(data)), testFile)
		if err != nil {
			refused(t, err)
			return
		}
		covered := make([]int, len(data))
		first := int64(len(data))
		for _, info := range d.Tensors() {
			elements := int64(1)
			for _, n := range info.Shape {
				if n < 0 {
					t.Fatalf("%+v: a negative dimension", info)
				}
				elements *= int64(n)
			}
			if info.DType.Size() == 0 || elements*int64(info.DType.Size()) != info.Bytes {
				t.Fatalf("%+v: got %d bytes, want %d elements", info, info.Bytes, elements)
			}
			for i := range info.Bytes {
				covered[info.Offset+i]++
			}
			first = min(first, info.Offset)
			p := make([]byte, info.Bytes)
			if err := d.ReadBytes(info.Name, 0, p); err != nil || !bytes.Equal(p, data[info.Offset:info.Offset+info.Bytes]) {
				t.Fatalf("%+v: got %v, %v", info, p, err)
			}
		}
		for i, n := range covered[first:] {
			if n != 1 {
				t.Fatalf("byte %d of the data: got %d tensors, want 1", int64(i)+first, n)
			}
		}
		var loose map[string]any
		if err := json.NewDecoder(io.LimitReader(bytes.NewReader(data[8:]), first-8)).Decode(&loose); err != nil {
			t.Fatalf("encoding/json refuses the header: %v", err)
		}
	})
}

// FuzzCaseFile compares with encoding/json, which accepts more.
func FuzzCaseFile(f *testing.F) {
	for _, s := range []string{caseJSON, `{"text":"a\u00e9\ud83d\ude00","token_ids":[1],"x":{"y":[true,null,-1.5e+3]}}`,
		`{"text":"\ud83d","token_ids":[1]}`, `{"text":"a","text":"b","token_ids":[1]}`, `{"text":"a","token_ids":[-1]}`,
		`{"text":"a","token_ids":[1],"system":null,"prompt":"","stop":[],"decoded":"\\\"\/\b\f\n\r\t"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := parseCaseFile(testFile, data)
		if err != nil {
			refused(t, err)
			return
		}
		var loose map[string]json.RawMessage
		if err := json.Unmarshal(data, &loose); err != nil {
			t.Fatalf("encoding/json: %v", err)
		}
		var text string
		var ids []int
		if err := errors.Join(json.Unmarshal(loose["text"], &text), json.Unmarshal(loose["token_ids"], &ids)); err != nil {
			t.Fatal(err)
		}
		if text != c.Text || len(ids) == 0 || !equalInts(ids, c.TokenIDs) {
			t.Fatalf("got %q %v, want %q %v", c.Text, c.TokenIDs, text, ids)
		}
		again, err := c.encode()
		if err != nil {
			t.Fatal(err)
		}
		c2, err := parseCaseFile(testFile, again)
		if err != nil || c2.Text != c.Text || !equalInts(c2.TokenIDs, c.TokenIDs) || len(c2.Extra) != len(c.Extra) {
			t.Fatalf("written again as %s: got %+v, %v, want %+v", again, c2, err, c)
		}
	})
}

func FuzzEngineFile(f *testing.F) {
	for _, s := range []string{floatSide, int8Side, `{"name":"e","version":5,"kv_cache":{"k":"q8_0"},"model":null}`,
		`{"name":"e","layers":null}`, `{"name":"e","name":"f"}`, `{"name":"e","layers":"f16"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := parseEngineFile(testFile, data)
		if err != nil {
			refused(t, err)
			return
		}
		var loose map[string]json.RawMessage
		var name string
		if err := json.Unmarshal(data, &loose); err != nil || json.Unmarshal(loose["name"], &name) != nil || name != e.Name {
			t.Fatalf("encoding/json: got %q, %v, want %q", name, err, e.Name)
		}
		again, err := e.encode()
		if err != nil {
			t.Fatal(err)
		}
		e2, err := parseEngineFile(testFile, again)
		if err != nil || e2.Name != e.Name || e2.Layers != e.Layers || e2.Logits != e.Logits ||
			e2.KVCache != e.KVCache || e2.Model != e.Model || len(e2.Extra) != len(e.Extra) {
			t.Fatalf("written again as %s: got %+v, %v, want %+v", again, e2, err, e)
		}
	})
}

func equalInts(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
