package reference

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// run is one sequence on its way through the graphs of one layer: its KV cache,
// and the places of its newest position.
type run struct {
	e     *Engine
	cache kvCache
	last  []place
}

// token takes one token at a position through all layers and returns the last
// layer's output, [1, H], which is the caller's to finalize. Each row of the
// residual stream, the embedding first, goes to keep; keep may be nil.
func (r *run) token(p *progress, s schedule, pos, id int, keep func(*tensors.Tensor) error) (*tensors.Tensor, error) {
	e := r.e
	var err error
	if r.last, err = e.places(s, pos); err != nil {
		return nil, err
	}
	x, err := upload(e.dev, e.embedding(id), 1, e.arch.Hidden)
	if err != nil {
		return nil, err
	}
	for n := 0; ; n++ {
		if keep != nil {
			if err := keep(x); err != nil {
				return nil, err
			}
		}
		if n == e.arch.Layers {
			return x, nil
		}
		if err := p.step(); err != nil {
			return nil, fmt.Errorf("reference: layer %d: %w", n, err)
		}
		k, err := graph.DonateTensorBuffer(r.cache.k[n], e.dev.backend, 0)
		if err != nil {
			return nil, fmt.Errorf("reference: layer %d: cache: %w", n, err)
		}
		v, err := graph.DonateTensorBuffer(r.cache.v[n], e.dev.backend, 0)
		if err != nil {
			return nil, fmt.Errorf("reference: layer %d: cache: %w", n, err)
		}
		y, newK, newV, err := e.decodeLayer(n, x, r.last[n], k, v)
		if err != nil {
			return nil, err
		}
		r.cache.k[n], r.cache.v[n] = newK, newV
		if err := x.FinalizeAll(); err != nil {
			return nil, fmt.Errorf("reference: layer %d: input: %w", n, err)
		}
		x = y
	}
}

// prompt takes the tokens of a prompt from position from on, and returns the
// rows of the last one. after, when not nil, is called behind each token with
// the number of positions that the cache then holds.
func (r *run) prompt(p *progress, ids []int, from int, after func(length int) error) ([][]float64, error) {
	s := schedule{arch: r.e.arch, ids: ids}
	var rows [][]float64
	for pos := from; pos < len(ids); pos++ {
		var keep func(*tensors.Tensor) error
		if pos == len(ids)-1 {
			keep = func(x *tensors.Tensor) error {
				row, err := download(x, 0, r.e.arch.Hidden)
				rows = append(rows, row)
				return err
			}
		}
		x, err := r.token(p, s, pos, s.id(pos), keep)
		if err != nil {
			return nil, err
		}
		if err := x.FinalizeAll(); err != nil {
			return nil, fmt.Errorf("reference: token %d: %w", pos, err)
		}
		if after == nil {
			continue
		}
		if err := after(pos + 1); err != nil {
			return nil, err
		}
	}
	return rows, nil
}
