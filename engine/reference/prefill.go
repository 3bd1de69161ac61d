package reference

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// prefillGraph is one decoder layer on all T positions of a prompt. Its inputs
// are x [T, H]; the tables cos and sin for q, then for k, [T, 1, d]; eps; the
// weights. Its outputs are the layer's output [T, H], and the keys (after RoPE)
// and values that a cache of these positions holds, [kv, T, d].
func (g *layerGraphs) prefillGraph(in []*graph.Node) []*graph.Node {
	c := cursor{in}
	x := c.take()
	rq := rotary{c.take(), c.take()}
	rk := rotary{c.take(), c.take()}
	eps := c.take()
	var keys, values *graph.Node
	weights := g.params(&c)
	y := g.layer(weights, x, eps, rq, rk, func(q, k, v *graph.Node) *graph.Node {
		keys, values = graph.TransposeAllAxes(k, 1, 0, 2), graph.TransposeAllAxes(v, 1, 0, 2)
		return g.attention(weights).causal(q, keys, values)
	})
	return y.outputs(keys, values)
}

// prefilled is a run of the prefill graphs: the last position's rows, the last
// layer's output [T, H], and each layer's state, with T slots.
type prefilled struct {
	rows   [][]float64
	x      *tensors.Tensor
	caches kvCache
}

// runPrefill runs a prompt as one prefill with a causal mask.
func (e *Engine) runPrefill(p *progress, ids []int) (prefilled, error) {
	h := e.arch.Hidden
	var out prefilled
	var err error
	if out.x, err = e.embeddings(ids); err != nil {
		return prefilled{}, err
	}
	ropes, positions := ropeMemo{}, consecutive(0, len(ids))
	for n := 0; ; n++ {
		row, err := download(out.x, (len(ids)-1)*h, h)
		if err != nil {
			return prefilled{}, err
		}
		if out.rows = append(out.rows, row); n == e.arch.Layers {
			return out, nil
		}
		if err := p.step(); err != nil {
			return prefilled{}, fmt.Errorf("reference: layer %d: %w", n, err)
		}
		args, err := e.rowArgs(out.x, n, ropes, positions)
		if err != nil {
			return prefilled{}, err
		}
		ys, err := e.callLayer(e.graphs[n].prefill, n, appendTensors(append(args, e.eps[n]), e.layers[n]), sequenceFrom(0), false)
		if err != nil {
			return prefilled{}, err
		}
		if err := out.x.FinalizeAll(); err != nil {
			return prefilled{}, fmt.Errorf("reference: layer %d: input: %w", n, err)
		}
		out.x = ys[0]
		out.caches = append(out.caches, layerState{parts: ys[1:], recurrent: e.graphs[n].linear})
	}
}

// embeddings are the rows of ids before layer 0, [len(ids), H].
func (e *Engine) embeddings(ids []int) (*tensors.Tensor, error) {
	rows := make([]float64, 0, len(ids)*e.arch.Hidden)
	for _, id := range ids {
		rows = append(rows, e.embedding(id)...)
	}
	return upload(e.dev, rows, len(ids), e.arch.Hidden)
}

// consecutive is n positions from first on.
func consecutive(first, n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = first + i
	}
	return out
}

// rowArgs are what a layer's graphs on several positions at once take first: the
// rows x and, where the layer has attention, its tables for q and k.
func (e *Engine) rowArgs(x *tensors.Tensor, n int, ropes ropeMemo, positions []int) ([]any, error) {
	if e.graphs[n].linear {
		return []any{x}, nil
	}
	q, err := e.tablesOf(ropes, n, e.arch.PerLayer[n].QueryOffset, positions)
	if err != nil {
		return nil, err
	}
	k, err := e.tablesOf(ropes, n, 0, positions)
	if err != nil {
		return nil, err
	}
	return []any{x, q.cos, q.sin, k.cos, k.sin}, nil
}

// ropeMemo has the tables of one list of positions by embedding and offset:
// layers with the same constants share their tensors.
type ropeMemo map[ropeKey]tables

type ropeKey struct {
	spec   ropeSpec
	offset int
}

// tablesOf makes a layer's tables of positions, each offset too far, [n, 1, d],
// or takes them from ropes.
func (e *Engine) tablesOf(ropes ropeMemo, layer, offset int, positions []int) (tables, error) {
	spec := ropeOf(e.arch, layer)
	key := ropeKey{spec, offset}
	if t, ok := ropes[key]; ok {
		return t, nil
	}
	var cos, sin []float64
	for _, pos := range positions {
		c, s := ropeTable(e.set.dtype, spec, pos+offset)
		cos, sin = append(cos, c...), append(sin, s...)
	}
	var t tables
	for _, side := range []struct {
		to   **tensors.Tensor
		from []float64
	}{{&t.cos, cos}, {&t.sin, sin}} {
		var err error
		if *side.to, err = upload(e.dev, side.from, len(positions), 1, spec.dim); err != nil {
			return tables{}, err
		}
	}
	ropes[key] = t
	return t, nil
}
