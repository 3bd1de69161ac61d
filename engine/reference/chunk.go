package reference

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// chunkGraph is one decoder layer on c consecutive positions behind those in the
// KV cache. Its inputs are x [c, H]; the tables cos and sin for q, then for k,
// [c, 1, d]; the number of slots in use, an int32 scalar; eps; the cache; the
// weights. Its outputs are the layer's output [c, H], and the keys (after RoPE)
// and values of the chunk, [kv, c, d].
func (g *layerGraphs) chunkGraph(in []*graph.Node) []*graph.Node {
	c := cursor{in}
	x := c.take()
	rq := rotary{c.take(), c.take()}
	rk := rotary{c.take(), c.take()}
	filled, eps := c.take(), c.take()
	cacheK, cacheV := c.take(), c.take()
	var keys, values *graph.Node
	weights := g.params(&c)
	y := g.layer(weights, x, eps, rq, rk, func(q, k, v *graph.Node) *graph.Node {
		keys, values = graph.TransposeAllAxes(k, 1, 0, 2), graph.TransposeAllAxes(v, 1, 0, 2)
		return g.attention(weights).chunk(q, keys, values, cacheK, cacheV, filled)
	})
	return y.outputs(keys, values)
}

// startByChunk runs the prompt in chunks of at most size positions and returns
// the last position's row, [1, H].
func (r *run) startByChunk(p *progress, s schedule, size int) (*tensors.Tensor, error) {
	if err := r.e.needDense("a prompt in chunks"); err != nil {
		return nil, err
	}
	h := r.e.arch.Hidden
	for from := 0; ; from += size {
		to := min(len(s.ids), from+size)
		x, err := r.chunk(p, s, from, to)
		if err != nil {
			return nil, err
		}
		if to < len(s.ids) {
			if err := x.FinalizeAll(); err != nil {
				return nil, fmt.Errorf("reference: chunk at %d: %w", from, err)
			}
			continue
		}
		row, err := download(x, (to-from-1)*h, h)
		if err != nil {
			return nil, err
		}
		return upload(r.e.dev, row, 1, h)
	}
}

// chunk runs the positions from to to-1 of the prompt and returns the last
// layer's output, [to-from, H].
func (r *run) chunk(p *progress, s schedule, from, to int) (*tensors.Tensor, error) {
	e := r.e
	x, err := e.embeddings(s.ids[from:to])
	if err != nil {
		return nil, err
	}
	filled, err := e.dev.index([]int{s.base + from})
	if err != nil {
		return nil, err
	}
	ropes, positions := ropeMemo{}, consecutive(from+s.chunkOffset(from), to-from)
	for n := range e.arch.Layers {
		if err := p.step(); err != nil {
			return nil, fmt.Errorf("reference: chunk at %d: layer %d: %w", from, n, err)
		}
		args, err := e.rowArgs(x, n, ropes, positions)
		if err != nil {
			return nil, err
		}
		if !e.graphs[n].linear {
			args = append(args, filled)
		}
		args = appendTensors(append(args, e.eps[n]), r.cache[n].parts)
		out, err := e.callLayer(e.graphs[n].chunk, n, appendTensors(args, e.layers[n]), sequenceFrom(from), false)
		if err != nil {
			return nil, err
		}
		if err := r.cache.write(n, s.base+from, out[1:], 0, to-from); err != nil {
			return nil, err
		}
		if err := finalize(append(out[1:], x)...); err != nil {
			return nil, fmt.Errorf("reference: chunk at %d: layer %d: %w", from, n, err)
		}
		x = out[0]
	}
	return x, nil
}
