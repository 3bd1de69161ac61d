package reference

import (
	"context"
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
)

// embedding is a token's row of the table, shared memory.
func (e *Engine) embedding(id int) []float32 {
	return e.embed[id*e.arch.Hidden : (id+1)*e.arch.Hidden]
}

// Embedding implements [engine.Reference]. The values are the checkpoint's
// float32 values, exact in both arithmetics.
func (e *Engine) Embedding(id int) ([]float64, error) {
	if id < 0 || id >= e.arch.Vocab {
		return nil, fmt.Errorf("reference: embedding: got id %d, want 0 to %d", id, e.arch.Vocab-1)
	}
	row := make([]float64, e.arch.Hidden)
	for i, v := range e.embedding(id) {
		row[i] = float64(v)
	}
	return row, nil
}

// normGraph is the final norm of x [1, H].
func (e *Engine) normGraph(in []*graph.Node) []*graph.Node {
	return []*graph.Node{rmsNorm(in[0], in[1], in[2])}
}

// logitsGraph is the final norm and the head of x [1, H].
func (e *Engine) logitsGraph(in []*graph.Node) []*graph.Node {
	return []*graph.Node{linearBlocks(rmsNorm(in[0], in[1], in[2]), in[3:])}
}

// FinalNorm implements [engine.Reference].
func (e *Engine) FinalNorm(ctx context.Context, row []float64) ([]float64, error) {
	if err := e.checkRow(row); err != nil {
		return nil, err
	}
	return guard(ctx, e.set.stepDeadline, func(*progress) ([]float64, error) {
		x, err := upload(e.dev, row, 1, e.arch.Hidden)
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

// Logits returns the final norm and the head of one row of the residual stream:
// one value per vocabulary entry. The head is the embedding table where the
// checkpoint ties them; it goes to the backend with the first call.
func (e *Engine) Logits(ctx context.Context, row []float64) ([]float64, error) {
	if err := e.checkRow(row); err != nil {
		return nil, err
	}
	return guard(ctx, e.set.stepDeadline, func(*progress) ([]float64, error) {
		e.headOnce.Do(e.uploadHead)
		if e.headErr != nil {
			return nil, e.headErr
		}
		x, err := upload(e.dev, row, 1, e.arch.Hidden)
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

func (e *Engine) uploadHead() {
	s := slot{headName, []int{e.arch.Vocab, e.arch.Hidden}}
	data := e.embed
	if !e.arch.TiedHead {
		t, err := fetch(e.weights, s.name, s.shape)
		if err != nil {
			e.headErr = err
			return
		}
		data = t.Data
	}
	e.head, e.headErr = uploadSlot(e.dev, s, data)
}
