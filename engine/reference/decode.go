package reference

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/gomlx/core/tensors"
)

// DefaultMaxNew is how many tokens a decode produces when nothing else is asked.
const DefaultMaxNew = 8

// DecodeOptions say when a greedy decode ends.
type DecodeOptions struct {
	// MaxNew is the most tokens to produce, at least 1; 0 means DefaultMaxNew.
	MaxNew int
	// Stop are the ids that end the output. The one that ended it is kept.
	Stop []int
}

// StopReason is why a decode ended; the numbers are those that logit dumps of
// other tools report.
type StopReason int

// The reasons.
const (
	StopBudget StopReason = 0 // MaxNew tokens were produced
	StopToken  StopReason = 1 // one of the stop ids was produced
)

// Decoded is the outcome of a greedy decode.
type Decoded struct {
	// OutputIDs are the tokens produced, a stop id included.
	OutputIDs []int
	// Logits has one row of the vocabulary's length per output token: the row
	// that the token was chosen from.
	Logits     [][]float32
	StopReason StopReason
}

// Decode runs a prompt greedily: one batched prefill, then a step per token with
// the KV cache, never a step behind the last token. Each token is the argmax of
// its row as it stands in Logits, the lowest index where several are equal. A
// row with a value that isn't finite is an error.
//
// A float64 engine computes in float64 and rounds the rows once, to float32. The
// faults of Arch().Fault act on the steps behind the prefill. The memory of the
// rows is MaxNew times 4 bytes times the vocabulary.
func (e *Engine) Decode(ctx context.Context, ids []int, o DecodeOptions) (Decoded, error) {
	if o.MaxNew == 0 {
		o.MaxNew = DefaultMaxNew
	}
	if err := e.checkDecode(ids, o.MaxNew); err != nil {
		return Decoded{}, err
	}
	return guard(ctx, e.set.stepDeadline, func(p *progress) (Decoded, error) {
		r, x, err := e.startDecode(p, ids, o.MaxNew)
		if err != nil {
			return Decoded{}, err
		}
		s := schedule{e.arch, ids}
		var out Decoded
		for {
			row, err := e.logitRow(x)
			if err != nil {
				return Decoded{}, err
			}
			id, err := argmax(row)
			if err != nil {
				return Decoded{}, fmt.Errorf("reference: logit row %d: %w", len(out.Logits), err)
			}
			out.Logits, out.OutputIDs = append(out.Logits, row), append(out.OutputIDs, id)
			if slices.Contains(o.Stop, id) {
				out.StopReason = StopToken
				return out, nil
			}
			if len(out.OutputIDs) == o.MaxNew {
				return out, nil
			}
			if err := x.FinalizeAll(); err != nil {
				return Decoded{}, fmt.Errorf("reference: logit row %d: %w", len(out.Logits), err)
			}
			if x, err = r.token(p, s, len(ids)+len(out.OutputIDs)-1, id, nil); err != nil {
				return Decoded{}, err
			}
		}
	})
}

// checkDecode refuses what would run out of positions on the way.
func (e *Engine) checkDecode(ids []int, maxNew int) error {
	if maxNew < 0 {
		return fmt.Errorf("reference: decode: got %d new tokens, want at least 1", maxNew)
	}
	if err := e.checkIDs(ids); err != nil {
		return err
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

// logitRow is the final norm and the head of x [1, H], as float32.
func (e *Engine) logitRow(x *tensors.Tensor) ([]float32, error) {
	out, err := call(e.logits, appendTensors([]any{x, e.finalNorm, e.finalEps}, e.head))
	if err != nil {
		return nil, err
	}
	row := make([]float32, 0, e.arch.Vocab)
	err = out[0].ConstFlatData(func(flat any) {
		switch src := flat.(type) {
		case []float32:
			row = append(row, src...)
		case []float64:
			for _, v := range src {
				row = append(row, float32(v))
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("reference: reading logits: %w", err)
	}
	if len(row) != e.arch.Vocab {
		return nil, fmt.Errorf("reference: reading logits: got %d values, want %d", len(row), e.arch.Vocab)
	}
	return row, out[0].FinalizeAll()
}

// argmax is the lowest index of the largest value.
func argmax(row []float32) (int, error) {
	best := 0
	for i, v := range row {
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return 0, fmt.Errorf("id %d: got %v, want a finite value", i, v)
		}
		if v > row[best] {
			best = i
		}
	}
	return best, nil
}
