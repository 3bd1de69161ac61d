package reference

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// A batch of B sequences takes T slots each: its prompts are padded on the left,
// so that all end in the last slot and new tokens go to one slot in all of them.
// first [B] (int32) is the first slot that a sequence attends to.

// batchPrefillGraph is one decoder layer on the prompts of a batch. Its inputs
// are x [B*T, H], sequence by sequence; the tables cos and sin for q, then for k,
// [B*T, 1, d]; first; eps; the weights. Its outputs are the layer's output [B*T,
// H], and the keys (after RoPE) and values, [B, kv, T, d].
func (g *layerGraphs) batchPrefillGraph(in []*graph.Node) []*graph.Node {
	c := cursor{in}
	x := c.take()
	rq := rotary{c.take(), c.take()}
	rk := rotary{c.take(), c.take()}
	first, eps := c.take(), c.take()
	b := first.Shape().Dimensions[0]
	t := x.Shape().Dimensions[0] / b
	var keys, values *graph.Node
	weights := g.params(&c)
	y := g.layer(weights, x, eps, rq, rk, func(q, k, v *graph.Node) *graph.Node {
		heads := func(x *graph.Node) *graph.Node {
			return graph.TransposeAllAxes(graph.Reshape(x, b, t, x.Shape().Dimensions[1], width(x)), 0, 2, 1, 3)
		}
		keys, values = heads(k), heads(v)
		return g.attention(weights).padded(q, keys, values, first)
	})
	return y.outputs(keys, values)
}

// batchDecodeGraph is one decoder layer on one new token of each sequence. Its
// inputs are x [B, H]; the tables cos and sin for q, then for k, [B, 1, d]; the
// last slot to attend to, an int32 scalar; first; the slot that each sequence
// writes, int32 [B]; eps; the KV cache [B, kv, C, d]; the weights. Its outputs are
// the layer's output [B, H] and the new cache.
func (g *layerGraphs) batchDecodeGraph(in []*graph.Node) []*graph.Node {
	c := cursor{in}
	x := c.take()
	rq := rotary{c.take(), c.take()}
	rk := rotary{c.take(), c.take()}
	last, first, at, eps := c.take(), c.take(), c.take(), c.take()
	k, v := c.take(), c.take()
	weights := g.params(&c)
	y := g.layer(weights, x, eps, rq, rk, func(q, newK, newV *graph.Node) *graph.Node {
		k, v = writeBatchCache(k, newK, at), writeBatchCache(v, newV, at)
		return g.attention(weights).batchCache(q, k, v, first, last)
	})
	return y.outputs(k, v)
}

// writeBatchCache is writeCache for a batch: cache [B, kv, C, d], row [B, kv, d]
// and at [B].
func writeBatchCache(cache, row, at *graph.Node) *graph.Node {
	dims := cache.Shape().Dimensions
	slot := graph.Iota(cache.Graph(), shapes.Make(dtypes.Int32, dims...), 2)
	here := graph.Equal(slot, perSequence(at, dims))
	spread := graph.BroadcastToDims(graph.Reshape(row, dims[0], dims[1], 1, dims[3]), dims...)
	return graph.Where(here, spread, cache)
}

// perSequence spreads one value per sequence, [B], over dims, [B, ...].
func perSequence(x *graph.Node, dims []int) *graph.Node {
	ones := make([]int, len(dims))
	for i := range ones {
		ones[i] = 1
	}
	ones[0] = dims[0]
	return graph.BroadcastToDims(graph.Reshape(x, ones...), dims...)
}

// padded is causal for a batch. q [B*T, heads, d], k and v [B, kv, T,
// d] give [B*T, heads*d]. The padding attends to padding: a row of masked scores
// alone would be NaN, and spread through the values.
func (a attention) padded(q, k, v, first *graph.Node) *graph.Node {
	k, v = a.heads(k, v)
	heads, d := q.Shape().Dimensions[1], q.Shape().Dimensions[2]
	b, kv, t := k.Shape().Dimensions[0], k.Shape().Dimensions[1], k.Shape().Dimensions[2]
	rep := heads / kv
	grouped := graph.Reshape(graph.TransposeAllAxes(graph.Reshape(q, b, t, kv, rep, d), 0, 2, 3, 1, 4), b*kv, rep*t, d)
	dims := []int{b, kv, rep, t, t}
	shape := shapes.Make(dtypes.Int32, dims...)
	slot, row := graph.Iota(q.Graph(), shape, 4), graph.Iota(q.Graph(), shape, 3)
	from := perSequence(first, dims)
	keep := graph.And(graph.LessOrEqual(slot, row),
		graph.Or(graph.GreaterOrEqual(slot, from), graph.LessThan(row, from)))
	keep = a.within(keep, slot, row)
	e := width(v)
	out := a.weigh(grouped, graph.Reshape(k, b*kv, t, d), graph.Reshape(v, b*kv, t, e), graph.Reshape(keep, b*kv, rep*t, t))
	out = graph.TransposeAllAxes(graph.Reshape(out, b, kv, rep, t, e), 0, 3, 1, 2, 4)
	return graph.Reshape(out, b*t, heads*e)
}

// batchCache is cache for a batch. q [B, heads, d], k and v [B, kv, C,
// d] give [B, heads*d].
func (a attention) batchCache(q, k, v, first, last *graph.Node) *graph.Node {
	k, v = a.heads(k, v)
	heads, d := q.Shape().Dimensions[1], q.Shape().Dimensions[2]
	b, kv, capacity := k.Shape().Dimensions[0], k.Shape().Dimensions[1], k.Shape().Dimensions[2]
	rep := heads / kv
	dims := []int{b, kv, rep, capacity}
	slot := graph.Iota(q.Graph(), shapes.Make(dtypes.Int32, dims...), 3)
	keep := graph.And(graph.LessOrEqual(slot, last), graph.GreaterOrEqual(slot, perSequence(first, dims)))
	keep = a.within(keep, slot, last)
	out := a.weigh(graph.Reshape(q, b*kv, rep, d), graph.Reshape(k, b*kv, capacity, d), graph.Reshape(v, b*kv, capacity, width(v)),
		graph.Reshape(keep, b*kv, rep, capacity))
	return graph.Reshape(out, b, heads*width(v))
}
