package main

import (
	"context"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden/teacher"
)

// decoder is what openSession needs of the reference.
type decoder interface {
	Decode(ctx context.Context, ids []int, o engine.DecodeOptions) (engine.Decoded, error)
}

// openSession takes a sequence on, token by token.
func openSession(ref decoder, _ int) (teacher.Session, error) { return &decodeSession{ref: ref}, nil }

// decodeSession runs everything again for each token: the prompt in one batch, the
// tokens since in single steps, with the rows of a session that keeps its cache.
type decodeSession struct {
	ref    decoder
	prompt []int
	since  []int
}

func (s *decodeSession) Prefill(ctx context.Context, ids []int) ([]float32, error) {
	s.prompt = ids
	return s.row(ctx)
}

func (s *decodeSession) Step(ctx context.Context, id int) ([]float32, error) {
	s.since = append(s.since, id)
	return s.row(ctx)
}

func (s *decodeSession) row(ctx context.Context) ([]float32, error) {
	// Row i is behind the prompt and the first i forced tokens.
	d, err := s.ref.Decode(ctx, s.prompt, engine.DecodeOptions{Forced: append(append([]int{}, s.since...), 0)})
	if err != nil {
		return nil, err
	}
	row := make([]float32, len(d.Logits[len(s.since)]))
	for i, x := range d.Logits[len(s.since)] {
		row[i] = float32(x)
	}
	return row, nil
}

func (s *decodeSession) Close() error { return nil }
