package reference

import (
	"errors"
	"fmt"

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

// kvCache is what one run keeps of the positions behind it, per layer.
type kvCache []layerState

// layerState is a layer's part of a cache. Of attention it has the keys (after
// RoPE) and the values, each [kv heads, capacity, head dim]; those of a quantised
// cache are codes, with scales [kv heads, capacity, 1]. A layer with a window has
// all positions too: the window is a mask. Latent attention has the one rotated key
// that all heads share, and the latent row, in their place.
type layerState struct {
	// parts are the tensors in the order in which the layer's graphs take and
	// return them.
	parts []*tensors.Tensor
	// recurrent is true where they hold what all positions came to, and no slot
	// for each.
	recurrent bool
}

// The parts of attention's state, in their order.
const (
	keys = iota
	values
	keyScales
	valueScales
)

func (c kvCache) all() []*tensors.Tensor {
	var all []*tensors.Tensor
	for _, l := range c {
		all = append(all, l.parts...)
	}
	return all
}

// newKVCache is a cache of zeros.
func (e *Engine) newKVCache(capacity int) (kvCache, error) {
	return e.newCache(func(g *layerGraphs) [][]int { return g.stateDims(capacity) })
}

// newBatchCache is a cache of zeros for several sequences, whose states have an
// axis of sequences in front.
func (e *Engine) newBatchCache(sequences, capacity int) (kvCache, error) {
	return e.newCache(func(g *layerGraphs) [][]int {
		dims := g.stateDims(capacity)
		for i, d := range dims {
			dims[i] = append([]int{sequences}, d...)
		}
		return dims
	})
}

// stateDims are the dimensions of a layer's state.
func (g *layerGraphs) stateDims(capacity int) [][]int {
	if g.linear {
		return deltaDims(g.arch.DeltaNet)
	}
	if m := g.latent; m.KVRank > 0 {
		return [][]int{{1, capacity, m.RopeDim}, {1, capacity, m.KVRank}}
	}
	dims := [][]int{{g.kvHeads, capacity, g.headDim}, {g.kvHeads, capacity, g.headDim}}
	if g.kv.quantised() {
		dims = append(dims, []int{g.kvHeads, capacity, 1}, []int{g.kvHeads, capacity, 1})
	}
	return dims
}

func (e *Engine) newCache(dims func(g *layerGraphs) [][]int) (kvCache, error) {
	c := make(kvCache, e.arch.Layers)
	for n, g := range e.graphs {
		var err error
		if c[n], err = e.newState(g.linear, dims(g)); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// newState is a state of zeros.
func (e *Engine) newState(recurrent bool, dims [][]int) (layerState, error) {
	s := layerState{recurrent: recurrent}
	for _, d := range dims {
		t, err := e.dev.zeros(d...)
		if err != nil {
			return layerState{}, err
		}
		s.parts = append(s.parts, t)
	}
	return s, nil
}

// donate gives the tensors to a graph call, whose outputs take their place.
func (s layerState) donate(d device) ([]any, error) {
	own := make([]any, len(s.parts))
	for i, t := range s.parts {
		donated, err := graph.DonateTensorBuffer(t, d.backend, 0)
		if err != nil {
			return nil, fmt.Errorf("cache: %w", err)
		}
		own[i] = donated
	}
	return own, nil
}

// capacity is the cache size for a prompt: the prompt's length rounded up, so
// that few sizes occur and the bits do not depend on the prompt's length.
func (e *Engine) capacity(tokens int) int {
	step := e.set.capacityStep
	return (tokens + step - 1) / step * step
}

// finalize frees the cache.
func (c kvCache) finalize() error { return finalize(c.all()...) }

// bytes is the memory that the first positions take; a recurrent state is the same
// for any number of them.
func (c kvCache) bytes(positions int) int64 {
	var sum int64
	for _, l := range c {
		for _, t := range l.parts {
			size, dims := t.ByteSize(), t.Shape().Dimensions
			if !l.recurrent {
				size = size / int64(dims[len(dims)-2]) * int64(positions)
			}
			sum += size
		}
	}
	return sum
}

// take copies the first positions of every layer of from into c. A recurrent state
// is that of all positions of from.
func (c kvCache) take(from kvCache, positions int) error {
	for n := range c {
		if err := c.write(n, 0, from[n].parts, 0, positions); err != nil {
			return err
		}
	}
	return nil
}

// write copies positions slots of a state, from slot from on, into layer n's from
// slot at on; a recurrent state takes the place of the layer's.
func (c kvCache) write(n, at int, parts []*tensors.Tensor, from, positions int) error {
	if len(parts) != len(c[n].parts) {
		return fmt.Errorf("reference: layer %d: cache: got %d parts, want %d", n, len(parts), len(c[n].parts))
	}
	for i, t := range c[n].parts {
		var err error
		if c[n].recurrent {
			err = copyAll(t, parts[i])
		} else {
			err = copyPositions(t, at, parts[i], from, positions)
		}
		if err != nil {
			return fmt.Errorf("reference: layer %d: cache: part %d: %w", n, i, err)
		}
	}
	return nil
}

// copyAll copies src into dst, of the same shape. Bits stay as they are.
func copyAll(dst, src *tensors.Tensor) error {
	if !dst.Shape().Equal(src.Shape()) {
		return fmt.Errorf("%v into %v", src.Shape(), dst.Shape())
	}
	var inner error
	err := src.ConstFlatData(func(f any) {
		inner = dst.MutableFlatData(func(t any) {
			switch f := f.(type) {
			case []float32:
				copy(t.([]float32), f)
			case []float64:
				copy(t.([]float64), f)
			}
		})
	})
	return errors.Join(err, inner)
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
