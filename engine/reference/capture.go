package reference

import (
	"context"
	"fmt"

	"github.com/plumbline-go/plumbline/engine"
)

// trace implements [engine.Trace]: a run that has ended, and the rows of its
// last position.
type trace struct {
	run
	rows [][]float64
}

var _ engine.Trace = (*trace)(nil)

// Capture implements [engine.Reference]: one compiled graph per layer, token by
// token, with a KV cache that the trace keeps.
func (e *Engine) Capture(ctx context.Context, ids []int) (engine.Trace, error) {
	if err := e.checkIDs(ids); err != nil {
		return nil, err
	}
	return guard(ctx, e.set.stepDeadline, func(p *progress) (engine.Trace, error) {
		cache, err := e.newKVCache(e.capacity(len(ids)))
		if err != nil {
			return nil, err
		}
		t := &trace{run: run{e: e, cache: cache}}
		if t.rows, err = t.prompt(p, ids, 0, nil); err != nil {
			return nil, err
		}
		return t, nil
	})
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
		x, err := e.given(in, 1)
		if err != nil {
			return nil, err
		}
		out, err := e.decodeLayer(e.graphs[n].decode, n, x, t.last[n], t.cache, appendTensors(nil, t.before(n)))
		if err != nil {
			return nil, err
		}
		return download(out[0], 0, e.arch.Hidden)
	})
}
