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
// table's codes, and so its scales. With oneScale all rows have the same scale,
// so that the products of their codes can be compared. table loads the embedding
// table: a tied float head is its memory.
func loadHead(w engine.Weights, a engine.Arch, opt options, table func() (*table, error), oneScale bool) (*head, error) {
	l := &loader{w: w, opt: opt}
	out := &head{norm: l.vector("model.norm.weight", a.Hidden)}
	if l.err == nil && a.TiedHead && opt.floatWeights {
		t, err := table()
		if err != nil {
			return nil, err
		}
		out.m, err = floatMatrix(t.data, a.Vocab, a.Hidden)
		return out, err
	}
	name := "lm_head"
	if a.TiedHead {
		name = "model.embed_tokens"
		l.opt.weightsPerTensor = !opt.embedPerRow
	}
	if oneScale {
		l.opt.weightsPerTensor = true
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
	s, err := e.start(scheme, ids, false)
	if err != nil {
		return nil, err
	}
	var last []float64
	all := append(append(make([]int, 0, len(ids)+len(output)), ids...), output[:len(output)-1]...)
	if err := s.feed(ctx, all, func(x, _ []float64) { last = x }); err != nil {
		return nil, err
	}
	flat, err := e.logits(s.p, last[(len(ids)-1)*e.arch.Hidden:], "logit row", 0, false)
	if err != nil {
		return nil, err
	}
	rows := make([][]float64, len(output))
	for i := range rows {
		rows[i] = flat[i*e.arch.Vocab : (i+1)*e.arch.Vocab]
	}
	return rows, nil
}

// logits is the final norm and the head of rows of the residual stream [n,
// hidden]: [n, vocab], as products of codes without a scale where asked. In
// messages the first row is number first of what.
func (e *Emulation) logits(p *pass, x []float64, what string, first int, codes bool) ([]float64, error) {
	model, s := e.prepared(p.scheme), &p.s
	load := model.head
	if codes {
		load = model.codesHead
	}
	h, err := load()
	if err != nil {
		return nil, err
	}
	n, normed := len(x)/e.arch.Hidden, make([]float64, len(x))
	rmsNorm(normed, x, h.norm, e.arch.FinalNormEps)
	if t := s.quantise(normed, n, e.arch.Hidden, e.opt.ties, p.scheme); t >= 0 {
		return nil, fmt.Errorf("quant: %s: %s %d: got a NaN or infinity, want finite values", engine.ProbeFinalNorm, what, first+t)
	}
	out := make([]float64, n*e.arch.Vocab)
	if codes {
		s.mulCodes(out, h.m, n)
	} else {
		s.mul(out, h.m, nil, n)
	}
	return out, nil
}
