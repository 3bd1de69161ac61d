package quant

import (
	"context"
	"fmt"
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
	e.head = sync.OnceValues(func() (*head, error) { return loadHead(w, e.arch, e.opt) })
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
	err = e.run(ctx, scheme, ids, func(x, s []float64) {
		rows = append(rows, append([]float64(nil), x[len(x)-e.arch.Hidden:]...))
		steps = append(steps, s[len(s)-1])
	})
	if err != nil {
		return nil, nil, err
	}
	return rows, steps, nil
}

// run gives visit the residual stream [tokens, hidden] and the rows' steps
// after the embedding and after each layer. visit must not keep them.
func (e *Emulation) run(ctx context.Context, scheme engine.Scheme, ids []int, visit func(x, steps []float64)) error {
	if e.invalid != nil {
		return e.invalid
	}
	if len(ids) == 0 {
		return fmt.Errorf("quant: got no token ids, want at least one")
	}
	for i, id := range ids {
		if id < 0 || id >= e.arch.Vocab {
			return fmt.Errorf("quant: token id %d: got %d, want 0 to %d", i, id, e.arch.Vocab-1)
		}
	}
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("quant: %w", err)
	}
	table, err := e.table()
	if err != nil {
		return err
	}
	p := newPass(e.arch, e.opt, scheme, len(ids))
	for t, id := range ids {
		if e.arch.Fault.EmbedFirst && t == len(ids)-1 {
			id = ids[0]
		}
		p.steps[t] = table.row(p.x[t*e.arch.Hidden:(t+1)*e.arch.Hidden], id)
	}
	if !scheme.RowsInt8 {
		clear(p.steps)
	}
	if err := p.roundRows(string(engine.ProbeEmbed)); err != nil {
		return err
	}
	visit(p.x, p.steps)
	for n := range e.layers {
		if err := context.Cause(ctx); err != nil {
			return fmt.Errorf("quant: layer %d of %d: %w", n, len(e.layers), err)
		}
		l, err := e.layers[n]()
		if err != nil {
			return err
		}
		if err := p.layer(n, l); err != nil {
			return err
		}
		visit(p.x, p.steps)
	}
	return nil
}
