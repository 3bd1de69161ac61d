package reference

import (
	"context"
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/plumbline-go/plumbline/engine"
)

// cacheShape is what makes the states and the rotary tables of layers fit into one
// tensor each. Those of linear layers are all alike.
type cacheShape struct {
	linear                     bool
	kvHeads, headDim, ropeDims int
}

// cacheGroup are the layers of one shape.
type cacheGroup struct {
	cacheShape
	layers []int
}

// cacheGroups are the groups of an architecture, in the order of their first
// layers. A model whose layers are all alike has one.
func cacheGroups(a engine.Arch) []cacheGroup {
	var groups []cacheGroup
	for n, l := range a.PerLayer {
		shape := cacheShape{linear: true}
		if !l.Linear {
			shape = cacheShape{kvHeads: a.KVHeadsOf(n), headDim: a.HeadDimOf(n), ropeDims: ropeOf(a, n).dim}
		}
		i := slices.IndexFunc(groups, func(g cacheGroup) bool { return g.cacheShape == shape })
		if i < 0 {
			i, groups = len(groups), append(groups, cacheGroup{cacheShape: shape})
		}
		groups[i].layers = append(groups[i].layers, n)
	}
	return groups
}

// wholeStepGraph is one token through all layers and the final norm. It shares
// the layer's arithmetic with the per-layer graph and none of the wiring: rows
// are outputs of this graph, the states of all layers of one shape are one tensor
// each, and the tables, constants and positions of all layers are stacked. Its
// inputs are x [1, H]; per cache group with attention the tables [G, 4, d] (cos and
// sin for q, then for k) of its G layers; the position, int32 scalar, and the
// positions to write, int32 [L]; eps [L]; per cache group the keys and the values,
// [G, kv, C, d], or the parts of the linear layers' states; the final norm's weight
// and eps; the weights of all layers, each with its routes, where they are forced,
// and its experts. Its outputs are the rows [L+1, H], the last
// hidden state [1, H] and the new states.
func (e *Engine) wholeStepGraph(in []*graph.Node) []*graph.Node {
	c := cursor{in}
	x := c.take()
	groups := cacheGroups(e.arch)
	tables, states, next := make([]*graph.Node, len(groups)), make([][2]*graph.Node, len(groups)), make([][2][]*graph.Node, len(groups))
	for i, g := range groups {
		if !g.linear {
			tables[i] = c.take()
		}
	}
	pos, at, eps := c.take(), c.take(), c.take()
	for i := range groups {
		states[i] = [2]*graph.Node{c.take(), c.take()}
	}
	finalNorm, finalEps := c.take(), c.take()

	rows := []*graph.Node{x}
	for n := range e.arch.Layers {
		i, m := groupOf(groups, n)
		table := func(j int) *graph.Node {
			return graph.Reshape(graph.Slice(tables[i], graph.AxisElem(m), graph.AxisElem(j)), 1, 1, groups[i].ropeDims)
		}
		state := func(part int) *graph.Node {
			all := states[i][part]
			return graph.Reshape(graph.Slice(all, graph.AxisElem(m)), all.Shape().Dimensions[1:]...)
		}
		done := func(parts ...*graph.Node) {
			for part, t := range parts {
				next[i][part] = append(next[i][part], t)
			}
		}
		write := graph.Reshape(graph.Slice(at, graph.AxisElem(n)))
		layerEps := graph.Reshape(graph.Slice(eps, graph.AxisElem(n)), 1, 1)
		g := e.graphs[n]
		p := g.params(&c)
		if g.linear {
			l, st := g.deltaDecode(p, x, layerEps, write, deltaState{state(0), state(1)})
			done(st.nodes()...)
			x = l.out
		} else {
			l := g.layer(p, x, layerEps, rotary{table(0), table(1)}, rotary{table(2), table(3)}, func(q, k, v *graph.Node) *graph.Node {
				k, v = writeCache(state(keys), k, write), writeCache(state(values), v, write)
				done(k, v)
				return g.attention(p).cache(q, k, v, pos)
			})
			if x = l.out; l.routing != nil {
				if e.forced != nil {
					g.forceInGraph(&l, c.take(), c.take(), c.take())
				}
				x = g.chosenInGraph(l, c.experts(g))
			}
		}
		rows = append(rows, x)
	}
	out := []*graph.Node{graph.Concatenate(rows, 0), e.finalNormOf(x, finalNorm, finalEps)}
	for i := range groups {
		out = append(out, graph.Stack(next[i][0], 0), graph.Stack(next[i][1], 0))
	}
	return out
}

// groupOf is the group of a layer and its place in it.
func groupOf(groups []cacheGroup, layer int) (group, place int) {
	for i, g := range groups {
		if at := slices.Index(g.layers, layer); at >= 0 {
			return i, at
		}
	}
	panic(fmt.Sprintf("reference: layer %d is in no cache group", layer))
}

// wholeStep is the outcome of the last step of a run of wholeStepGraph.
type wholeStep struct{ rows, hidden *tensors.Tensor }

// wholeRun is one sequence on its way through the whole-step graph. Its cache
// has a state per cache group, each part with an axis of layers in front.
type wholeRun struct {
	e     *Engine
	cache kvCache
}

// newWholeCache is a cache of zeros for wholeRun.
func (e *Engine) newWholeCache(capacity int) (kvCache, error) {
	var c kvCache
	for _, g := range cacheGroups(e.arch) {
		dims := e.graphs[g.layers[0]].stateDims(capacity)
		for i, d := range dims {
			dims[i] = append([]int{len(g.layers)}, d...)
		}
		s, err := e.newState(g.linear, dims)
		if err != nil {
			return nil, err
		}
		c = append(c, s)
	}
	return c, nil
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
	groups := cacheGroups(a)
	var last wholeStep
	for pos := from; pos < len(ids); pos++ {
		if err := p.step(); err != nil {
			return wholeStep{}, fmt.Errorf("reference: token %d: %w", pos, err)
		}
		stacks := make([][]float64, len(groups))
		writes := make([]int, a.Layers)
		for n := range writes {
			writes[n] = s.write(n, pos)
			g, _ := groupOf(groups, n)
			if groups[g].linear {
				continue
			}
			rotQ, rotK := s.rotation(n, pos)
			for _, rot := range []int{rotQ, rotK} {
				cos, sin := ropeTable(e.set.dtype, ropeOf(a, n), rot)
				stacks[g] = append(append(stacks[g], cos...), sin...)
			}
		}
		args, err := e.stepArgs(e.embedding(s.id(pos)), groups, stacks, pos, writes)
		if err != nil {
			return wholeStep{}, err
		}
		args = append(args, epsAll)
		for _, s := range r.cache {
			own, err := s.donate(e.dev)
			if err != nil {
				return wholeStep{}, fmt.Errorf("reference: token %d: %w", pos, err)
			}
			args = append(args, own...)
		}
		args = append(args, e.finalNorm, e.finalEps)
		for n, ts := range e.layers {
			args = appendTensors(args, ts)
			if e.forced != nil && a.RoutedAt(n) {
				routes, err := e.forcedArgs(n, pos)
				if err != nil {
					return wholeStep{}, err
				}
				args = append(args, routes...)
			}
			for _, expert := range e.experts[n] {
				args = appendTensors(args, expert)
			}
		}
		out, err := call(e.whole, args)
		if err != nil {
			return wholeStep{}, err
		}
		last = wholeStep{out[0], out[1]}
		for i := range r.cache {
			r.cache[i].parts = out[2+2*i : 4+2*i]
		}
		if after == nil {
			continue
		}
		if err := after(pos + 1); err != nil {
			return wholeStep{}, err
		}
	}
	return last, nil
}

func (e *Engine) stepArgs(embedding []float64, groups []cacheGroup, stacks [][]float64, pos int, writes []int) ([]any, error) {
	x, err := upload(e.dev, embedding, 1, e.arch.Hidden)
	if err != nil {
		return nil, err
	}
	args := []any{x}
	for i, g := range groups {
		if g.linear {
			continue
		}
		tables, err := upload(e.dev, stacks[i], len(g.layers), 4, g.ropeDims)
		if err != nil {
			return nil, err
		}
		args = append(args, tables)
	}
	here, err := e.dev.index([]int{pos})
	if err != nil {
		return nil, err
	}
	at, err := e.dev.index(writes, len(writes))
	if err != nil {
		return nil, err
	}
	return append(args, here, at), nil
}

// CaptureWholeStep implements [engine.Reference]: the second composition of the
// arithmetic of [Engine.Capture], faults included. On the "go" backend its rows
// are bit-identical to Capture's.
func (e *Engine) CaptureWholeStep(ctx context.Context, ids []int) ([][]float64, error) {
	if err := e.checkIDs(ids); err != nil {
		return nil, err
	}
	if err := e.needDense("a whole step in one graph"); err != nil {
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
	if err := e.needDense("a whole step in one graph"); err != nil {
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
