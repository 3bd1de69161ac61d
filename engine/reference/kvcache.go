package reference

import (
	"errors"
	"fmt"
	"slices"

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
// [kv heads, capacity, head dim]; with latent attention the one rotated key that
// all heads share, and the latent rows. A layer with a window has all positions too: the
// window is a mask.
// Those of a quantised cache are codes, with scales [kv heads, capacity, 1].
type kvCache struct {
	k, v, kScale, vScale []*tensors.Tensor
}

// layer is what the cache has of a layer, in the order of storedCache.nodes.
func (c kvCache) layer(n int) []**tensors.Tensor {
	if c.kScale == nil {
		return []**tensors.Tensor{&c.k[n], &c.v[n]}
	}
	return []**tensors.Tensor{&c.k[n], &c.v[n], &c.kScale[n], &c.vScale[n]}
}

func (c kvCache) all() []*tensors.Tensor { return slices.Concat(c.k, c.v, c.kScale, c.vScale) }

// newKVCache is a cache of zeros.
func (e *Engine) newKVCache(capacity int) (kvCache, error) {
	c, err := e.newCache(func(heads, width int) []int { return []int{heads, capacity, width} })
	if err != nil || !e.kv.quantised() {
		return c, err
	}
	scales, err := e.newCache(func(heads, _ int) []int { return []int{heads, capacity, 1} })
	c.kScale, c.vScale = scales.k, scales.v
	return c, err
}

// newBatchCache is a cache of zeros for several sequences, per layer [sequences,
// kv heads, capacity, head dim].
func (e *Engine) newBatchCache(sequences, capacity int) (kvCache, error) {
	return e.newCache(func(heads, width int) []int { return []int{sequences, heads, capacity, width} })
}

// newCache is a cache of zeros with the dimensions that dims makes of the heads and
// the width of a layer's keys or values.
func (e *Engine) newCache(dims func(heads, width int) []int) (kvCache, error) {
	c := kvCache{k: make([]*tensors.Tensor, e.arch.Layers), v: make([]*tensors.Tensor, e.arch.Layers)}
	for i := range c.k {
		var err error
		if c.k[i], err = e.dev.zeros(dims(e.graphs[i].cacheKeys())...); err != nil {
			return kvCache{}, err
		}
		if c.v[i], err = e.dev.zeros(dims(e.graphs[i].cacheValues())...); err != nil {
			return kvCache{}, err
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

// finalize frees the cache.
func (c kvCache) finalize() error { return finalize(c.all()...) }

// bytes is the memory that the first positions take.
func (c kvCache) bytes(positions int) int64 {
	var sum int64
	for _, t := range c.all() {
		dims := t.Shape().Dimensions
		sum += t.ByteSize() / int64(dims[len(dims)-2]) * int64(positions)
	}
	return sum
}

// take copies the first positions of every layer of from into c.
func (c kvCache) take(from kvCache, positions int) error {
	for n := range c.k {
		if err := c.copy(n, 0, from, 0, positions); err != nil {
			return err
		}
	}
	return nil
}

// copy copies positions slots of layer n, from slot start of another cache on,
// into this one's from slot at on.
func (c kvCache) copy(n, at int, from kvCache, start, positions int) error {
	if err := c.write(n, at, from.k[n], from.v[n], start, positions); err != nil || c.kScale == nil {
		return err
	}
	scales, theirs := kvCache{k: c.kScale, v: c.vScale}, kvCache{k: from.kScale, v: from.vScale}
	return scales.write(n, at, theirs.k[n], theirs.v[n], start, positions)
}

// write copies positions slots of keys and values, from slot from on, into layer
// n's from slot at on.
func (c kvCache) write(n, at int, keys, values *tensors.Tensor, from, positions int) error {
	if err := copyPositions(c.k[n], at, keys, from, positions); err != nil {
		return fmt.Errorf("reference: layer %d: keys: %w", n, err)
	}
	if err := copyPositions(c.v[n], at, values, from, positions); err != nil {
		return fmt.Errorf("reference: layer %d: values: %w", n, err)
	}
	return nil
}

// copyPositions copies positions slots of src, from slot start on, into dst from
// slot at on, both of one dtype and of the shape [..., slots, d], the capacities
// of their own. Bits stay as they are.
func copyPositions(dst *tensors.Tensor, at int, src *tensors.Tensor, start, positions int) error {
	to, from := dst.Shape().Dimensions, src.Shape().Dimensions
	axis := len(to) - 2
	d, room, have := to[axis+1], to[axis], from[axis]
	heads := dst.Size() / (room * d)
	if at < 0 || start < 0 || at+positions > room || start+positions > have || dst.DType() != src.DType() || src.Size() != heads*have*d {
		return fmt.Errorf("%d positions from %d on of %v %v into %v %v from %d on", positions, start, src.DType(), from, dst.DType(), to, at)
	}
	var inner error
	err := src.ConstFlatData(func(f any) {
		inner = dst.MutableFlatData(func(t any) {
			switch f := f.(type) {
			case []float32:
				copyHeads(t.([]float32)[at*d:], f[start*d:], heads, room*d, have*d, positions*d)
			case []float64:
				copyHeads(t.([]float64)[at*d:], f[start*d:], heads, room*d, have*d, positions*d)
			}
		})
	})
	return errors.Join(err, inner)
}

func copyHeads[T real](dst, src []T, heads, dstStride, srcStride, n int) {
	for h := range heads {
		copy(dst[h*dstStride:h*dstStride+n], src[h*srcStride:])
	}
}
