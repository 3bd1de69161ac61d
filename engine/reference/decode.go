package reference

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/plumbline-go/plumbline/engine"
)

// Decode implements [engine.Reference]: one batched prefill, then a step per
// token with the KV cache, never a step behind the last token. A row with a value
// that isn't finite is an error.
//
// The faults of Arch().Fault act on the steps behind the prefill. The memory of
// the rows is 8 bytes times the tokens times the vocabulary.
func (e *Engine) Decode(ctx context.Context, ids []int, o engine.DecodeOptions) (engine.Decoded, error) {
	switch {
	case o.Forced != nil && len(o.Forced) == 0:
		return engine.Decoded{}, errors.New("reference: decode: got no forced tokens, want at least 1")
	case o.Forced != nil:
		o.MaxNew, o.Stop = len(o.Forced), nil
	case o.MaxNew == 0:
		o.MaxNew = engine.DefaultMaxNew
	}
	if err := e.checkDecode(ids, o); err != nil {
		return engine.Decoded{}, err
	}
	return guard(ctx, e.set.stepDeadline, func(p *progress) (engine.Decoded, error) {
		r, x, err := e.startDecode(p, ids, o.MaxNew)
		if err != nil {
			return engine.Decoded{}, err
		}
		s := schedule{e.arch, ids}
		var out engine.Decoded
		for {
			row, err := e.logitRow(x)
			if err != nil {
				return engine.Decoded{}, err
			}
			id, err := argmax(row)
			if err != nil {
				return engine.Decoded{}, fmt.Errorf("reference: logit row %d: %w", len(out.Logits), err)
			}
			out.Logits, out.OutputIDs = append(out.Logits, row), append(out.OutputIDs, id)
			if slices.Contains(o.Stop, id) {
				out.StopReason = engine.StopToken
				return out, nil
			}
			if len(out.OutputIDs) == o.MaxNew {
				return out, nil
			}
			if err := x.FinalizeAll(); err != nil {
				return engine.Decoded{}, fmt.Errorf("reference: logit row %d: %w", len(out.Logits), err)
			}
			if o.Forced != nil {
				id = o.Forced[len(out.OutputIDs)-1]
			}
			if x, err = r.token(p, s, len(ids)+len(out.OutputIDs)-1, id, nil); err != nil {
				return engine.Decoded{}, err
			}
		}
	})
}

// checkDecode refuses what would run out of positions on the way.
func (e *Engine) checkDecode(ids []int, o engine.DecodeOptions) error {
	maxNew := o.MaxNew
	if maxNew < 0 {
		return fmt.Errorf("reference: decode: got %d new tokens, want at least 1", maxNew)
	}
	if err := e.checkIDs(ids); err != nil {
		return err
	}
	if len(o.Forced) > 0 {
		if err := e.checkIDs(o.Forced); err != nil {
			return fmt.Errorf("reference: forced tokens: %w", err)
		}
	}
	if limit := e.arch.MaxPositions; limit > 0 && len(ids) > limit-(maxNew-1) {
		return &PromptError{Index: -1, Got: fmt.Sprintf("%d tokens with up to %d new ones", len(ids), maxNew),
			Want: fmt.Sprintf("at most %d positions (max_position_embeddings)", limit)}
	}
	return nil
}

// startDecode prefills and returns a run with room for the new tokens, and the
// last position's row [1, H].
func (e *Engine) startDecode(p *progress, ids []int, maxNew int) (*run, *tensors.Tensor, error) {
	e.headOnce.Do(e.uploadHead)
	if e.headErr != nil {
		return nil, nil, e.headErr
	}
	pre, err := e.runPrefill(p, ids)
	if err != nil {
		return nil, nil, err
	}
	cache, err := e.newKVCache(e.capacity(len(ids) + maxNew - 1))
	if err != nil {
		return nil, nil, err
	}
	if err := cache.take(pre.caches, len(ids)); err != nil {
		return nil, nil, err
	}
	x, err := upload(e.dev, pre.rows[e.arch.Layers], 1, e.arch.Hidden)
	return &run{e: e, cache: cache}, x, err
}

// logitRow is the final norm and the head of x [1, H].
func (e *Engine) logitRow(x *tensors.Tensor) ([]float64, error) {
	out, err := call(e.logits, appendTensors([]any{x, e.finalNorm, e.finalEps}, e.head))
	if err != nil {
		return nil, err
	}
	row, err := download(out[0], 0, e.arch.Vocab)
	if err != nil {
		return nil, fmt.Errorf("reference: reading logits: %w", err)
	}
	return row, out[0].FinalizeAll()
}

// argmax is the lowest index of the largest value as float32, which is what a
// dump of the row holds.
func argmax(row []float64) (int, error) {
	best := 0
	for i, v := range row {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return 0, fmt.Errorf("id %d: got %v, want a finite value", i, v)
		}
		if float32(v) > float32(row[best]) {
			best = i
		}
	}
	return best, nil
}
