package quant

import (
	"context"
	"sync"

	"github.com/plumbline-go/plumbline/engine"
)

// Emulation is an int8 engine for one checkpoint. It prepares what it needs on
// first use, is safe for concurrent use, and implements engine.Yardstick.
type Emulation struct {
	weights engine.Weights
	arch    engine.Arch
	opt     options
	invalid error
	// int8 is the model with quantised weights, float that with its own.
	int8, float *prepared
}

// prepared is a model ready to run, each part from its first use on.
type prepared struct {
	layers []func() (*layer, error)
	table  func() (*table, error)
	head   func() (*head, error)
	// codesHead is the head whose products of codes can be compared.
	codesHead func() (*head, error)
}

func prepare(w engine.Weights, a engine.Arch, opt options) *prepared {
	p := &prepared{layers: make([]func() (*layer, error), a.Layers)}
	p.table = sync.OnceValues(func() (*table, error) { return loadTable(w, a, opt) })
	p.head = sync.OnceValues(func() (*head, error) { return loadHead(w, a, opt, p.table, false) })
	p.codesHead = sync.OnceValues(func() (*head, error) { return loadHead(w, a, opt, p.table, true) })
	for n := range p.layers {
		p.layers[n] = sync.OnceValues(func() (*layer, error) { return loadLayer(w, a, n, opt) })
	}
	return p
}

// prepared returns what a scheme runs.
func (e *Emulation) prepared(s engine.Scheme) *prepared {
	if s.FloatWeights {
		return e.float
	}
	return e.int8
}

var _ engine.Yardstick = (*Emulation)(nil)

// New returns an emulation of what src runs; an engine.Reference is a src.
func New(src interface{ Weights() engine.Weights }, opts ...Option) *Emulation {
	return FromWeights(src.Weights(), opts...)
}

// FromWeights returns an emulation of a checkpoint. A checkpoint that can't be
// emulated is reported by the first run.
func FromWeights(w engine.Weights, opts ...Option) *Emulation {
	e := &Emulation{weights: w, arch: w.Arch().Clone()}
	for _, o := range opts {
		o(&e.opt)
	}
	if e.opt.cache == nil {
		e.opt.cache = NewCache()
	}
	if e.invalid = checkArch(e.arch); e.invalid != nil {
		return e
	}
	e.int8 = prepare(w, e.arch, e.opt)
	own := e.opt
	own.floatWeights = true
	e.float = prepare(w, e.arch, own)
	return e
}

// Weights returns the checkpoint.
func (e *Emulation) Weights() engine.Weights { return e.weights }

// Emulate runs the prompt and returns the last token's layers+1 rows, each of
// the hidden size. The results are those of a run token by token with a KV
// cache of its own.
func (e *Emulation) Emulate(ctx context.Context, scheme engine.Scheme, ids []int) ([][]float64, error) {
	rows, _, err := e.lastRows(ctx, scheme, ids, nil)
	return rows, err
}

// lastRows returns the last token's rows and the value of one code in each, 0
// for float rows. Probes are collected from the same run.
func (e *Emulation) lastRows(ctx context.Context, scheme engine.Scheme, ids []int, c *probes) (rows [][]float64, steps []float64, err error) {
	if err := e.run(ctx, scheme, ids, c, e.keepLast(&rows, &steps)); err != nil {
		return nil, nil, err
	}
	return rows, steps, nil
}

// keepLast is a visit that copies the last token's rows and steps.
func (e *Emulation) keepLast(rows *[][]float64, steps *[]float64) func(x, s []float64) {
	return func(x, s []float64) {
		*rows = append(*rows, append([]float64(nil), x[len(x)-e.arch.Hidden:]...))
		*steps = append(*steps, s[len(s)-1])
	}
}

// run gives visit the residual stream [tokens, hidden] and the rows' steps
// after the embedding and after each layer. visit must not keep them.
func (e *Emulation) run(ctx context.Context, scheme engine.Scheme, ids []int, c *probes, visit func(x, steps []float64)) error {
	s, err := e.start(scheme, ids, false)
	if err != nil {
		return err
	}
	c.watch(s)
	return s.feed(ctx, ids, visit)
}
