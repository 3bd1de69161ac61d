package conformance

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// headFault tells a wrong final norm from a wrong head, for logits that are not
// what the two make of the layers' last row. Logits are W*h: if some h explains
// them with the right W, then W is right, and that h is what the side's final
// norm gave it. If no h does, the head is not W.
//
// last and logits are the candidate's rows, yardLast and yardLogits those of the
// yardstick, whose int8 noise is in its h as well. It returns "" where the
// vocabulary is too small to tell.
func headFault(ctx context.Context, ref engine.Reference, f Factors, last, logits, yardLast, yardLogits []float64) (engine.Probe, error) {
	w, err := ref.Head()
	if err != nil {
		return "", err
	}
	if w.Shape[0] < 2*w.Shape[1] {
		return "", nil
	}
	side := func(last, logits []float64) (rest, turn float64, err error) {
		normed, err := ref.FinalNorm(ctx, last)
		if err != nil {
			return 0, 0, err
		}
		h, rest, err := solveHead(w, logits)
		if err != nil {
			return 0, 0, err
		}
		// The angle alone: integer logits have no size, and a sign is the head's.
		return rest, math.Sqrt(max(0, 2-2*math.Abs(metric.Cosine(h, normed)))), nil
	}
	rest, turn, err := side(last, logits)
	if err != nil {
		return "", err
	}
	yardRest, yardTurn, err := side(yardLast, yardLogits)
	if err != nil {
		return "", err
	}
	bound := func(yard float64) float64 { return f.Single.Value * max(yard, roundingOf("float32")) }
	if !over(rest, bound(yardRest)) && over(turn, bound(yardTurn)) {
		return engine.ProbeFinalNorm, nil
	}
	return engine.ProbeLogits, nil
}

// samplesPerChannel is how many rows of the head are used per channel: a random
// row of logits leaves sqrt(1 - 1/samplesPerChannel) of itself unexplained.
const samplesPerChannel = 4

// solveHead finds the h that explains the logits best, over a sample of the ids
// that is spread over the vocabulary, and the share of the logits that it leaves
// unexplained.
func solveHead(w engine.Tensor, logits []float64) (h []float64, rest float64, err error) {
	vocab, hidden := w.Shape[0], w.Shape[1]
	n := min(vocab, samplesPerChannel*hidden)
	a, y := mat.NewDense(n, hidden, nil), mat.NewVecDense(n, nil)
	for i := range n {
		id := i * vocab / n
		for j, x := range w.Data[id*hidden : (id+1)*hidden] {
			a.Set(i, j, float64(x))
		}
		y.SetVec(i, logits[id])
	}
	var x, fit mat.VecDense
	if err := x.SolveVec(a, y); err != nil {
		var ill mat.Condition // an ill-conditioned head still has its best fit
		if !errors.As(err, &ill) {
			return nil, 0, fmt.Errorf("conformance: head: %w", err)
		}
	}
	fit.MulVec(a, &x)
	return x.RawVector().Data, metric.RelativeL2(fit.RawVector().Data, y.RawVector().Data), nil
}
