package ggufbuild

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Key is a key with its value: a number, bool or string of Go, or a slice of one.
type Key struct {
	Name  string
	Value any
}

// Tensor is a tensor with its raw data. Dims are as the file has them, the fastest
// first.
type Tensor struct {
	Name string
	Dims []uint64
	Type uint32
	Data []byte
}

// File is what to write.
type File struct {
	Version   uint32 // 0 for 3
	Alignment int    // 0 for 32; the key is the caller's business
	Keys      []Key
	Tensors   []Tensor
}

// Set replaces the value of a key, or adds the key.
func (f *File) Set(name string, value any) {
	for i := range f.Keys {
		if f.Keys[i].Name == name {
			f.Keys[i].Value = value
			return
		}
	}
	f.Keys = append(f.Keys, Key{name, value})
}

// Drop takes a key away.
func (f *File) Drop(name string) {
	var kept []Key
	for _, k := range f.Keys {
		if k.Name != name {
			kept = append(kept, k)
		}
	}
	f.Keys = kept
}

// Tensor returns the named tensor, to be changed.
func (f *File) Tensor(name string) *Tensor {
	for i := range f.Tensors {
		if f.Tensors[i].Name == name {
			return &f.Tensors[i]
		}
	}
	panic("ggufbuild: no tensor " + name)
}

// DropTensor takes a tensor away.
func (f *File) DropTensor(name string) {
	var kept []Tensor
	for _, t := range f.Tensors {
		if t.Name != name {
			kept = append(kept, t)
		}
	}
	f.Tensors = kept
}

// Bytes is the file.
func (f *File) Bytes() []byte {
	alignment := f.Alignment
	if alignment == 0 {
		alignment = 32
	}
	version := f.Version
	if version == 0 {
		version = 3
	}
	b := append([]byte("GGUF"), u32(version)...)
	b = append(b, u64(uint64(len(f.Tensors)))...)
	b = append(b, u64(uint64(len(f.Keys)))...)
	for _, k := range f.Keys {
		b = append(b, Text(k.Name)...)
		kind, data := Value(k.Value)
		b = append(append(b, u32(kind)...), data...)
	}
	offset := 0
	for _, t := range f.Tensors {
		b = append(b, Info(t.Name, t.Dims, t.Type, uint64(offset))...)
		offset += (len(t.Data) + alignment - 1) / alignment * alignment
	}
	pad := func() {
		for len(b)%alignment != 0 {
			b = append(b, 0)
		}
	}
	pad()
	for _, t := range f.Tensors {
		b = append(b, t.Data...)
		pad()
	}
	return b
}

// Info is a tensor info.
func Info(name string, dims []uint64, kind uint32, offset uint64) []byte {
	b := append(Text(name), u32(uint32(len(dims)))...)
	for _, d := range dims {
		b = append(b, u64(d)...)
	}
	return append(append(b, u32(kind)...), u64(offset)...)
}

// Text is a string with its length.
func Text(s string) []byte { return append(u64(uint64(len(s))), s...) }

func u32(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }
func u64(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }

// Value is a value's type number and bytes.
func Value(v any) (kind uint32, data []byte) {
	switch v := v.(type) {
	case uint8:
		return 0, []byte{v}
	case int8:
		return 1, []byte{byte(v)}
	case uint16:
		return 2, binary.LittleEndian.AppendUint16(nil, v)
	case int16:
		return 3, binary.LittleEndian.AppendUint16(nil, uint16(v))
	case uint32:
		return 4, u32(v)
	case int32:
		return 5, u32(uint32(v))
	case float32:
		return 6, u32(math.Float32bits(v))
	case bool:
		if v {
			return 7, []byte{1}
		}
		return 7, []byte{0}
	case string:
		return 8, Text(v)
	case uint64:
		return 10, u64(v)
	case int64:
		return 11, u64(uint64(v))
	case float64:
		return 12, u64(math.Float64bits(v))
	case []string:
		return list(8, v)
	case []int32:
		return list(5, v)
	case []uint32:
		return list(4, v)
	case []float32:
		return list(6, v)
	case []bool:
		return list(7, v)
	}
	panic(fmt.Sprintf("ggufbuild: a value of type %T", v))
}

func list[T any](element uint32, all []T) (uint32, []byte) {
	b := append(u32(element), u64(uint64(len(all)))...)
	for _, v := range all {
		_, data := Value(v)
		b = append(b, data...)
	}
	return 9, b
}
