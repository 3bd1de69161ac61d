package reference

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/plumbline-go/plumbline/engine"
)

// A layer with experts is not one graph: which experts are to be run is known when
// its router has run. The layer's graph ends in front of them, its outputs being
// the residual stream between the halves, and routing's nodes behind all others.
// The host then runs the chosen experts alone, each on the rows that chose it, as
// weights that are inputs of their graphs: an expert that nobody chose costs
// nothing. The whole step is one graph all the same; see chosenInGraph.

// routing is what a layer's graph leaves to its experts.
type routing struct {
	h      *graph.Node // [T, H]: what experts are given
	logits *graph.Node // [T, experts]
	shared *graph.Node // [T, H], what shared experts give, or nil
	routed
}

func (r *routing) nodes() []*graph.Node {
	all := []*graph.Node{r.h, r.logits, r.scores, r.ids, r.weights}
	if r.shared != nil {
		all = append(all, r.shared)
	}
	return all
}

// routedParts are the places of a layer with experts behind attention, in the
// order in which finish gives them.
func (k layerKind) routedParts() []engine.Part {
	all := []engine.Part{engine.PartResidMid, engine.PartRouterLogits, engine.PartRouterScores, engine.PartRouteIDs, engine.PartRouteWeights}
	if k.experts.Shared > 0 {
		all = append(all, engine.PartSharedOut)
	}
	return append(all, engine.PartMLPOut)
}

// route goes on behind l.residMid up to the experts.
func (g *layerGraphs) route(p params, l layerNodes, eps *graph.Node) layerNodes {
	h := p.rmsNorm(l.residMid, p.vector("post_attention_layernorm.weight"), eps)
	r := &routing{h: h, logits: routerLogits(p, g.experts, h)}
	var bias *graph.Node
	if g.experts.Gate.Scoring == engine.ScoringSigmoid {
		bias = p.vector("mlp." + gateBias)
	}
	r.routed = gate(g.experts, r.logits, bias)
	if g.experts.Shared > 0 {
		r.shared = p.feedForward(h, sharedPrefix)
	}
	l.routing = r
	return l
}

// expertSlots are the weights of one expert.
func (g *layerGraphs) expertSlots() []slot {
	return feedForwardSlots("", g.arch.Hidden, g.experts.Intermediate)
}

// addUp is what k experts' outputs, each [T, H], add to the residual rows mid, and
// the rows with it: they are weighed by weights [T, k] and added up in their order,
// which is held in the engine's dtype once, then what the shared experts give is
// added, if it isn't nil.
func (r rounder) addUp(mid, shared, weights *graph.Node, outputs []*graph.Node) (added, out *graph.Node) {
	for i, y := range outputs {
		y = graph.Mul(y, lastAxis(weights, i, i+1))
		if added == nil {
			added = y
		} else {
			added = graph.Add(added, y)
		}
	}
	if added = r.held(added); shared != nil {
		added = r.add(added, shared)
	}
	return added, r.add(mid, added)
}

// takeSum takes mid, and shared where there are shared experts.
func (g *layerGraphs) takeSum(c *cursor) (mid, shared *graph.Node) {
	if mid = c.take(); g.experts.Shared > 0 {
		shared = c.take()
	}
	return mid, shared
}

// chosenGraph are the experts of one token. Its inputs are the residual row mid
// [1, H]; what shared experts give, if there are any; the weights [1, k]; what
// experts are given, h [1, H]; the k experts' weights. Its outputs are the layer's
// output and what the experts add.
func (g *layerGraphs) chosenGraph(in []*graph.Node) []*graph.Node {
	c := cursor{in}
	mid, shared := g.takeSum(&c)
	weights, h := c.take(), c.take()
	outputs := make([]*graph.Node, g.experts.PerToken)
	for i := range outputs {
		outputs[i] = c.params(g.rounder, g.expertSlots()).feedForward(h, "")
	}
	added, out := g.addUp(mid, shared, weights, outputs)
	return []*graph.Node{out, added}
}

// expertGraph is one expert on rows: h [n, H] and the expert's weights.
func (g *layerGraphs) expertGraph(in []*graph.Node) []*graph.Node {
	c := cursor{in}
	h := c.take()
	return []*graph.Node{c.params(g.rounder, g.expertSlots()).feedForward(h, "")}
}

// combineGraph adds up what experts gave. Its inputs are mid [T, H]; what shared
// experts give, if there are any; the weights [T, k]; the experts' outputs [k, T, H].
func (g *layerGraphs) combineGraph(in []*graph.Node) []*graph.Node {
	c := cursor{in}
	mid, shared := g.takeSum(&c)
	weights, all := c.take(), c.take()
	outputs := make([]*graph.Node, g.experts.PerToken)
	for i := range outputs {
		outputs[i] = graph.Reshape(graph.Slice(all, graph.AxisElem(i)), mid.Shape().Dimensions...)
	}
	added, out := g.addUp(mid, shared, weights, outputs)
	return []*graph.Node{out, added}
}

// weighGraph weighs given experts: logits [T, experts] and ids [T, k].
func (g *layerGraphs) weighGraph(in []*graph.Node) []*graph.Node {
	return []*graph.Node{expertWeights(g.experts, in[0], in[1])}
}

// chosenInGraph is a layer's output inside one graph, on one row: each expert is a
// branch that is taken where the row chose it.
func (g *layerGraphs) chosenInGraph(l layerNodes, experts []params) *graph.Node {
	r, hidden := l.routing, l.residMid.Shape().Dimensions[1]
	rows := make([]*graph.Node, len(experts))
	for i, p := range experts {
		hits := graph.ReduceAllSum(graph.ConvertDType(graph.Equal(r.ids, graph.Scalar(r.ids.Graph(), dtypes.Int32, i)), dtypes.Int32))
		rows[i] = graph.If(graph.GreaterThan(hits, graph.ZerosLike(hits)),
			graph.NewClosure(r.h.Graph(), func(*graph.Graph) []*graph.Node { return []*graph.Node{p.feedForward(r.h, "")} }),
			graph.NewClosure(r.h.Graph(), func(gr *graph.Graph) []*graph.Node {
				return []*graph.Node{graph.Zeros(gr, shapes.Make(r.h.DType(), 1, hidden))}
			}))[0]
	}
	chosen := graph.Gather(graph.Concatenate(rows, 0), graph.Reshape(r.ids, g.experts.PerToken, 1))
	outputs := make([]*graph.Node, g.experts.PerToken)
	for i := range outputs {
		outputs[i] = graph.Slice(chosen, graph.AxisRange(i, i+1))
	}
	_, out := g.addUp(l.residMid, r.shared, r.weights, outputs)
	// compute 0.1.6 frees what a branch was the last to use a second time. The
	// barrier is a later use.
	return graph.SchedulingBarrier(out, r.h)
}

// uploadExperts puts the routed experts of a layer on the backend.
func (e *Engine) uploadExperts(n int) ([][]*tensors.Tensor, error) {
	g := e.graphs[n]
	all := make([][]*tensors.Tensor, g.experts.Count)
	for i := range all {
		var err error
		if all[i], err = uploadSlots(e.dev, e.weights, layerPrefix(n)+expertPrefix(i), g.expertSlots()); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// callLayer runs a graph of layer n, whose rows are at the places that at says,
// and the experts that it leaves to be run. Its first output is the layer's then,
// and with inside those of routedParts follow the graph's own.
func (e *Engine) callLayer(x *graph.Exec, n int, args []any, at rowsAt, inside bool) ([]*tensors.Tensor, error) {
	out, err := call(x, args)
	if err != nil || e.graphs[n].experts.Count == 0 {
		return out, err
	}
	if out, err = e.finish(n, out, at, inside); err != nil {
		return nil, fmt.Errorf("reference: layer %d: experts: %w", n, err)
	}
	return out, nil
}

// left is what a layer's graph left to its experts, on the backend.
type left struct {
	mid, h, logits, scores, ids, weights *tensors.Tensor
	shared                               *tensors.Tensor // or nil
	rows                                 int
	chosen                               [][]int // ids on the host
}

// sum are the first inputs of the graphs that end a layer.
func (l left) sum() []any {
	args := []any{l.mid}
	if l.shared != nil {
		args = append(args, l.shared)
	}
	return append(args, l.weights)
}

// places are its tensors in the order of routedParts, without what the experts add.
func (l left) places() []*tensors.Tensor {
	all := []*tensors.Tensor{l.mid, l.logits, l.scores, l.ids, l.weights}
	if l.shared != nil {
		all = append(all, l.shared)
	}
	return all
}

// leftOver takes what is left to the experts of layer n from the outputs of its
// graph, and uses the routes that are forced; behind are the other outputs.
func (e *Engine) leftOver(n int, out []*tensors.Tensor, at rowsAt) (l left, behind []*tensors.Tensor, err error) {
	count := 5
	if e.graphs[n].experts.Shared > 0 {
		count++
	}
	tail := out[len(out)-count:]
	l = left{mid: out[0], h: tail[0], logits: tail[1], scores: tail[2], ids: tail[3], weights: tail[4], rows: out[0].Shape().Dimensions[0]}
	if count > 5 {
		l.shared = tail[5]
	}
	if l.chosen, err = downloadIDs(l.ids, l.rows); err == nil {
		err = e.force(n, &l, at)
	}
	return l, out[1 : len(out)-count], err
}

// finish runs the experts of layer n.
func (e *Engine) finish(n int, out []*tensors.Tensor, at rowsAt, inside bool) ([]*tensors.Tensor, error) {
	g := e.graphs[n]
	l, behind, err := e.leftOver(n, out, at)
	if err != nil {
		return nil, err
	}
	var ends []*tensors.Tensor
	if l.rows == 1 {
		args := append(l.sum(), l.h)
		for _, id := range l.chosen[0] {
			args = appendTensors(args, e.experts[n][id])
		}
		ends, err = call(g.chosen, args)
	} else {
		ends, err = e.grouped(n, l)
	}
	if err != nil {
		return nil, err
	}
	res := append([]*tensors.Tensor{ends[0]}, behind...)
	if !inside {
		return res, finalize(append(l.places(), l.h, ends[1])...)
	}
	return append(append(res, l.places()...), ends[1]), l.h.FinalizeAll()
}

// grouped runs each expert of layer n once, on the rows that chose it, and adds up.
func (e *Engine) grouped(n int, l left) ([]*tensors.Tensor, error) {
	g, h, k := e.graphs[n], e.arch.Hidden, e.graphs[n].experts.PerToken
	given, err := download(l.h, 0, l.rows*h)
	if err != nil {
		return nil, err
	}
	type place struct{ row, slot int }
	of := make([][]place, g.experts.Count)
	for row, ids := range l.chosen {
		for slot, id := range ids {
			of[id] = append(of[id], place{row, slot})
		}
	}
	outputs := make([]float64, k*l.rows*h)
	for id, places := range of {
		if len(places) == 0 {
			continue
		}
		rows := make([]float64, fewSizes(len(places))*h)
		for i, p := range places {
			copy(rows[i*h:(i+1)*h], given[p.row*h:])
		}
		x, err := upload(e.dev, rows, len(rows)/h, h)
		if err != nil {
			return nil, err
		}
		y, err := call(g.expert, appendTensors([]any{x}, e.experts[n][id]))
		if err != nil {
			return nil, err
		}
		if rows, err = download(y[0], 0, len(rows)); err != nil {
			return nil, err
		}
		for i, p := range places {
			copy(outputs[(p.slot*l.rows+p.row)*h:][:h], rows[i*h:])
		}
		if err := finalize(x, y[0]); err != nil {
			return nil, err
		}
	}
	all, err := upload(e.dev, outputs, k, l.rows, h)
	if err != nil {
		return nil, err
	}
	ends, err := call(g.combine, append(l.sum(), all))
	if err != nil {
		return nil, err
	}
	return ends, all.FinalizeAll()
}

// fewSizes rounds a number of rows up by at most a quarter, so that few sizes
// occur: each costs a compiled graph.
func fewSizes(rows int) int {
	step := 1
	for rows > 8*step {
		step *= 2
	}
	return (rows + step - 1) / step * step
}

// downloadIDs are the ids [rows, k] on the host.
func downloadIDs(t *tensors.Tensor, rows int) ([][]int, error) {
	out := make([][]int, rows)
	err := tensors.ConstFlatData(t, func(flat []int32) {
		k := len(flat) / rows
		for i := range out {
			out[i] = make([]int, k)
			for j := range out[i] {
				out[i][j] = int(flat[i*k+j])
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("reference: reading routes: %w", err)
	}
	return out, nil
}

// rowsAt says which sequence and position a row of a run is; a negative position
// is padding.
type rowsAt func(row int) (sequence, position int)

// sequenceFrom are rows of one sequence from a position on.
func sequenceFrom(position int) rowsAt {
	return func(row int) (int, int) { return 0, position + row }
}

// prompts are the rows of a batch's prompts, padding included.
func (b *batch) prompts() rowsAt {
	return func(row int) (int, int) {
		s := row / b.slots
		return s, max(-1, row%b.slots-b.padding[s])
	}
}

// tokens are the rows of a batch's tokens in one slot.
func (b *batch) tokens(slot int) rowsAt {
	return func(row int) (int, int) { return row, slot - b.padding[row] }
}

// force replaces the choices of layer n's router where the engine has routes for
// it.
func (e *Engine) force(n int, l *left, at rowsAt) error {
	if e.forced == nil {
		return nil
	}
	replaced, given := false, make([][]float64, l.rows)
	for row := range l.chosen {
		s, pos := at(row)
		if pos < 0 || s >= len(e.forced) {
			continue
		}
		if ids, weights := e.forced[s][n].At(pos); ids != nil {
			l.chosen[row], given[row], replaced = slices.Clone(ids), weights, true
		}
	}
	if !replaced {
		return nil
	}
	ids, err := e.dev.index(slices.Concat(l.chosen...), l.rows, len(l.chosen[0]))
	if err != nil {
		return err
	}
	out, err := call(e.graphs[n].weigh, []any{l.logits, ids})
	if err != nil {
		return err
	}
	if err := finalize(l.ids, l.weights); err != nil {
		return err
	}
	l.ids, l.weights = ids, out[0]
	if !slices.ContainsFunc(given, func(w []float64) bool { return w != nil }) {
		return nil
	}
	k := len(l.chosen[0])
	all, err := download(l.weights, 0, l.rows*k)
	if err != nil {
		return err
	}
	for row, w := range given {
		copy(all[row*k:(row+1)*k], w)
	}
	if err := l.weights.FinalizeAll(); err != nil {
		return err
	}
	l.weights, err = upload(e.dev, all, l.rows, k)
	return err
}
