package conformance

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
)

// probeChunk is how much of a probe tensor is compared at a time.
const probeChunk = 1 << 20

// compareProbes compares two probe files tensor by tensor, byte by byte.
func compareProbes(w, c *dumpfmt.Case) Outcome {
	if o, done := presence(w.ProbesPath, c.ProbesPath, "probes"); done {
		return o
	}
	a, err := w.OpenProbes()
	if err != nil {
		return broken(err)
	}
	defer a.Close()
	b, err := c.OpenProbes()
	if err != nil {
		return broken(err)
	}
	defer b.Close()
	for _, want := range a.Tensors() {
		got, ok := b.Tensor(want.Name)
		if !ok {
			return fail(KindFormat, Finding{Probe: engine.Probe(want.Name), Metric: "probe", Exact: true, Limit: Limit{1, "the golden has it"},
				At: At{Row: -1, Channel: -1, File: c.ProbesPath}, Detail: "the probe is missing"})
		}
		if got.DType != want.DType || !slices.Equal(got.Shape, want.Shape) {
			return fail(KindFormat, Finding{Probe: engine.Probe(want.Name), Metric: "shape", At: At{Row: -1, Channel: -1, File: c.ProbesPath},
				Detail: fmt.Sprintf("got %s %v, want %s %v", got.DType, got.Shape, want.DType, want.Shape)})
		}
		at, err := firstDifference(a, b, want)
		if err != nil {
			return broken(err)
		}
		if at >= 0 {
			width := int64(want.DType.Size())
			for _, d := range want.Shape[1:] {
				width *= int64(d)
			}
			return fail(KindLayer, Finding{Probe: engine.Probe(want.Name), Metric: "differing byte", Got: Number(at), Limit: Limit{-1, "the golden's bytes"},
				At:     At{Row: int(at / width), Channel: int(at % width / int64(want.DType.Size())), File: c.ProbesPath},
				Detail: "the first difference; the row is a position here"})
		}
	}
	return pass()
}

// firstDifference is the first differing byte of a tensor, or -1.
func firstDifference(a, b *dumpfmt.Safetensors, t dumpfmt.TensorInfo) (int64, error) {
	size := t.Bytes
	x, y := make([]byte, min(size, probeChunk)), make([]byte, min(size, probeChunk))
	for off := int64(0); off < size; off += probeChunk {
		n := min(size-off, probeChunk)
		if err := a.ReadBytes(t.Name, off, x[:n]); err != nil {
			return 0, err
		}
		if err := b.ReadBytes(t.Name, off, y[:n]); err != nil {
			return 0, err
		}
		if bytes.Equal(x[:n], y[:n]) {
			continue
		}
		for i := range n {
			if x[i] != y[i] {
				return off + i, nil
			}
		}
	}
	return -1, nil
}

// compareTokens compares the tokens that were produced.
func compareTokens(w, c *dumpfmt.Case) Outcome {
	if w.File.OutputIDs == nil {
		return unsupported("the golden tells no output_ids")
	}
	if slices.Equal(w.File.OutputIDs, c.File.OutputIDs) {
		return pass()
	}
	at := 0
	for at < min(len(w.File.OutputIDs), len(c.File.OutputIDs)) && w.File.OutputIDs[at] == c.File.OutputIDs[at] {
		at++
	}
	return fail(KindHead, Finding{Probe: engine.ProbeLogits, Metric: "output_ids", Got: Number(at), Limit: Limit{Number(len(w.File.OutputIDs)), "as many equal tokens as the golden has"},
		At: At{Row: at, Channel: -1, File: c.JSONPath}, Detail: fmt.Sprintf("got %v, want %v", c.File.OutputIDs, w.File.OutputIDs)})
}

// trailing is the number of bytes after the rows of an int8 layer dump.
func trailing(c *dumpfmt.Case, kind string) int64 {
	if kind != engine.LayersInt8Scaled || c.LayersPath == "" {
		return 0
	}
	d, err := c.OpenInt8Layers()
	if err != nil {
		return 0 // the comparison has reported it
	}
	defer d.Close()
	return d.TrailingBytes()
}
