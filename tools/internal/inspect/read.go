package inspect

import (
	"fmt"
	"reflect"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine/reference/gguf"
)

// read reads path in one format, values included.
func read(format, path string) (*Reading, error) {
	switch format {
	case FloatLayers:
		return readFloatLayers(path)
	case Int8Layers:
		return readInt8Layers(path)
	case FloatLogits:
		return readFloatLogits(path)
	case Int32Logits:
		return readInt32Logits(path)
	case GGUF:
		return readGGUF(path)
	}
	return readSafetensors(path)
}

func readFloatLayers(path string) (*Reading, error) {
	d, err := dumpfmt.OpenFloatLayers(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }()
	return layers(d.Header(), 0, d.Row64)
}

func readInt8Layers(path string) (*Reading, error) {
	d, err := dumpfmt.OpenInt8Layers(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }()
	return layers(d.Header(), d.TrailingBytes(), func(i int, dst []float64) error {
		_, err := d.Row64(i, dst)
		return err
	})
}

func layers(h dumpfmt.LayerHeader, trailing int64, row func(int, []float64) error) (*Reading, error) {
	values, err := scan(h.Rows, h.Width, row)
	if err != nil {
		return nil, err
	}
	return &Reading{
		Exact: trailing == 0, TrailingBytes: trailing, Rows: h.Rows, Width: h.Width,
		Fingerprint: hex(h.Fingerprint), CaptureMode: h.Mode, Values: values,
	}, nil
}

func readFloatLogits(path string) (*Reading, error) {
	d, err := dumpfmt.OpenFloatLogits(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }()
	return logits(d.Header(), d.Row64)
}

func readInt32Logits(path string) (*Reading, error) {
	d, err := dumpfmt.OpenInt32Logits(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }()
	return logits(d.Header(), d.Row64)
}

func logits(h dumpfmt.LogitHeader, row func(int, []float64) error) (*Reading, error) {
	r := &Reading{Exact: true, Rows: h.Rows, Vocab: h.Vocab, Empty: h.Rows == 0}
	if r.Empty {
		return r, nil
	}
	var err error
	r.Values, err = scan(h.Rows, h.Vocab, row)
	return r, err
}

func readSafetensors(path string) (*Reading, error) {
	infos, err := dumpfmt.CheckSafetensors(path)
	if err != nil {
		return nil, err
	}
	r := &Reading{Exact: true, Tensors: []Tensor{}}
	for _, t := range infos {
		r.Tensors = append(r.Tensors, Tensor{Name: t.Name, DType: string(t.DType), Shape: t.Shape})
	}
	return r, nil
}

func readGGUF(path string) (*Reading, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	r := &Reading{Exact: true, Tensors: []Tensor{}, Keys: []Key{}}
	for _, t := range f.Tensors() {
		r.Tensors = append(r.Tensors, Tensor{Name: t.Name, DType: t.Type.String(), Shape: t.Shape})
	}
	for _, name := range f.Keys() {
		v, _ := f.Value(name)
		value := fmt.Sprint(v)
		if list := reflect.ValueOf(v); list.Kind() == reflect.Slice {
			value = fmt.Sprintf("%d x %s", list.Len(), list.Type().Elem())
		}
		r.Keys = append(r.Keys, Key{Name: name, Value: value})
	}
	return r, nil
}

func fingerprint(text string) string { return hex(dumpfmt.Fingerprint(text)) }

func hex(fp uint64) string { return fmt.Sprintf("0x%016X", fp) }
