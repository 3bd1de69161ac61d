package quant

import (
	"context"
	"fmt"

	"github.com/plumbline-go/plumbline/engine"
)

// head is the final norm and the output projection.
type head struct {
	norm []float64 // gain, [hidden]
	m    *matrix   // [vocab, hidden]
}

// loadHead prepares the head. A head that is tied to the embedding table has the
// table's codes, and so its scales.
func loadHead(w engine.Weights, a engine.Arch, opt options) (*head, error) {
	l := &loader{w: w, opt: opt}
	out := &head{norm: l.vector("model.norm.weight", a.Hidden)}
	name := "lm_head"
	if a.TiedHead {
		name = "model.embed_tokens"
		l.opt.weightsPerTensor = !opt.embedPerRow
	}
	out.m = l.linear(name, a.Vocab, a.Hidden, false).m
	if l.err != nil {
		return nil, l.err
	}
	return out, nil
}

// EmulateLogits implements engine.Yardstick. The results are those of a run
// token by token: what stands behind a position has no part in its row.
func (e *Emulation) EmulateLogits(ctx context.Context, scheme engine.Scheme, ids, output []int) ([][]float64, error) {
	if len(output) == 0 {
		return nil, fmt.Errorf("quant: got no output tokens, want at least one")
	}
	all := append(append(make([]int, 0, len(ids)+len(output)), ids...), output[:len(output)-1]...)
	var last []float64
	err := e.run(ctx, scheme, all, func(x, _ []float64) { last = x })
	if err != nil {
		return nil, err
	}
	return e.logits(last[(len(ids)-1)*e.arch.Hidden:], len(output))
}

// logits is the final norm and the head of n rows of the residual stream.
func (e *Emulation) logits(x []float64, n int) ([][]float64, error) {
	h, err := e.head()
	if err != nil {
		return nil, err
	}
	normed := make([]float64, n*e.arch.Hidden)
	rmsNorm(normed, x[:n*e.arch.Hidden], h.norm, e.arch.FinalNormEps)
	var s scratch
	if t := s.quantise(normed, n, e.arch.Hidden, e.opt.ties); t >= 0 {
		return nil, nonFinite(string(engine.ProbeFinalNorm), t)
	}
	flat := make([]float64, n*e.arch.Vocab)
	s.mul(flat, h.m, nil, n)
	rows := make([][]float64, n)
	for i := range rows {
		rows[i] = flat[i*e.arch.Vocab : (i+1)*e.arch.Vocab]
	}
	return rows, nil
}
