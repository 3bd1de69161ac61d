package kernel

import (
	"context"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// Heads compares one tensor head by head. A side without that tensor is a
// *ProblemError.
func Heads(ctx context.Context, inv *Inventory, ref, cand Source, k Key) ([]metric.TensorStats, error) {
	w := newWorker(inv, ref, cand)
	defer w.close()
	r, err := w.ref.Tensor(k)
	if err != nil {
		return nil, err
	}
	c, err := w.cand.Tensor(k)
	if err != nil {
		return nil, err
	}
	heads, width := inv.Shape(k)
	out := make([]metric.TensorStats, 0, heads)
	left := 0 // pairs that the head still lacks
	err = dumpfmt.EachPair(ctx, r.reader(), c.reader(), func(_ int64, x, y []float32) error {
		for len(x) > 0 {
			if left == 0 {
				left = width
				w.diff.Reset(int64(width))
			}
			n := min(left, len(x))
			w.diff.Add(y[:n], x[:n])
			x, y = x[n:], y[n:]
			if left -= n; left == 0 {
				out = append(out, w.diff.Stats())
			}
		}
		return nil
	})
	return out, err
}
