package quant

import (
	"context"
	"fmt"
	"slices"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
)

// Candidate returns the emulation as an engine under test. It answers any case,
// from one run of its prompt, with a residual capture, the tokens of a greedy
// decode and their logits, all in memory. The decode ends with a stop id of the
// case, or after Request.DecodeSteps tokens (0: engine.DefaultMaxNew).
//
// The probes of Request.Probes are of the same run, as float32, at every position
// of the prompt and of the tokens that were fed back: all that were chosen but the
// last. With NoLogits they are of the prompt alone. k_rope and v are what the KV
// cache is given, and inputs of linears are not yet rounded, as in EmulateLayer; a
// name that the model doesn't have is an error of engine.Probe.Width. Logits as
// integers without a scale are no probe. No name was asked: no probes.
func (e *Emulation) Candidate(scheme engine.Scheme, opts ...CandidateOption) engine.Candidate {
	c := candidate{e: e, scheme: scheme}
	for _, o := range opts {
		o(&c)
	}
	return c
}

// CandidateOption changes how a candidate answers.
type CandidateOption func(*candidate)

// Int32Logits makes the logits integers without a scale, as an integer engine
// has them before it scales: products of the codes of the last hidden state and
// of the head. All rows of the head then share one scale, or else the integers of
// two tokens could not be compared.
func Int32Logits() CandidateOption { return func(c *candidate) { c.codes = true } }

type candidate struct {
	e      *Emulation
	scheme engine.Scheme
	codes  bool
}

func (c candidate) Info(context.Context) (engine.Info, error) {
	info := engine.Info{
		Name: "plumbline int8 emulation", Layers: engine.LayersFloat32, Logits: engine.LogitsFloat32,
		Weights: "int8", Activations: "int8", KVCache: "float64",
	}
	if c.scheme.FloatWeights {
		info.Weights = "f32"
	}
	if b := c.scheme.ActivationBlock; b > 0 {
		info.Activations = fmt.Sprintf("int8-block%d", b)
	}
	if kv := c.scheme.KVCache; kv != (engine.KVCache{}) {
		info.KVCache = kv.String()
	}
	if c.scheme.RowsInt8 {
		info.Layers = engine.LayersInt8Scaled
	}
	if c.codes {
		info.Logits = engine.LogitsInt32
	}
	if c.e.opt.kvInt8 {
		info.KVCache = "int8"
	}
	return info, nil
}

func (c candidate) Run(ctx context.Context, req engine.Request) (*engine.Response, error) {
	probes, err := c.e.probes(req.Probes, len(req.Case.TokenIDs), c.codes)
	if err != nil {
		return nil, err
	}
	if req.NoLogits {
		rows, steps, err := c.e.lastRows(ctx, c.scheme, req.Case.TokenIDs, probes)
		if err != nil {
			return nil, err
		}
		return &engine.Response{PromptIDs: slices.Clone(req.Case.TokenIDs), Probes: probes.values(),
			Layers: &capture{rows: rows, steps: steps, fingerprint: dumpfmt.Fingerprint(req.Case.Text)}}, nil
	}
	if c.codes {
		return answer[int32](ctx, c, req, probes)
	}
	return answer[float32](ctx, c, req, probes)
}

func answer[T float32 | int32](ctx context.Context, c candidate, req engine.Request, p *probes) (*engine.Response, error) {
	maxNew := req.DecodeSteps
	if maxNew == 0 {
		maxNew = engine.DefaultMaxNew
	}
	d, err := decode[T](ctx, c.e, c.scheme, req.Case.TokenIDs, maxNew, req.Case.Stop, p)
	if err != nil {
		return nil, err
	}
	logits, err := engine.LogitRows(d.logits)
	if err != nil {
		return nil, err
	}
	return &engine.Response{
		Layers: &capture{rows: d.rows, steps: d.steps, fingerprint: dumpfmt.Fingerprint(req.Case.Text)},
		Logits: logits, Probes: p.values(), OutputIDs: d.ids, PromptIDs: slices.Clone(req.Case.TokenIDs),
	}, nil
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
