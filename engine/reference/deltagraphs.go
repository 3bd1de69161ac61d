package reference

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// deltaGraphs are the graphs of a linear layer, in the place of those of a layer
// with attention. They take no tables and no positions; the state goes where the
// cache goes.
func (g *layerGraphs) deltaGraphs() []namedGraph {
	return []namedGraph{
		{&g.decode, "linear decode layer", g.deltaDecodeGraph},
		{&g.probed, "probed linear decode layer", g.deltaProbedGraph},
		{&g.prefill, "linear prefill layer", g.deltaPrefillGraph},
		{&g.rows, "linear layer on given rows", g.deltaRowsGraph},
		{&g.mlpRows, "MLP half on given rows", g.mlpAllGraph},
		{&g.chunk, "linear chunk layer", g.deltaChunkGraph},
		{&g.batchPrefill, "batched linear prefill layer", g.deltaBatchPrefillGraph},
		{&g.batchDecode, "batched linear decode layer", g.deltaBatchDecodeGraph},
	}
}

// alone gives the state of one sequence the axis of sequences that the rule has.
func (s deltaState) alone() deltaState {
	axis := func(x *graph.Node) *graph.Node { return graph.Reshape(x, append([]int{1}, x.Shape().Dimensions...)...) }
	return deltaState{axis(s.conv), axis(s.s)}
}

// nodes are the parts of one sequence's state in the order of a layerState.
func (s deltaState) nodes() []*graph.Node {
	axis := func(x *graph.Node) *graph.Node { return graph.Reshape(x, x.Shape().Dimensions[1:]...) }
	return []*graph.Node{axis(s.conv), axis(s.s)}
}

// deltaDecode is a linear layer on one token: x [1, H], the slot to write, of which
// only the sign matters, and the state of one sequence.
func (g *layerGraphs) deltaDecode(p params, x, eps, at *graph.Node, st deltaState) (l layerNodes, next deltaState) {
	l = linearLayer(g, p, x, eps, nil, func(in deltaInputs, w *graph.Node) (out *graph.Node) {
		out, next = g.deltaStep(in, w, st.alone(), graph.Reshape(at, 1), g.convLate)
		return out
	})
	return l, next
}

// deltaDecodeNodes are those of a graph whose inputs are x [1, H]; the slot to
// write, an int32 scalar; eps; the state; the weights.
func (g *layerGraphs) deltaDecodeNodes(in []*graph.Node) (layerNodes, []*graph.Node) {
	c := cursor{in}
	x, at, eps := c.take(), c.take(), c.take()
	st := deltaState{c.take(), c.take()}
	l, next := g.deltaDecode(g.params(&c), x, eps, at, st)
	return l, next.nodes()
}

// deltaDecodeGraph gives the layer's output [1, H] and the new state.
func (g *layerGraphs) deltaDecodeGraph(in []*graph.Node) []*graph.Node {
	l, next := g.deltaDecodeNodes(in)
	return append([]*graph.Node{l.out}, next...)
}

// deltaProbedGraph is deltaDecodeGraph with the places of the layer as further
// outputs.
func (g *layerGraphs) deltaProbedGraph(in []*graph.Node) []*graph.Node {
	l, next := g.deltaDecodeNodes(in)
	return append(append([]*graph.Node{l.out}, next...), g.places(l)...)
}

// deltaAll is a linear layer on all T positions of one sequence, x [T, H].
func (g *layerGraphs) deltaAll(p params, x, eps *graph.Node, st deltaState) (l layerNodes, next deltaState) {
	l = linearLayer(g, p, x, eps, nil, func(in deltaInputs, w *graph.Node) (out *graph.Node) {
		out, next = g.deltaScan(in, w, st)
		return out
	})
	return l, next
}

// deltaPrefillGraph is the layer on all positions of a prompt. Its inputs are x [T,
// H]; eps; the weights. Its outputs are the layer's output [T, H] and the state
// behind the prompt.
func (g *layerGraphs) deltaPrefillGraph(in []*graph.Node) []*graph.Node {
	c := cursor{in}
	x, eps := c.take(), c.take()
	l, next := g.deltaAll(g.params(&c), x, eps, g.emptyState(x, 1))
	return append([]*graph.Node{l.out}, next.nodes()...)
}

// deltaRowsGraph is deltaPrefillGraph with the places of the layer as its outputs,
// in the order of parts, behind the layer's output.
func (g *layerGraphs) deltaRowsGraph(in []*graph.Node) []*graph.Node {
	c := cursor{in}
	x, eps := c.take(), c.take()
	l, _ := g.deltaAll(g.params(&c), x, eps, g.emptyState(x, 1))
	return l.outputs(g.places(l)...)
}

// deltaChunkGraph is the layer on c consecutive positions behind those in the
// state. Its inputs are x [c, H]; eps; the state; the weights. Its outputs are the
// layer's output [c, H] and the new state.
func (g *layerGraphs) deltaChunkGraph(in []*graph.Node) []*graph.Node {
	c := cursor{in}
	x, eps := c.take(), c.take()
	st := deltaState{c.take(), c.take()}
	l, next := g.deltaAll(g.params(&c), x, eps, st.alone())
	return append([]*graph.Node{l.out}, next.nodes()...)
}

// deltaBatchPrefillGraph is the layer on the prompts of a batch. Its inputs are x
// [B*T, H], sequence by sequence; the first slot of each that isn't padding, int32
// [B]; eps; the weights. Its outputs are the layer's output [B*T, H] and the
// states, with an axis of sequences in front.
func (g *layerGraphs) deltaBatchPrefillGraph(in []*graph.Node) []*graph.Node {
	c := cursor{in}
	x, first, eps := c.take(), c.take(), c.take()
	p := g.params(&c)
	b := first.Shape().Dimensions[0]
	dims := []int{b, x.Shape().Dimensions[0] / b, g.arch.Hidden}
	slot := graph.Iota(x.Graph(), shapes.Make(dtypes.Int32, dims...), 1)
	keep := graph.GreaterOrEqual(slot, perSequence(first, dims))
	var next deltaState
	l := linearLayer(g, p, x, eps, graph.Reshape(keep, x.Shape().Dimensions...), func(in deltaInputs, w *graph.Node) (out *graph.Node) {
		out, next = g.deltaScan(in, w, g.emptyState(x, b))
		return out
	})
	return []*graph.Node{l.out, next.conv, next.s}
}

// deltaBatchDecodeGraph is the layer on one new token of each sequence. Its inputs
// are x [B, H]; the slot that each sequence writes, int32 [B]; eps; the states; the
// weights. Its outputs are the layer's output [B, H] and the new states.
func (g *layerGraphs) deltaBatchDecodeGraph(in []*graph.Node) []*graph.Node {
	c := cursor{in}
	x, at, eps := c.take(), c.take(), c.take()
	st := deltaState{c.take(), c.take()}
	var next deltaState
	l := linearLayer(g, g.params(&c), x, eps, nil, func(in deltaInputs, w *graph.Node) (out *graph.Node) {
		out, next = g.deltaStep(in, w, st, at, false)
		return out
	})
	return []*graph.Node{l.out, next.conv, next.s}
}
