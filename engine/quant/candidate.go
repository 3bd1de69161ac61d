package quant

import (
	"context"
	"fmt"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
)

// Candidate returns the emulation as an engine under test. It answers any case
// with a residual capture in memory, and offers no logits.
func (e *Emulation) Candidate(scheme engine.Scheme) engine.Candidate {
	return candidate{e, scheme}
}

type candidate struct {
	e      *Emulation
	scheme engine.Scheme
}

func (c candidate) Info(context.Context) (engine.Info, error) {
	info := engine.Info{
		Name: "plumbline int8 emulation", Layers: engine.LayersFloat32,
		Weights: "int8", Activations: "int8", KVCache: "float64",
	}
	if c.scheme.RowsInt8 {
		info.Layers = engine.LayersInt8Scaled
	}
	if c.e.opt.kvInt8 {
		info.KVCache = "int8"
	}
	return info, nil
}

func (c candidate) Run(ctx context.Context, req engine.Request) (*engine.Response, error) {
	rows, steps, err := c.e.lastRows(ctx, c.scheme, req.Case.TokenIDs)
	if err != nil {
		return nil, err
	}
	return &engine.Response{Layers: &capture{rows: rows, steps: steps, fingerprint: dumpfmt.Fingerprint(req.Case.Text)}}, nil
}

// capture is a residual capture in memory.
type capture struct {
	rows        [][]float64
	steps       []float64
	fingerprint uint64
}

func (c *capture) Header() engine.CaptureHeader {
	return engine.CaptureHeader{
		Rows: len(c.rows), Width: len(c.rows[0]),
		Fingerprint: c.fingerprint, Mode: engine.CaptureModeIncremental,
	}
}

func (c *capture) Row(i int, dst []float64) (float64, error) {
	if i < 0 || i >= len(c.rows) || len(dst) != len(c.rows[i]) {
		return 0, fmt.Errorf("quant: row %d into %d values: got an index or length outside %d rows of %d", i, len(dst), len(c.rows), len(c.rows[0]))
	}
	copy(dst, c.rows[i])
	return c.steps[i], nil
}

func (c *capture) Close() error { return nil }
