package main

import (
	"context"

	"github.com/plumbline-go/plumbline/golden/teacher"
)

// countedSession tells when a call of a session has ended.
type countedSession struct {
	teacher.Session
	done func()
}

func (s *countedSession) Prefill(ctx context.Context, ids []int) ([]float32, error) {
	defer s.done()
	return s.Session.Prefill(ctx, ids)
}

func (s *countedSession) Step(ctx context.Context, id int) ([]float32, error) {
	defer s.done()
	return s.Session.Step(ctx, id)
}
