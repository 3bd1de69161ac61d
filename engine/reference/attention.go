package reference

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// softmax is written out: the backend's fused softmax uses an approximate exp
// in float32. Masked scores are -Inf and give exactly 0.
func softmax(scores *graph.Node) *graph.Node {
	top := graph.ReduceAndKeep(scores, graph.ReduceMax, -1)
	e := graph.Exp(graph.Sub(scores, top))
	return graph.Div(e, graph.ReduceAndKeep(e, graph.ReduceSum, -1))
}

// masked keeps the scores where keep is true.
func masked(scores, keep *graph.Node) *graph.Node {
	return graph.Where(keep, scores, graph.Infinity(scores.Graph(), scores.DType(), -1))
}

// attention is what differs between attentions: what scores are multiplied by,
// how many positions a query attends to, its own included, 0 for all, what is held
// in the engine's dtype, also of what lies inside: scores and weights, and, where
// the cache keeps something else, what makes keys and values of it (see
// layerGraphs.unfold).
type attention struct {
	rounder
	inside rounder
	times  float64
	window int
	unfold func(k, v *graph.Node) (keys, values *graph.Node)
}

// heads are the keys and values of what the cache keeps.
func (a attention) heads(k, v *graph.Node) (keys, values *graph.Node) {
	if a.unfold == nil {
		return k, v
	}
	return a.unfold(k, v)
}

// width is the last dimension.
func width(x *graph.Node) int { return x.Shape().Dimensions[x.Rank()-1] }

// within narrows keep to the window of each row: slot and row have one shape, or
// row is a scalar.
func (a attention) within(keep, slot, row *graph.Node) *graph.Node {
	if a.window == 0 {
		return keep
	}
	return graph.And(keep, graph.GreaterThan(slot, graph.AddScalar(row, -a.window)))
}

// weigh is softmax(scale*q·kᵀ, masked)·v with grouped heads: q [kv, n, d],
// k [kv, S, d] and v [kv, S, e], keep [kv, n, S] give [kv, n, e]. Scores are held before and
// after the scale, and weights behind the softmax, in transformers' eager attention.
func (a attention) weigh(q, k, v, keep *graph.Node) *graph.Node {
	scores := a.inside.held(graph.Dot(q, k).General([]int{2}, []int{0}, []int{2}, []int{0}))
	if a.times != 1 {
		scores = a.inside.scale(scores, a.times)
	}
	weights := a.inside.held(softmax(masked(scores, keep)))
	return a.held(graph.Dot(weights, v).General([]int{2}, []int{0}, []int{1}, []int{0}))
}

// cache is one query position against the KV cache. q [1, heads, d], k
// and v [kv, C, d]; pos (int32 scalar) is the last position to look at. Query
// head h reads kv head h / (heads/kv). The result is [1, heads*d].
func (a attention) cache(q, k, v, pos *graph.Node) *graph.Node {
	k, v = a.heads(k, v)
	heads, d := q.Shape().Dimensions[1], q.Shape().Dimensions[2]
	kv, capacity := k.Shape().Dimensions[0], k.Shape().Dimensions[1]
	grouped := graph.Reshape(q, kv, heads/kv, d)
	slot := graph.Iota(q.Graph(), shapes.Make(dtypes.Int32, kv, heads/kv, capacity), 2)
	keep := a.within(graph.LessOrEqual(slot, pos), slot, pos)
	return graph.Reshape(a.weigh(grouped, k, v, keep), 1, heads*width(v))
}

// chunk is a chunk of c positions against the KV cache of those before it
// and, causally, against itself. q [c, heads, d]; k and v [kv, c, d], the
// chunk's own; the cache [kv, C, d] with its first filled (int32 scalar) slots in
// use. The result is [c, heads*d].
func (a attention) chunk(q, k, v, cacheK, cacheV, filled *graph.Node) *graph.Node {
	c, heads, d := q.Shape().Dimensions[0], q.Shape().Dimensions[1], q.Shape().Dimensions[2]
	capacity := cacheK.Shape().Dimensions[1]
	k, v = a.heads(graph.Concatenate([]*graph.Node{cacheK, k}, 1), graph.Concatenate([]*graph.Node{cacheV, v}, 1))
	kv := k.Shape().Dimensions[0]
	rep, slots := heads/kv, capacity+c
	grouped := graph.Reshape(graph.TransposeAllAxes(graph.Reshape(q, c, kv, rep, d), 1, 2, 0, 3), kv, rep*c, d)
	four := shapes.Make(dtypes.Int32, kv, rep, c, slots)
	slot, row := graph.Iota(q.Graph(), four, 3), graph.Iota(q.Graph(), four, 2)
	own := graph.AddScalar(slot, -capacity) // a slot's position in the chunk, negative in the cache
	keep := graph.Or(
		graph.LessThan(slot, filled), // filled is at most C
		graph.And(graph.GreaterOrEqual(own, graph.ZerosLike(own)), graph.LessOrEqual(own, row)))
	if a.window > 0 {
		// Counted from the chunk's start, a slot of the cache is at slot-filled.
		at := graph.Where(graph.LessThan(own, graph.ZerosLike(own)), graph.Sub(slot, filled), own)
		keep = a.within(keep, at, row)
	}
	out := a.weigh(grouped, k, v, graph.Reshape(keep, kv, rep*c, slots))
	out = graph.TransposeAllAxes(graph.Reshape(out, kv, rep, c, width(v)), 2, 0, 1, 3)
	return graph.Reshape(out, c, heads*width(v))
}

// causal is all positions of a prefill at once. q [T, heads, d], k and v
// [kv, T, d] give [T, heads*d].
func (a attention) causal(q, k, v *graph.Node) *graph.Node {
	k, v = a.heads(k, v)
	t, heads, d := q.Shape().Dimensions[0], q.Shape().Dimensions[1], q.Shape().Dimensions[2]
	kv := k.Shape().Dimensions[0]
	rep := heads / kv
	grouped := graph.Reshape(graph.TransposeAllAxes(graph.Reshape(q, t, kv, rep, d), 1, 2, 0, 3), kv, rep*t, d)
	four := shapes.Make(dtypes.Int32, kv, rep, t, t)
	slot, row := graph.Iota(q.Graph(), four, 3), graph.Iota(q.Graph(), four, 2)
	keep := a.within(graph.LessOrEqual(slot, row), slot, row)
	out := a.weigh(grouped, k, v, graph.Reshape(keep, kv, rep*t, t))
	out = graph.TransposeAllAxes(graph.Reshape(out, kv, rep, t, width(v)), 2, 0, 1, 3)
	return graph.Reshape(out, t, heads*width(v))
}
