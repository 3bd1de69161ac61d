package mutant

import (
	"context"

	"github.com/plumbline-go/plumbline/engine"
)

// Reference returns a reference engine with the fault, planted at a layer or
// row (see Place). open makes a reference of a checkpoint; only engine faults
// need it.
//
// A fault of the decode path (a stale cache row, a position off by one in
// decode, the wrong token embedded, padding that isn't masked) acts on captures
// token by token and on decodes alone: the batched prefill, a layer over all
// positions, the float64 model, the checkpoint, the norms and the head are the
// clean side's, since they are what such a fault is seen against. Other engine faults are in all of it. A capture
// fault is in what Capture returns, an output fault in what Decode and DecodeBatch
// return, and nowhere else.
func (m Mutant) Reference(clean engine.Reference, open func(engine.Weights) (engine.Reference, error), at int) (engine.Reference, error) {
	if !m.InReference() {
		return nil, m.unsupported("a reference")
	}
	if m.weights == nil {
		if err := m.checkPlace(at, clean.Weights().Arch().Layers); err != nil {
			return nil, err
		}
		if m.output != nil {
			return spoiledOutput{clean, m, at}, nil
		}
		return spoiled{clean, m, at}, nil
	}
	if open == nil {
		return nil, m.errorf("got no way to open a reference on other weights")
	}
	w, err := m.Weights(clean.Weights(), at)
	if err != nil {
		return nil, err
	}
	faulty, err := open(w)
	if err != nil || !m.decode {
		return faulty, err
	}
	return decodeFaulty{clean, faulty}, nil
}

// decodeFaulty takes the incremental runs from a faulty engine.
type decodeFaulty struct {
	engine.Reference
	faulty engine.Reference
}

func (d decodeFaulty) Capture(ctx context.Context, ids []int) (engine.Trace, error) {
	return d.faulty.Capture(ctx, ids)
}

func (d decodeFaulty) CaptureWholeStep(ctx context.Context, ids []int) ([][]float64, error) {
	return d.faulty.CaptureWholeStep(ctx, ids)
}

func (d decodeFaulty) LastHidden(ctx context.Context, ids []int) ([]float64, error) {
	return d.faulty.LastHidden(ctx, ids)
}

func (d decodeFaulty) Decode(ctx context.Context, ids []int, o engine.DecodeOptions) (engine.Decoded, error) {
	return d.faulty.Decode(ctx, ids, o)
}

func (d decodeFaulty) DecodeBatch(ctx context.Context, prompts, forced [][]int) ([][][]float64, error) {
	return d.faulty.DecodeBatch(ctx, prompts, forced)
}

// spoiled is a reference whose Capture has a capture fault.
type spoiled struct {
	engine.Reference
	m  Mutant
	at int
}

func (s spoiled) Capture(ctx context.Context, ids []int) (engine.Trace, error) {
	clean, err := s.Reference.Capture(ctx, ids)
	if err != nil {
		return nil, err
	}
	c := &capture{}
	for _, row := range clean.Rows() {
		c.rows, c.steps = append(c.rows, append([]float64(nil), row...)), append(c.steps, 0)
	}
	err = s.m.rows(ctx, site{
		at:      s.at,
		normed:  func(ctx context.Context, _ []float64) ([]float64, error) { return s.Reference.LastHidden(ctx, ids) },
		batched: func(ctx context.Context) ([][]float64, error) { return s.CaptureBatched(ctx, ids) },
		previous: func(ctx context.Context) ([][]float64, error) {
			if len(ids) < 2 {
				return nil, nil
			}
			t, err := s.Reference.Capture(ctx, ids[:len(ids)-1])
			if err != nil {
				return nil, err
			}
			return t.Rows(), nil
		},
	}, c)
	if err != nil {
		return nil, err
	}
	return spoiledTrace{clean, c.rows}, nil
}

// spoiledTrace has other rows than the run it came from.
type spoiledTrace struct {
	engine.Trace
	rows [][]float64
}

func (t spoiledTrace) Rows() [][]float64 { return t.rows }
