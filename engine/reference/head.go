package reference

import (
	"context"
	"fmt"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/plumbline-go/plumbline/engine"
)

// embedding is a token's row before layer 0: that of the table, which is exact in
// both arithmetics, or its product with the model's scale, rounded to float32 in
// float32, as the scale itself is, and both to bfloat16 in bfloat16.
func (e *Engine) embedding(id int) []float64 {
	row := make([]float64, e.arch.Hidden)
	scale, r := e.arch.EmbedScale, e.set.dtype.rounder()
	for i, v := range e.embed[id*e.arch.Hidden : (id+1)*e.arch.Hidden] {
		switch {
		case scale == 0:
			row[i] = float64(v)
		case e.set.dtype == Float64:
			row[i] = float64(v) * scale
		default:
			row[i] = r.value(float64(v * float32(r.value(scale))))
		}
	}
	return row
}

// Embedding implements [engine.Reference].
func (e *Engine) Embedding(id int) ([]float64, error) {
	if id < 0 || id >= e.arch.Vocab {
		return nil, fmt.Errorf("reference: embedding: got id %d, want 0 to %d", id, e.arch.Vocab-1)
	}
	return e.embedding(id), nil
}

// finalNormOf is the family's final norm of x [T, H].
func (e *Engine) finalNormOf(x, w, eps *graph.Node) *graph.Node {
	return families[e.arch.Family].norm(e.set.dtype.rounder(), x, w, eps)
}

// normGraph is the final norm of x [1, H].
func (e *Engine) normGraph(in []*graph.Node) []*graph.Node {
	return []*graph.Node{e.finalNormOf(in[0], in[1], in[2])}
}

// logitsGraph is the final norm and the head of x [T, H], capped where the model
// caps its logits.
func (e *Engine) logitsGraph(in []*graph.Node) []*graph.Node {
	r := e.set.dtype.rounder()
	y := r.held(linearBlocks(e.finalNormOf(in[0], in[1], in[2]), in[3:]))
	if c := e.arch.LogitCap; c > 0 {
		y = r.held(graph.Div(y, graph.Scalar(y.Graph(), y.DType(), c)))
		y = r.scale(r.held(graph.Tanh(y)), c)
	}
	return []*graph.Node{y}
}

// FinalNorm implements [engine.Reference].
func (e *Engine) FinalNorm(ctx context.Context, row []float64) ([]float64, error) {
	if err := e.checkRow(row); err != nil {
		return nil, err
	}
	return guard(ctx, e.set.stepDeadline, func(*progress) ([]float64, error) {
		x, err := e.given(row, 1)
		if err != nil {
			return nil, err
		}
		out, err := call(e.norm, []any{x, e.finalNorm, e.finalEps})
		if err != nil {
			return nil, err
		}
		return download(out[0], 0, e.arch.Hidden)
	})
}

// Logits implements [engine.Reference]. The head goes to the backend with the
// first call.
func (e *Engine) Logits(ctx context.Context, row []float64) ([]float64, error) {
	if err := e.checkRow(row); err != nil {
		return nil, err
	}
	return guard(ctx, e.set.stepDeadline, func(*progress) ([]float64, error) {
		if err := e.needHead(); err != nil {
			return nil, err
		}
		x, err := e.given(row, 1)
		if err != nil {
			return nil, err
		}
		out, err := call(e.logits, appendTensors([]any{x, e.finalNorm, e.finalEps}, e.head))
		if err != nil {
			return nil, err
		}
		return download(out[0], 0, e.arch.Vocab)
	})
}

// Head implements [engine.Reference].
func (e *Engine) Head() (engine.Tensor, error) {
	shape := []int{e.arch.Vocab, e.arch.Hidden}
	if e.arch.TiedHead {
		return engine.Tensor{Shape: shape, Data: e.embed}, nil
	}
	return e.dev.fetch(e.weights, headName, shape)
}

// needHead sees to it that the head is on the backend.
func (e *Engine) needHead() error {
	e.headOnce.Do(e.uploadHead)
	return e.headErr
}

func (e *Engine) uploadHead() {
	if e.base != nil {
		if e.headErr = e.base.needHead(); e.headErr == nil {
			e.head = e.base.head
		}
		return
	}
	t, err := e.Head()
	if err != nil {
		e.headErr = err
		return
	}
	e.head, e.headErr = uploadSlot(e.dev, slot{headName, t.Shape}, t.Data)
}
