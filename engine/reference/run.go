package reference

import (
	"fmt"

	"github.com/gomlx/gomlx/core/tensors"
)

// run is one sequence on its way through the graphs of one layer: its KV cache,
// and the places of its newest position.
type run struct {
	e     *Engine
	cache kvCache
	last  []place
	// earlier are the recurrent states that the newest position was run with, by
	// layer, where they were kept: the cache has those behind it.
	earlier map[int]layerState
}

// before is the state of a layer that its newest position was run with. Slots of
// a cache are written anew when the position is run again.
func (r *run) before(n int) []*tensors.Tensor {
	if s, ok := r.earlier[n]; ok {
		return s.parts
	}
	return r.cache[n].parts
}

// watch is what a caller wants to see of a token on its way. Nil functions see
// nothing.
type watch struct {
	// row gets each row of the residual stream, the embedding first.
	row func(n int, x *tensors.Tensor) error
	// inside says of which layers the places inside are wanted, and parts gets
	// them in the order of layerKind.parts.
	inside func(n int) bool
	parts  func(n int, places []*tensors.Tensor) error
	// again is true where the position will be run again, as [run.before] says.
	again bool
}

// token takes one token at a position through all layers and returns the last
// layer's output, [1, H], which is the caller's to finalize.
func (r *run) token(p *progress, s schedule, pos, id int, w watch) (*tensors.Tensor, error) {
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
		if w.row != nil {
			if err := w.row(n, x); err != nil {
				return nil, err
			}
		}
		if n == e.arch.Layers {
			return x, nil
		}
		if err := p.step(); err != nil {
			return nil, fmt.Errorf("reference: layer %d: %w", n, err)
		}
		own, err := r.own(n, w.again)
		if err != nil {
			return nil, fmt.Errorf("reference: layer %d: %w", n, err)
		}
		step, inside := e.graphs[n].decode, w.inside != nil && w.inside(n)
		if inside {
			step = e.graphs[n].probed
		}
		out, err := e.decodeLayer(step, n, x, r.last[n], r.cache, own)
		if err != nil {
			return nil, err
		}
		places := out[1+len(own):]
		r.cache[n].parts = out[1 : 1+len(own)]
		if err := x.FinalizeAll(); err != nil {
			return nil, fmt.Errorf("reference: layer %d: input: %w", n, err)
		}
		if x = out[0]; !inside {
			continue
		}
		if err := w.parts(n, places); err != nil {
			return nil, err
		}
		if err := finalize(places...); err != nil {
			return nil, fmt.Errorf("reference: layer %d: probes: %w", n, err)
		}
	}
}

// own is a layer's state as a graph takes it: donated, or kept to be taken again.
func (r *run) own(n int, again bool) ([]any, error) {
	s := r.cache[n]
	if !again || !s.recurrent {
		return s.donate(r.e.dev)
	}
	if r.earlier == nil {
		r.earlier = map[int]layerState{}
	}
	r.earlier[n] = s
	return appendTensors(nil, s.parts), nil
}

// prompt takes the tokens of a prompt from position from on, and returns the
// rows of the last one. after, when not nil, is called behind each token with
// the number of positions that the cache then holds.
func (r *run) prompt(p *progress, ids []int, from int, after func(length int) error) ([][]float64, error) {
	s := schedule{arch: r.e.arch, ids: ids}
	var rows [][]float64
	for pos := from; pos < len(ids); pos++ {
		var w watch
		if pos == len(ids)-1 {
			w.again = true
			w.row = func(_ int, x *tensors.Tensor) error {
				row, err := download(x, 0, r.e.arch.Hidden)
				rows = append(rows, row)
				return err
			}
		}
		x, err := r.token(p, s, pos, s.id(pos), w)
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
