package conformance

import (
	"fmt"
	"math"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
)

// presence decides what a dump that only one side has means.
func presence(golden, cand, what string) (Outcome, bool) {
	switch {
	case golden == "":
		return unsupported("the golden has no " + what), true
	case cand == "":
		return Outcome{Status: Error, Kind: KindFormat, Reason: fmt.Sprintf("conformance: exact: no %s, want one as in %s", what, golden)}, true
	}
	return Outcome{}, false
}

func compareLayers(w, c *dumpfmt.Case, kind string) Outcome {
	if o, done := presence(w.LayersPath, c.LayersPath, "layer dump"); done {
		return o
	}
	if kind == engine.LayersInt8Scaled {
		return compareInt8(w, c)
	}
	a, err := w.OpenFloatLayers()
	if err != nil {
		return broken(err)
	}
	defer a.Close()
	b, err := c.OpenFloatLayers()
	if err != nil {
		return broken(err)
	}
	defer b.Close()
	if o, ok := sameHeader(a.Header(), b.Header(), c.LayersPath); !ok {
		return o
	}
	return compareRows32(a.Header().Rows, a.Header().Width, a.Row, b.Row, c.LayersPath, engine.RowProbe)
}

func sameHeader(want, got dumpfmt.LayerHeader, file string) (Outcome, bool) {
	if got == want {
		return Outcome{}, true
	}
	return fail(KindFormat, Finding{Metric: "header", At: At{Row: -1, Channel: -1, File: file},
		Detail: fmt.Sprintf("got %+v, want %+v", got, want)}), false
}

func compareInt8(w, c *dumpfmt.Case) Outcome {
	a, err := w.OpenInt8Layers()
	if err != nil {
		return broken(err)
	}
	defer a.Close()
	b, err := c.OpenInt8Layers()
	if err != nil {
		return broken(err)
	}
	defer b.Close()
	h := a.Header()
	if o, ok := sameHeader(h, b.Header(), c.LayersPath); !ok {
		return o
	}
	x, y := make([]int8, h.Width), make([]int8, h.Width)
	for i := range h.Rows {
		sx, err := a.RowCodes(i, x)
		if err != nil {
			return broken(err)
		}
		sy, err := b.RowCodes(i, y)
		if err != nil {
			return broken(err)
		}
		if sx != sy {
			return fail(KindLayer, Finding{Probe: engine.RowProbe(i), Exact: true, Metric: "scale",
				Got: stepOf(sy), Limit: Limit{stepOf(sx), "the golden's scale"},
				At: At{Row: i, Channel: -1, File: c.LayersPath}, Detail: fmt.Sprintf("got %s, want %s", sy, sx)})
		}
		for k := range x {
			if x[k] != y[k] {
				return fail(KindLayer, Finding{Probe: engine.RowProbe(i), Exact: true, Metric: "code", Got: Number(y[k]),
					Limit: Limit{Number(x[k]), "the golden's code"}, At: At{Row: i, Channel: k, File: c.LayersPath}})
			}
		}
	}
	return pass()
}

func stepOf(s dumpfmt.Scale) Number {
	step, _ := s.Step()
	return Number(step)
}

func compareRows32(rows, width int, want, got func(int, []float32) error, file string, probe func(int) engine.Probe) Outcome {
	x, y := make([]float32, width), make([]float32, width)
	for i := range rows {
		if err := want(i, x); err != nil {
			return broken(err)
		}
		if err := got(i, y); err != nil {
			return broken(err)
		}
		for k := range x {
			if math.Float32bits(x[k]) != math.Float32bits(y[k]) {
				return fail(KindLayer, Finding{Probe: probe(i), Exact: true, Metric: "bits", Got: Number(y[k]),
					Limit: Limit{Number(x[k]), "the golden's bits"}, At: At{Row: i, Channel: k, File: file}})
			}
		}
	}
	return pass()
}

func compareLogits(w, c *dumpfmt.Case, kind string) Outcome {
	if o, done := presence(w.LogitsPath, c.LogitsPath, "logit dump"); done {
		return o
	}
	logits := func(int) engine.Probe { return engine.ProbeLogits }
	if kind == engine.LogitsInt32 {
		return compareInt32(w, c)
	}
	a, err := w.OpenFloatLogits()
	if err != nil {
		return broken(err)
	}
	defer a.Close()
	b, err := c.OpenFloatLogits()
	if err != nil {
		return broken(err)
	}
	defer b.Close()
	if a.Header() != b.Header() {
		return logitShape(b.Header(), a.Header(), c.LogitsPath)
	}
	o := compareRows32(a.Header().Rows, a.Header().Vocab, a.Row, b.Row, c.LogitsPath, logits)
	if o.Status == Fail {
		o.Kind = KindHead
	}
	return o
}

func compareInt32(w, c *dumpfmt.Case) Outcome {
	a, err := w.OpenInt32Logits()
	if err != nil {
		return broken(err)
	}
	defer a.Close()
	b, err := c.OpenInt32Logits()
	if err != nil {
		return broken(err)
	}
	defer b.Close()
	if a.Header() != b.Header() {
		return logitShape(b.Header(), a.Header(), c.LogitsPath)
	}
	x, y := make([]int32, a.Header().Vocab), make([]int32, a.Header().Vocab)
	for i := range a.Header().Rows {
		if err := a.Row(i, x); err != nil {
			return broken(err)
		}
		if err := b.Row(i, y); err != nil {
			return broken(err)
		}
		for k := range x {
			if x[k] != y[k] {
				return fail(KindHead, Finding{Probe: engine.ProbeLogits, Exact: true, Metric: "logit", Got: Number(y[k]),
					Limit: Limit{Number(x[k]), "the golden's logit"}, At: At{Row: i, Channel: k, File: c.LogitsPath}})
			}
		}
	}
	return pass()
}

func logitShape(got, want dumpfmt.LogitHeader, file string) Outcome {
	return fail(KindFormat, Finding{Metric: "shape", At: At{Row: -1, Channel: -1, File: file},
		Detail: fmt.Sprintf("got %+v, want %+v", got, want)})
}
