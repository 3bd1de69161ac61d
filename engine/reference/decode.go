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

// Decode implements [engine.Reference]: the prompt as o.Chunk says, then a step
// per token with the KV cache, never a step behind the last token. A row with a
// value that isn't finite is an error.
//
// The faults of Arch().Fault that belong to single steps act behind the prompt,
// and with o.Chunk 1 on the prompt too. The memory of the rows is 8 bytes times
// the tokens times the vocabulary.
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
	return guard(ctx, e.patience(len(ids)), func(p *progress) (engine.Decoded, error) {
		if err := e.needHead(); err != nil {
			return engine.Decoded{}, err
		}
		r, s, err := e.newDecodeRun(ids, o)
		if err != nil {
			return engine.Decoded{}, err
		}
		x, err := r.start(p, s, o)
		if err != nil {
			return engine.Decoded{}, err
		}
		out, err := r.decode(p, s, x, o)
		if err != nil {
			return engine.Decoded{}, err
		}
		return out, e.left.keep(r, s, len(ids)+len(out.OutputIDs)-1)
	})
}

// decode goes on behind the prompt, whose last position's row is x [1, H].
func (r *run) decode(p *progress, s schedule, x *tensors.Tensor, o engine.DecodeOptions) (engine.Decoded, error) {
	var out engine.Decoded
	for {
		row, err := r.e.logitRow(x)
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
		if x, err = r.token(p, s, len(s.ids)+len(out.OutputIDs)-1, id, watch{}); err != nil {
			return engine.Decoded{}, err
		}
	}
}

// checkDecode refuses what would run out of positions on the way.
func (e *Engine) checkDecode(ids []int, o engine.DecodeOptions) error {
	maxNew := o.MaxNew
	if maxNew < 0 {
		return fmt.Errorf("reference: decode: got %d new tokens, want at least 1", maxNew)
	}
	if o.Chunk < 0 {
		return fmt.Errorf("reference: decode: got chunks of %d positions, want at least 1, or 0 for one batch", o.Chunk)
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

// newDecodeRun returns a run with room for the prompt, the new tokens and what
// Fault.KeepCache keeps, and its schedule.
func (e *Engine) newDecodeRun(ids []int, o engine.DecodeOptions) (*run, schedule, error) {
	s := schedule{arch: e.arch, ids: ids, base: e.left.length()}
	cache, err := e.newKVCache(e.capacity(s.base + len(ids) + o.MaxNew - 1))
	if err != nil {
		return nil, schedule{}, err
	}
	s.base, err = e.left.restore(cache, s.base)
	return &run{e: e, cache: cache}, s, err
}

// start runs the prompt and returns the last position's row, [1, H].
func (r *run) start(p *progress, s schedule, o engine.DecodeOptions) (*tensors.Tensor, error) {
	switch {
	case o.Chunk == 1:
		return r.startByToken(p, s)
	case o.Chunk > 1:
		return r.startByChunk(p, s, o.Chunk)
	case s.base > 0: // only a chunk looks at a cache
		return r.startByChunk(p, s, len(s.ids))
	}
	pre, err := r.e.runPrefill(p, s.ids)
	if err != nil {
		return nil, err
	}
	caches, err := r.e.quantise(pre.caches)
	if err != nil {
		return nil, err
	}
	if err := r.cache.take(caches, len(s.ids)); err != nil {
		return nil, err
	}
	if err := finalize(append(caches.all(), pre.x)...); err != nil {
		return nil, fmt.Errorf("reference: prompt: %w", err)
	}
	return upload(r.e.dev, pre.rows[r.e.arch.Layers], 1, r.e.arch.Hidden)
}

func (r *run) startByToken(p *progress, s schedule) (*tensors.Tensor, error) {
	for pos := 0; ; pos++ {
		x, err := r.token(p, s, pos, s.id(pos), watch{})
		if err != nil || pos == len(s.ids)-1 {
			return x, err
		}
		if err := x.FinalizeAll(); err != nil {
			return nil, fmt.Errorf("reference: token %d: %w", pos, err)
		}
	}
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
