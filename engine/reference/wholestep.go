package reference

import (
	"context"
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/plumbline-go/plumbline/engine"
)

// cacheGroup are the layers whose keys and values have one shape, and so lie in
// one tensor of the whole-step graph.
type cacheGroup struct {
	kind   layerKind // of the first layer
	layers []int
}

// cacheGroups are the groups of an architecture, in the order of their first
// layers. A model whose layers are all alike has one.
func cacheGroups(a engine.Arch) []cacheGroup {
	var groups []cacheGroup
	for n := range a.Layers {
		kind := kindOf(a, n)
		i := slices.IndexFunc(groups, func(g cacheGroup) bool { return g.kind.kvHeads == kind.kvHeads && g.kind.headDim == kind.headDim })
		if i < 0 {
			i, groups = len(groups), append(groups, cacheGroup{kind: kind})
		}
		groups[i].layers = append(groups[i].layers, n)
	}
	return groups
}

// wholeStepGraph is one token through all layers and the final norm. It shares
// the layer's arithmetic with the per-layer graph and none of the wiring: rows
// are outputs of this graph, the cache of all layers of one shape is one tensor,
// and the tables, constants and positions of all layers are stacked. Its inputs
// are x [1, H]; per cache group the tables [G, 4, d] (cos and sin for q, then for
// k) of its G layers; the position, int32 scalar, and the positions to write,
// int32 [L]; eps [L]; per cache group the keys and the values, [G, kv, C, d]; the
// final norm's weight and eps; the weights of all layers, each with its routes, where
// they are forced, and its experts. Its outputs are the rows
// [L+1, H], the last hidden state [1, H] and the new caches, keys before values.
func (e *Engine) wholeStepGraph(in []*graph.Node) []*graph.Node {
	c := cursor{in}
	x := c.take()
	groups := cacheGroups(e.arch)
	type stacked struct{ tables, keys, values *graph.Node }
	stacks := make([]stacked, len(groups))
	for i := range groups {
		stacks[i].tables = c.take()
	}
	pos, at, eps := c.take(), c.take(), c.take()
	for i := range groups {
		stacks[i].keys, stacks[i].values = c.take(), c.take()
	}
	finalNorm, finalEps := c.take(), c.take()

	rows := []*graph.Node{x}
	newKeys, newValues := make([][]*graph.Node, len(groups)), make([][]*graph.Node, len(groups))
	for n := range e.arch.Layers {
		i, m := groupOf(groups, n)
		group, stack := groups[i], stacks[i]
		table := func(i int) *graph.Node {
			return graph.Reshape(graph.Slice(stack.tables, graph.AxisElem(m), graph.AxisElem(i)), 1, 1, group.kind.ropeDim())
		}
		cache := func(all *graph.Node) *graph.Node {
			return graph.Reshape(graph.Slice(all, graph.AxisElem(m)), all.Shape().Dimensions[1:]...)
		}
		write := graph.Reshape(graph.Slice(at, graph.AxisElem(n)))
		layerEps := graph.Reshape(graph.Slice(eps, graph.AxisElem(n)), 1, 1)
		g := e.graphs[n]
		weights := c.params(g.slots)
		l := g.layer(weights, x, layerEps,
			rotary{table(0), table(1)}, rotary{table(2), table(3)},
			func(q, k, v *graph.Node) *graph.Node {
				k, v = writeCache(cache(stack.keys), k, write), writeCache(cache(stack.values), v, write)
				newKeys[i], newValues[i] = append(newKeys[i], k), append(newValues[i], v)
				return g.attention(weights).cache(q, k, v, pos)
			})
		if x = l.out; l.routing != nil {
			if e.forced != nil {
				g.forceInGraph(&l, c.take(), c.take(), c.take())
			}
			x = g.chosenInGraph(l, c.experts(g))
		}
		rows = append(rows, x)
	}
	out := []*graph.Node{graph.Concatenate(rows, 0), rmsNorm(x, finalNorm, finalEps)}
	for i := range groups {
		out = append(out, graph.Stack(newKeys[i], 0), graph.Stack(newValues[i], 0))
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
// has the keys of a cache group in one tensor, and the values in another.
type wholeRun struct {
	e     *Engine
	cache kvCache
}

// newWholeCache is a cache of zeros for wholeRun.
func (e *Engine) newWholeCache(capacity int) (kvCache, error) {
	var c kvCache
	for _, g := range cacheGroups(e.arch) {
		for _, side := range []struct {
			to   *[]*tensors.Tensor
			dims func() (heads, width int)
		}{{&c.k, g.kind.cacheKeys}, {&c.v, g.kind.cacheValues}} {
			heads, width := side.dims()
			t, err := e.dev.zeros(len(g.layers), heads, capacity, width)
			if err != nil {
				return kvCache{}, err
			}
			*side.to = append(*side.to, t)
		}
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
			g, _ := groupOf(groups, n)
			rotQ, rotK := s.rotation(n, pos)
			for _, rot := range []int{rotQ, rotK} {
				cos, sin := ropeTable(e.set.dtype, ropeOf(a, n), rot)
				stacks[g] = append(append(stacks[g], cos...), sin...)
			}
			writes[n] = s.write(n, pos)
		}
		args, err := e.stepArgs(e.embedding(s.id(pos)), groups, stacks, pos, writes)
		if err != nil {
			return wholeStep{}, err
		}
		args = append(args, epsAll)
		for i := range groups {
			for _, t := range []*tensors.Tensor{r.cache.k[i], r.cache.v[i]} {
				donated, err := graph.DonateTensorBuffer(t, e.dev.backend, 0)
				if err != nil {
					return wholeStep{}, fmt.Errorf("reference: token %d: cache: %w", pos, err)
				}
				args = append(args, donated)
			}
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
		for i := range groups {
			r.cache.k[i], r.cache.v[i] = out[2+2*i], out[3+2*i]
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
		tables, err := upload(e.dev, stacks[i], len(g.layers), 4, g.kind.ropeDim())
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
