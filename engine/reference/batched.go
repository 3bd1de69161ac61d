package reference

import (
	"context"
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// prefillGraph is one decoder layer on all T positions of a prompt. Its inputs
// are x [T, H]; the tables cos and sin for q, then for k, [T, 1, d]; eps; the
// weights. Its output is the layer's output [T, H].
func (e *Engine) prefillGraph(in []*graph.Node) []*graph.Node {
	c := cursor{in}
	x := c.take()
	rq := rotary{c.take(), c.take()}
	rk := rotary{c.take(), c.take()}
	eps := c.take()
	return []*graph.Node{qwen2Layer(e.arch, c.params(e.slots), x, eps, rq, rk, attendCausal)}
}

// CaptureBatched implements [engine.Reference]: one prefill with a causal mask
// and no cache. The layers' constants hold, QueryOffset included; the faults of
// Arch().Fault don't, for they belong to the cache and to decode steps.
func (e *Engine) CaptureBatched(ctx context.Context, ids []int) ([][]float64, error) {
	if err := e.checkIDs(ids); err != nil {
		return nil, err
	}
	return guard(ctx, e.set.stepDeadline, func(p *progress) ([][]float64, error) {
		h := e.arch.Hidden
		var embeds []float32
		for _, id := range ids {
			embeds = append(embeds, e.embedding(id)...)
		}
		x, err := upload(e.dev, embeds, len(ids), h)
		if err != nil {
			return nil, err
		}
		ropes := map[[2]float64]tables{}
		var rows [][]float64
		for n := 0; ; n++ {
			row, err := download(x, (len(ids)-1)*h, h)
			if err != nil {
				return nil, err
			}
			if rows = append(rows, row); n == e.arch.Layers {
				return rows, nil
			}
			if err := p.step(); err != nil {
				return nil, fmt.Errorf("reference: layer %d: %w", n, err)
			}
			l := e.arch.PerLayer[n]
			q, err := e.prefillTables(ropes, l.RopeTheta, l.QueryOffset, len(ids))
			if err != nil {
				return nil, err
			}
			k, err := e.prefillTables(ropes, l.RopeTheta, 0, len(ids))
			if err != nil {
				return nil, err
			}
			out, err := call(e.prefill, appendTensors([]any{x, q.cos, q.sin, k.cos, k.sin, e.eps[n]}, e.layers[n]))
			if err != nil {
				return nil, err
			}
			x = out[0]
		}
	})
}

// prefillTables makes the tables of all positions, or takes them from ropes.
func (e *Engine) prefillTables(ropes map[[2]float64]tables, theta float64, offset, positions int) (tables, error) {
	key := [2]float64{theta, float64(offset)}
	if t, ok := ropes[key]; ok {
		return t, nil
	}
	d := e.arch.HeadDim
	var cos, sin []float64
	for pos := range positions {
		c, s := ropeTable(e.set.dtype, theta, pos+offset, d)
		cos, sin = append(cos, c...), append(sin, s...)
	}
	var t tables
	for _, side := range []struct {
		to   **tensors.Tensor
		from []float64
	}{{&t.cos, cos}, {&t.sin, sin}} {
		var err error
		if *side.to, err = upload(e.dev, side.from, positions, 1, d); err != nil {
			return tables{}, err
		}
	}
	ropes[key] = t
	return t, nil
}
