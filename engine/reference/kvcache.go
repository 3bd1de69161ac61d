package reference

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// writeCache returns cache [kv, C, d] with row, [1, kv, d], at position at
// (int32 scalar); an at outside the cache writes nothing. The go backend has no
// dynamic slice update, so the row is selected by comparing positions.
func writeCache(cache, row, at *graph.Node) *graph.Node {
	dims := cache.Shape().Dimensions
	here := graph.Equal(graph.Iota(cache.Graph(), shapes.Make(dtypes.Int32, dims...), 1), at)
	spread := graph.BroadcastToDims(graph.Reshape(row, dims[0], 1, dims[2]), dims...)
	return graph.Where(here, spread, cache)
}

// kvCache holds the keys (after RoPE) and values of one run, per layer, each
// [kv heads, capacity, head dim].
type kvCache struct {
	k, v []*tensors.Tensor
}

// newKVCache is a cache of zeros.
func (e *Engine) newKVCache(capacity int) (kvCache, error) {
	c := kvCache{k: make([]*tensors.Tensor, e.arch.Layers), v: make([]*tensors.Tensor, e.arch.Layers)}
	for i := range c.k {
		for _, t := range []**tensors.Tensor{&c.k[i], &c.v[i]} {
			var err error
			if *t, err = e.dev.zeros(e.arch.KVHeads, capacity, e.arch.HeadDim); err != nil {
				return kvCache{}, err
			}
		}
	}
	return c, nil
}

// capacity is the cache size for a prompt: the prompt's length rounded up, so
// that few sizes occur and the bits do not depend on the prompt's length.
func (e *Engine) capacity(tokens int) int {
	step := e.set.capacityStep
	return (tokens + step - 1) / step * step
}
