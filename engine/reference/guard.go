package reference

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// progress counts the steps of one run and says when it must end.
type progress struct {
	ctx       context.Context
	steps     atomic.Int64
	abandoned atomic.Bool // nobody waits for the outcome any more
}

// step marks the end of a step and reports whether the run must end.
func (p *progress) step() error {
	p.steps.Add(1)
	if p.abandoned.Load() {
		return context.Canceled
	}
	return p.ctx.Err()
}

// patience is the step deadline of a run whose steps are layers on many positions
// at once.
func (e *Engine) patience(positions int) time.Duration {
	return e.set.stepDeadline * time.Duration(1+positions/512)
}

// guard runs fn on its own goroutine and returns when fn ends, when ctx ends,
// or with a [*StallError] when one step takes longer than limit. An abandoned
// fn ends at its next step; if the backend is deadlocked it never does, and its
// goroutine is lost, which is why it must share no lock with its caller. A
// panic of the backend becomes an error: GoMLX reports some shape errors so.
func guard[T any](ctx context.Context, limit time.Duration, fn func(*progress) (T, error)) (T, error) {
	var zero T
	if err := ctx.Err(); err != nil {
		return zero, fmt.Errorf("reference: %w", err)
	}
	type outcome struct {
		val T
		err error
	}
	p := &progress{ctx: ctx}
	defer p.abandoned.Store(true)
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			if r := recover(); r != nil {
				o = outcome{err: fmt.Errorf("reference: backend panicked: %v", r)}
			}
			done <- o
		}()
		o.val, o.err = fn(p)
	}()

	timer := time.NewTimer(limit)
	defer timer.Stop()
	var seen int64
	for {
		select {
		case o := <-done:
			if o.err != nil {
				return zero, o.err
			}
			return o.val, nil
		case <-ctx.Done():
			return zero, fmt.Errorf("reference: %w", ctx.Err())
		case <-timer.C:
			now := p.steps.Load()
			if now == seen {
				return zero, &StallError{Step: now, Deadline: limit}
			}
			seen = now
			timer.Reset(limit)
		}
	}
}
