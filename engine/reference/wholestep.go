package reference

import (
	"context"
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// wholeStepGraph is one token through all layers and the final norm. It shares
// the layer's arithmetic with the per-layer graph and none of the wiring: rows
// are outputs of this graph, the cache of all layers is one tensor, and the
// tables, constants and positions of all layers are stacked. Its inputs are x
// [1, H]; tables [L, 4, d] (cos and sin for q, then for k); the position, int32
// scalar, and the positions to write, int32 [L]; eps [L]; the caches of keys
// and of values, [L, kv, C, d]; the final norm's weight and eps; the weights of
// all layers. Its outputs are the rows [L+1, H], the last hidden state [1, H]
// and the new caches.
func (e *Engine) wholeStepGraph(in []*graph.Node) []*graph.Node {
	c := cursor{in}
	x, stack, pos, at, eps := c.take(), c.take(), c.take(), c.take(), c.take()
	keys, values := c.take(), c.take()
	finalNorm, finalEps := c.take(), c.take()
	dims := keys.Shape().Dimensions

	rows := []*graph.Node{x}
	var newKeys, newValues []*graph.Node
	for n := range e.arch.Layers {
		table := func(i int) *graph.Node {
			return graph.Reshape(graph.Slice(stack, graph.AxisElem(n), graph.AxisElem(i)), 1, 1, e.arch.HeadDim)
		}
		cache := func(all *graph.Node) *graph.Node {
			return graph.Reshape(graph.Slice(all, graph.AxisElem(n)), dims[1:]...)
		}
		write := graph.Reshape(graph.Slice(at, graph.AxisElem(n)))
		layerEps := graph.Reshape(graph.Slice(eps, graph.AxisElem(n)), 1, 1)
		x = decoderLayer(e.arch, c.params(e.slots), x, layerEps,
			rotary{table(0), table(1)}, rotary{table(2), table(3)},
			func(q, k, v *graph.Node) *graph.Node {
				k, v = writeCache(cache(keys), k, write), writeCache(cache(values), v, write)
				newKeys, newValues = append(newKeys, k), append(newValues, v)
				return attendCache(q, k, v, pos)
			}).out
		rows = append(rows, x)
	}
	return []*graph.Node{
		graph.Concatenate(rows, 0), rmsNorm(x, finalNorm, finalEps),
		graph.Stack(newKeys, 0), graph.Stack(newValues, 0),
	}
}

// wholeStep is the outcome of the last step of a run of wholeStepGraph.
type wholeStep struct{ rows, hidden *tensors.Tensor }

// wholeRun is one sequence on its way through the whole-step graph. Its cache
// has the keys of all layers in one tensor, and the values in another.
type wholeRun struct {
	e     *Engine
	cache kvCache
}

// newWholeCache is a cache of zeros for wholeRun.
func (e *Engine) newWholeCache(capacity int) (kvCache, error) {
	a := e.arch
	keys, err := e.dev.zeros(a.Layers, a.KVHeads, capacity, a.HeadDim)
	if err != nil {
		return kvCache{}, err
	}
	values, err := e.dev.zeros(a.Layers, a.KVHeads, capacity, a.HeadDim)
	return kvCache{k: []*tensors.Tensor{keys}, v: []*tensors.Tensor{values}}, err
}

// runWholeSteps runs the prompt token by token, one graph per token.
func (e *Engine) runWholeSteps(p *progress, ids []int) (wholeStep, error) {
	cache, err := e.newWholeCache(e.capacity(len(ids)))
	if err != nil {
		return wholeStep{}, err
	}
	r := wholeRun{e, cache}
	return r.prompt(p, ids, 0, nil)
}

// prompt takes the tokens of a prompt from position from on. after, when not
// nil, is called behind each with the number of positions that the cache holds.
func (r *wholeRun) prompt(p *progress, ids []int, from int, after func(length int) error) (wholeStep, error) {
	e := r.e
	s, a := schedule{arch: e.arch, ids: ids}, e.arch
	eps := make([]float64, a.Layers)
	for n := range eps {
		eps[n] = a.PerLayer[n].NormEps
	}
	epsAll, err := upload(e.dev, eps, a.Layers)
	if err != nil {
		return wholeStep{}, err
	}
	var last wholeStep
	for pos := from; pos < len(ids); pos++ {
		if err := p.step(); err != nil {
			return wholeStep{}, fmt.Errorf("reference: token %d: %w", pos, err)
		}
		var stack []float64
		writes := make([]int, a.Layers)
		for n := range writes {
			rotQ, rotK := s.rotation(n, pos)
			for _, rot := range []int{rotQ, rotK} {
				cos, sin := ropeTable(e.set.dtype, a.PerLayer[n].RopeTheta, rot, a.HeadDim)
				stack = append(append(stack, cos...), sin...)
			}
			writes[n] = s.write(n, pos)
		}
		id := s.id(pos)
		args, err := e.stepArgs(e.embed[id*a.Hidden:(id+1)*a.Hidden], stack, pos, writes)
		if err != nil {
			return wholeStep{}, err
		}
		keys, err := graph.DonateTensorBuffer(r.cache.k[0], e.dev.backend, 0)
		if err != nil {
			return wholeStep{}, fmt.Errorf("reference: token %d: cache: %w", pos, err)
		}
		values, err := graph.DonateTensorBuffer(r.cache.v[0], e.dev.backend, 0)
		if err != nil {
			return wholeStep{}, fmt.Errorf("reference: token %d: cache: %w", pos, err)
		}
		args = append(args, epsAll, keys, values, e.finalNorm, e.finalEps)
		for _, ts := range e.layers {
			args = appendTensors(args, ts)
		}
		out, err := call(e.whole, args)
		if err != nil {
			return wholeStep{}, err
		}
		last = wholeStep{out[0], out[1]}
		r.cache.k[0], r.cache.v[0] = out[2], out[3]
		if after == nil {
			continue
		}
		if err := after(pos + 1); err != nil {
			return wholeStep{}, err
		}
	}
	return last, nil
}

func (e *Engine) stepArgs(embedding []float32, stack []float64, pos int, writes []int) ([]any, error) {
	x, err := upload(e.dev, embedding, 1, e.arch.Hidden)
	if err != nil {
		return nil, err
	}
	tables, err := upload(e.dev, stack, e.arch.Layers, 4, e.arch.HeadDim)
	if err != nil {
		return nil, err
	}
	here, err := e.dev.index([]int{pos})
	if err != nil {
		return nil, err
	}
	at, err := e.dev.index(writes, len(writes))
	if err != nil {
		return nil, err
	}
	return []any{x, tables, here, at}, nil
}

// CaptureWholeStep implements [engine.Reference]: the second composition of the
// arithmetic of [Engine.Capture], faults included. On the "go" backend its rows
// are bit-identical to Capture's.
func (e *Engine) CaptureWholeStep(ctx context.Context, ids []int) ([][]float64, error) {
	if err := e.checkIDs(ids); err != nil {
		return nil, err
	}
	return guard(ctx, e.set.stepDeadline, func(p *progress) ([][]float64, error) {
		last, err := e.runWholeSteps(p, ids)
		if err != nil {
			return nil, err
		}
		return e.wholeRows(last)
	})
}

// wholeRows are the rows of a step's last token.
func (e *Engine) wholeRows(last wholeStep) ([][]float64, error) {
	rows := make([][]float64, e.arch.Layers+1)
	for i := range rows {
		var err error
		if rows[i], err = download(last.rows, i*e.arch.Hidden, e.arch.Hidden); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// LastHidden implements [engine.Reference]: the output of the final norm inside
// the whole-step graph, from a run of its own.
func (e *Engine) LastHidden(ctx context.Context, ids []int) ([]float64, error) {
	if err := e.checkIDs(ids); err != nil {
		return nil, err
	}
	return guard(ctx, e.set.stepDeadline, func(p *progress) ([]float64, error) {
		last, err := e.runWholeSteps(p, ids)
		if err != nil {
			return nil, err
		}
		return download(last.hidden, 0, e.arch.Hidden)
	})
}
