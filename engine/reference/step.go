package reference

import (
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// decodeGraph is one decoder layer on one token. Its inputs are x [1, H]; the
// tables cos and sin for q, then for k, [1, 1, d]; the last position to attend
// to and the position to write, int32 scalars; eps; the KV cache; where scales are
// another layer's, those; the weights. Its outputs are the layer's output [1, H]
// and the new cache.
func (g *layerGraphs) decodeGraph(in []*graph.Node) []*graph.Node {
	l, cache := g.decodeNodes(in)
	return l.outputs(cache.nodes()...)
}

// decodeNodes is decodeGraph with all places of the layer.
func (g *layerGraphs) decodeNodes(in []*graph.Node) (l layerNodes, cache storedCache) {
	c := cursor{in}
	x := c.take()
	rq := rotary{c.take(), c.take()}
	rk := rotary{c.take(), c.take()}
	pos, at, eps := c.take(), c.take(), c.take()
	cache = g.takeCache(&c)
	var scales *storedCache
	if g.foreignScales {
		scales = &storedCache{kScale: c.take(), vScale: c.take()}
	}
	weights := g.params(&c)
	l = g.layer(weights, x, eps, rq, rk, func(q, newK, newV *graph.Node) *graph.Node {
		cache = g.write(cache, newK, newV, at)
		return g.attend(weights, q, cache, scales, pos)
	})
	return l, cache
}

// tables are one position's rotary tables on the backend.
type tables struct{ cos, sin *tensors.Tensor }

// place is what a layer needs to know about a position: tables for q and k, the
// last slot of the cache to attend to and the slot to write. A linear layer has no
// tables, and looks at whether there is a slot to write.
type place struct {
	q, k     tables
	pos, at  *tensors.Tensor
	position int
}

// places makes the places of all layers for one position. Layers with the same
// constants share their tensors.
func (e *Engine) places(s schedule, pos int) ([]place, error) {
	ropes := ropeMemo{} // offsets are positions here
	rope := func(spec ropeSpec, position int) (tables, error) {
		if t, ok := ropes[ropeKey{spec, position}]; ok {
			return t, nil
		}
		cos, sin := ropeTable(e.set.dtype, spec, position)
		var t tables
		var err error
		if t.cos, err = upload(e.dev, cos, 1, 1, spec.dim); err != nil {
			return t, err
		}
		if t.sin, err = upload(e.dev, sin, 1, 1, spec.dim); err != nil {
			return t, err
		}
		ropes[ropeKey{spec, position}] = t
		return t, nil
	}
	slot := s.base + pos
	here, err := e.dev.index([]int{slot})
	if err != nil {
		return nil, err
	}
	ps := make([]place, e.arch.Layers)
	for n := range ps {
		p := place{pos: here, at: here, position: pos}
		if !e.graphs[n].linear {
			spec := ropeOf(e.arch, n)
			rotQ, rotK := s.rotation(n, pos)
			if p.q, err = rope(spec, rotQ); err != nil {
				return nil, err
			}
			if p.k, err = rope(spec, rotK); err != nil {
				return nil, err
			}
		}
		if at := s.write(n, pos); at != slot {
			if p.at, err = e.dev.index([]int{at}); err != nil {
				return nil, err
			}
		}
		ps[n] = p
	}
	return ps, nil
}

// decodeLayer runs layer n on x at a place, by the graph step: its decode or
// another with its inputs. own is the layer's part of the cache: tensors, which
// stay valid, or donations.
func (e *Engine) decodeLayer(step *graph.Exec, n int, x *tensors.Tensor, p place, cache kvCache, own []any) ([]*tensors.Tensor, error) {
	args := append(make([]any, 0, 14+len(e.layers[n])), x)
	if !e.graphs[n].linear {
		args = append(args, p.q.cos, p.q.sin, p.k.cos, p.k.sin, p.pos)
	}
	args = append(append(args, p.at, e.eps[n]), own...)
	if shift := e.arch.PerLayer[n].ScaleShift; shift != 0 {
		args = appendTensors(args, cache[n-shift].parts[keyScales:])
	}
	return e.callLayer(step, n, appendTensors(args, e.layers[n]), sequenceFrom(p.position), step == e.graphs[n].probed)
}
