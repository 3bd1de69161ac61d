package reference

import (
	"context"
	"errors"
	"fmt"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/plumbline-go/plumbline/engine"
)

// Session is one sequence that its caller takes on token by token: a prompt as one
// batch, then a step per token, each with the logits behind it. What a step costs
// doesn't depend on how many there were, but for attention to as many positions as
// the session has room for. It is for one goroutine at a time; a call that fails,
// or whose context ends, ends it.
//
// Faults of Arch().Fault act as in [Engine.Decode], where the prompt is what
// Prefill gets; KeepCache doesn't.
type Session struct {
	e         *Engine
	positions int
	run       *run // nil before Prefill, and behind the end
	s         schedule
	length    int // positions so far
	ended     error
}

var errSessionClosed = errors.New("reference: session: it is closed")

// NewSession returns a session with room for so many positions, prompt and steps
// together. Its memory is that of their KV cache.
func (e *Engine) NewSession(maxPositions int) (*Session, error) {
	if maxPositions < 1 {
		return nil, fmt.Errorf("reference: session: got %d positions, want at least 1", maxPositions)
	}
	if limit := e.arch.MaxPositions; limit > 0 && maxPositions > limit {
		return nil, &PromptError{Index: -1, Got: fmt.Sprintf("a session of %d positions", maxPositions),
			Want: fmt.Sprintf("at most %d (max_position_embeddings)", limit)}
	}
	return &Session{e: e, positions: maxPositions}, nil
}

// Prefill runs the prompt as one batch and returns the logits behind its last
// token. It comes first, and once.
func (s *Session) Prefill(ctx context.Context, ids []int) ([]float32, error) {
	switch {
	case s.ended != nil:
		return nil, s.ended
	case s.run != nil:
		return nil, errors.New("reference: session: got a second prompt, want one")
	}
	if err := s.e.checkIDs(ids); err != nil {
		return nil, err
	}
	if err := s.room(len(ids)); err != nil {
		return nil, err
	}
	sched := schedule{arch: s.e.arch, ids: append([]int(nil), ids...)}
	return s.take(ctx, len(ids), func(p *progress) (*run, *tensors.Tensor, error) {
		cache, err := s.e.newKVCache(s.e.capacity(s.positions))
		if err != nil {
			return nil, nil, err
		}
		r := &run{e: s.e, cache: cache}
		x, err := r.start(p, sched, engine.DecodeOptions{})
		return r, x, err
	}, sched)
}

// Step runs one token behind those so far and returns the logits behind it.
func (s *Session) Step(ctx context.Context, id int) ([]float32, error) {
	switch {
	case s.ended != nil:
		return nil, s.ended
	case s.run == nil:
		return nil, errors.New("reference: session: got a step before the prompt, want the prompt first")
	case id < 0 || id >= s.e.arch.Vocab:
		return nil, &PromptError{Index: s.length, Got: fmt.Sprintf("id %d", id), Want: fmt.Sprintf("0 to %d", s.e.arch.Vocab-1)}
	}
	if err := s.room(1); err != nil {
		return nil, err
	}
	r, sched, pos := s.run, s.s, s.length
	return s.take(ctx, 1, func(p *progress) (*run, *tensors.Tensor, error) {
		x, err := r.token(p, sched, pos, id, watch{})
		return r, x, err
	}, sched)
}

func (s *Session) room(more int) error {
	if s.length+more > s.positions {
		return &PromptError{Index: -1, Got: fmt.Sprintf("%d positions and %d more", s.length, more),
			Want: fmt.Sprintf("at most the %d of the session", s.positions)}
	}
	return nil
}

// take runs more positions and the head. What it is abandoned with belongs to a
// goroutine that may still be at it, so that nobody touches it any more.
func (s *Session) take(ctx context.Context, more int, advance func(*progress) (*run, *tensors.Tensor, error), sched schedule) ([]float32, error) {
	type outcome struct {
		run *run
		row []float64
	}
	at := s.length
	out, err := guard(ctx, s.e.patience(more), func(p *progress) (outcome, error) {
		if err := s.e.needHead(); err != nil {
			return outcome{}, err
		}
		r, x, err := advance(p)
		if err != nil {
			return outcome{}, err
		}
		row, err := s.e.logitRow(x)
		if err != nil {
			return outcome{}, err
		}
		if _, err := argmax(row); err != nil {
			return outcome{}, fmt.Errorf("reference: session: logits behind position %d: %w", at+more-1, err)
		}
		return outcome{r, row}, x.FinalizeAll()
	})
	if err != nil {
		s.run, s.ended = nil, fmt.Errorf("reference: session: it ended: %w", err)
		return nil, err
	}
	s.run, s.s, s.length = out.run, sched, at+more
	row := make([]float32, len(out.row))
	for i, v := range out.row {
		row[i] = float32(v)
	}
	return row, nil
}

// Close frees the session. Nothing can be run with it afterwards.
func (s *Session) Close() error {
	r := s.run
	if s.run = nil; s.ended == nil {
		s.ended = errSessionClosed
	}
	if r == nil {
		return nil
	}
	return r.cache.finalize()
}
