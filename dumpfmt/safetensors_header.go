package dumpfmt

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
)

const (
	metadataKey = "__metadata__"
	// maxSafetensorsHeader is the format's own limit.
	maxSafetensorsHeader = 100_000_000
)

// newSafetensors reads and checks the header.
func newSafetensors(s source) (*Safetensors, error) {
	d := &Safetensors{src: s, index: map[string]int{}}
	head, err := d.src.header(8)
	if err != nil {
		return nil, err
	}
	n, avail := binary.LittleEndian.Uint64(head), uint64(s.size-8)
	if n > avail {
		return nil, s.short(8, int64(avail), strconv.FormatUint(n, 10), "JSON header")
	}
	if n > maxSafetensorsHeader {
		return nil, s.broken(0, "header length", strconv.FormatUint(n, 10), fmt.Sprintf("at most %d", maxSafetensorsHeader))
	}
	js := jsonScanner{src: &d.src, base: 8, data: make([]byte, n)}
	if err := s.read(js.data, 8); err != nil {
		return nil, err
	}
	if n == 0 || js.data[0] != '{' {
		return nil, js.bad(0, "header", js.found(0), "'{'")
	}
	p := headerParser{js: &js, start: 8 + int64(n), size: s.size - 8 - int64(n)}
	err = js.object("header", func(key string, keyPos int) error {
		if key == metadataKey {
			d.meta = map[string]string{}
			return js.object(metadataKey, func(key string, _ int) error {
				v, err := js.str(fmt.Sprintf("%s %q", metadataKey, key))
				d.meta[key] = v
				return err
			})
		}
		return p.tensor(key, keyPos)
	})
	if err != nil {
		return nil, err
	}
	if err := js.end(); err != nil {
		return nil, err
	}
	if err := p.layout(); err != nil {
		return nil, err
	}
	d.tensors = make([]TensorInfo, len(p.found))
	for i, t := range p.found {
		d.tensors[i] = t.TensorInfo
		d.index[t.Name] = i
	}
	return d, nil
}

// headerParser collects the tensors of a header.
type headerParser struct {
	js          *jsonScanner
	start, size int64 // of the data
	found       []headerTensor
}

type headerTensor struct {
	TensorInfo
	pos int // of the name, for errors
}

// tensor reads one entry and checks all that doesn't depend on the others.
func (p *headerParser) tensor(name string, pos int) error {
	js := p.js
	what := fmt.Sprintf("tensor %q", name)
	t := headerTensor{TensorInfo{TensorSpec: TensorSpec{Name: name, Shape: []int{}}}, pos}
	var offsets []int64
	var has [3]bool
	err := js.object(what, func(key string, keyPos int) error {
		switch key {
		case "dtype":
			has[0] = true
			js.space()
			at := js.pos
			v, err := js.str("dtype of " + what)
			if err != nil {
				return err
			}
			if t.DType = DType(v); t.DType.Size() == 0 {
				return &UnsupportedError{File: js.src.file, Format: formatSafetensors, Offset: js.base + int64(at),
					What: "dtype of " + what, Got: strconv.Quote(v), Supported: knownDTypes}
			}
			return nil
		case "shape":
			has[1] = true
			return js.array("shape of "+what, func(i int) error {
				n, err := js.uint(fmt.Sprintf("shape[%d] of %s", i, what), math.MaxInt)
				t.Shape = append(t.Shape, int(n))
				return err
			})
		case "data_offsets":
			has[2] = true
			return js.array("data_offsets of "+what, func(i int) error {
				at := fmt.Sprintf("data_offsets[%d] of %s", i, what)
				if i == 2 {
					return js.bad(js.pos, at, "a third offset", "two")
				}
				n, err := js.uint(at, uint64(p.size))
				offsets = append(offsets, int64(n))
				return err
			})
		}
		return js.bad(keyPos, what, fmt.Sprintf("key %q", key), "dtype, shape and data_offsets only")
	})
	if err != nil {
		return err
	}
	for i, key := range []string{"dtype", "shape", "data_offsets"} {
		if !has[i] {
			return js.bad(pos, what, "no "+key, "dtype, shape and data_offsets")
		}
	}
	if len(offsets) != 2 || offsets[0] > offsets[1] {
		return js.bad(pos, "data_offsets of "+what, fmt.Sprint(offsets), "[begin, end] with begin <= end")
	}
	t.Offset, t.Bytes = p.start+offsets[0], offsets[1]-offsets[0]
	want, ok := tensorBytes(t.Shape, t.DType.Size())
	if !ok {
		return js.bad(pos, "shape of "+what, fmt.Sprint(t.Shape), "a product below 2^63 bytes")
	}
	if want != t.Bytes {
		return js.bad(pos, what, fmt.Sprintf("%d bytes", t.Bytes), fmt.Sprintf("%d for %s %v", want, t.DType, t.Shape))
	}
	p.found = append(p.found, t)
	return nil
}

// tensorBytes is the product of shape and item; false when it overflows. Zero
// dimensions don't hide an overflow: another reader may multiply in any order.
func tensorBytes(shape []int, item int) (int64, bool) {
	product, zero := uint64(item), false
	for _, n := range shape {
		if n == 0 {
			zero = true
			continue
		}
		hi, lo := bits.Mul64(product, uint64(n))
		if hi != 0 || lo > math.MaxInt64 {
			return 0, false
		}
		product = lo
	}
	if zero {
		return 0, true
	}
	return int64(product), true
}

// layout demands that the tensors tile the data.
func (p *headerParser) layout() error {
	slices.SortFunc(p.found, func(a, b headerTensor) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Bytes, b.Bytes), cmp.Compare(a.Name, b.Name))
	})
	end, last := p.start, "the start of the data"
	for _, t := range p.found {
		if t.Offset != end {
			kind := "hole before"
			if t.Offset < end {
				kind = "overlap at"
			}
			return p.js.bad(t.pos, fmt.Sprintf("%s tensor %q", kind, t.Name),
				fmt.Sprintf("data_offsets begin %d", t.Offset-p.start),
				fmt.Sprintf("%d, where %s ends", end-p.start, last))
		}
		end, last = t.Offset+t.Bytes, strconv.Quote(t.Name)
	}
	if trailing := p.start + p.size - end; trailing != 0 {
		return p.js.src.broken(end, "end of file", fmt.Sprintf("%d bytes that no tensor holds", trailing), "none")
	}
	return nil
}
