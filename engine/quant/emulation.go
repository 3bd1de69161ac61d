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
	layers  []func() (*layer, error)
	table   func() (*table, error)
	head    func() (*head, error)
	// codesHead is the head whose products of codes can be compared.
	codesHead func() (*head, error)
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
	e.table = sync.OnceValues(func() (*table, error) { return loadTable(w, e.arch, e.opt) })
	e.head = sync.OnceValues(func() (*head, error) { return loadHead(w, e.arch, e.opt, false) })
	e.codesHead = sync.OnceValues(func() (*head, error) { return loadHead(w, e.arch, e.opt, true) })
	e.layers = make([]func() (*layer, error), e.arch.Layers)
	for n := range e.layers {
		e.layers[n] = sync.OnceValues(func() (*layer, error) { return loadLayer(w, e.arch, n, e.opt) })
	}
	return e
}

// Weights returns the checkpoint.
func (e *Emulation) Weights() engine.Weights { return e.weights }

// Emulate runs the prompt and returns the last token's layers+1 rows, each of
// the hidden size. The results are those of a run token by token with a KV
// cache of its own.
func (e *Emulation) Emulate(ctx context.Context, scheme engine.Scheme, ids []int) ([][]float64, error) {
	rows, _, err := e.lastRows(ctx, scheme, ids)
	return rows, err
}

// lastRows returns the last token's rows and the value of one code in each, 0
// for float rows.
func (e *Emulation) lastRows(ctx context.Context, scheme engine.Scheme, ids []int) (rows [][]float64, steps []float64, err error) {
	if err := e.run(ctx, scheme, ids, e.keepLast(&rows, &steps)); err != nil {
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
func (e *Emulation) run(ctx context.Context, scheme engine.Scheme, ids []int, visit func(x, steps []float64)) error {
	s, err := e.start(scheme, ids, false)
	if err != nil {
		return err
	}
	return s.feed(ctx, ids, visit)
}
