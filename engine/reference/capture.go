package reference

import (
	"context"
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/plumbline-go/plumbline/engine"
)

// trace implements [engine.Trace].
type trace struct {
	e     *Engine
	rows  [][]float64
	cache kvCache
	last  []place // the places of the last position
}

var _ engine.Trace = (*trace)(nil)

// Capture implements [engine.Reference]: one compiled graph per layer, token by
// token, with a KV cache that the trace keeps.
func (e *Engine) Capture(ctx context.Context, ids []int) (engine.Trace, error) {
	if err := e.checkIDs(ids); err != nil {
		return nil, err
	}
	return guard(ctx, e.set.stepDeadline, func(p *progress) (engine.Trace, error) {
		s := schedule{e.arch, ids}
		cache, err := e.newKVCache(e.capacity(len(ids)))
		if err != nil {
			return nil, err
		}
		t := &trace{e: e, cache: cache}
		for pos := range ids {
			if t.last, err = e.places(s, pos); err != nil {
				return nil, err
			}
			if err := t.token(p, s.id(pos), pos == len(ids)-1); err != nil {
				return nil, err
			}
		}
		return t, nil
	})
}

// token runs all layers on one token, and keeps the rows if it is the last.
func (t *trace) token(p *progress, id int, keep bool) error {
	e := t.e
	x, err := upload(e.dev, e.embedding(id), 1, e.arch.Hidden)
	if err != nil {
		return err
	}
	if err := t.keepRow(x, keep); err != nil {
		return err
	}
	for n := range e.arch.Layers {
		if err := p.step(); err != nil {
			return fmt.Errorf("reference: layer %d: %w", n, err)
		}
		k, err := graph.DonateTensorBuffer(t.cache.k[n], e.dev.backend, 0)
		if err != nil {
			return fmt.Errorf("reference: layer %d: cache: %w", n, err)
		}
		v, err := graph.DonateTensorBuffer(t.cache.v[n], e.dev.backend, 0)
		if err != nil {
			return fmt.Errorf("reference: layer %d: cache: %w", n, err)
		}
		y, newK, newV, err := e.decodeLayer(n, x, t.last[n], k, v)
		if err != nil {
			return err
		}
		t.cache.k[n], t.cache.v[n] = newK, newV
		if err := x.FinalizeAll(); err != nil {
			return fmt.Errorf("reference: layer %d: input: %w", n, err)
		}
		x = y
		if err := t.keepRow(x, keep); err != nil {
			return err
		}
	}
	return x.FinalizeAll()
}

func (t *trace) keepRow(x *tensors.Tensor, keep bool) error {
	if !keep {
		return nil
	}
	row, err := download(x, 0, t.e.arch.Hidden)
	if err != nil {
		return err
	}
	t.rows = append(t.rows, row)
	return nil
}

// Rows implements [engine.Trace].
func (t *trace) Rows() [][]float64 { return t.rows }

// Layer implements [engine.Trace]. The row is rounded once to the engine's
// arithmetic. The layer writes its own k and v for the last position and reads
// the trace's for the earlier ones, as the capture did; the trace's cache stays
// as it is, so that Layer(n, Rows()[n]) is Rows()[n+1] bit for bit.
func (t *trace) Layer(ctx context.Context, n int, in []float64) ([]float64, error) {
	e := t.e
	if n < 0 || n >= e.arch.Layers {
		return nil, fmt.Errorf("reference: layer: got %d, want 0 to %d", n, e.arch.Layers-1)
	}
	if err := e.checkRow(in); err != nil {
		return nil, err
	}
	return guard(ctx, e.set.stepDeadline, func(*progress) ([]float64, error) {
		x, err := upload(e.dev, in, 1, e.arch.Hidden)
		if err != nil {
			return nil, err
		}
		y, _, _, err := e.decodeLayer(n, x, t.last[n], t.cache.k[n], t.cache.v[n])
		if err != nil {
			return nil, err
		}
		return download(y, 0, e.arch.Hidden)
	})
}
