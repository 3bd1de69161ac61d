package reference

import "context"

// CaptureBatched implements [engine.Reference]: one prefill with a causal mask
// and no cache. The layers' constants hold, QueryOffset included; the faults of
// Arch().Fault don't, for they belong to the cache and to decode steps.
func (e *Engine) CaptureBatched(ctx context.Context, ids []int) ([][]float64, error) {
	if err := e.checkIDs(ids); err != nil {
		return nil, err
	}
	return guard(ctx, e.patience(len(ids)), func(p *progress) ([][]float64, error) {
		out, err := e.runPrefill(p, ids)
		return out.rows, err
	})
}
