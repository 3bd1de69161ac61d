package conformance_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
)

// selfTimed is a candidate that lets requests wait.
type selfTimed struct{ engine.Func }

func (selfTimed) TimesItself() {}

func waiting(answer func(ctx context.Context) error) engine.Func {
	return engine.Func{Side: engine.Info{Name: "slow", Layers: engine.LayersFloat32},
		Answer: func(ctx context.Context, _ engine.Request) (*engine.Response, error) {
			if err := answer(ctx); err != nil {
				return nil, err
			}
			return &engine.Response{}, nil
		}}
}

// TestTimeoutOfTheCandidate: the caller's deadline ends a candidate that has none,
// and leaves alone one that counts the time itself.
func TestTimeoutOfTheCandidate(t *testing.T) {
	cfg, err := embedded()
	require.NoError(t, err)
	cfg.Only, cfg.Cases, cfg.Timeout = []string{"ResidualShape"}, cfg.Cases[:1], 10*time.Millisecond
	cfg.Candidate = waiting(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	rep, err := conformance.Evaluate(t.Context(), cfg)
	require.NoError(t, err)
	assert.Equal(t, conformance.Fails, rep.Conclusion)

	cfg.Candidate = selfTimed{waiting(func(ctx context.Context) error {
		if _, has := ctx.Deadline(); has {
			return errors.New("got a deadline")
		}
		return nil
	})}
	rep, err = conformance.Evaluate(t.Context(), cfg)
	require.NoError(t, err)
	assert.Equal(t, conformance.NothingJudged, rep.Conclusion)
}

// TestWhoseFault: a candidate that can't be asked breaks the run, one that gives
// no answer fails.
func TestWhoseFault(t *testing.T) {
	cfg, err := embedded()
	require.NoError(t, err)
	cfg.Only, cfg.Cases = []string{"ResidualShape"}, cfg.Cases[:1]
	for _, broken := range []error{
		&engine.SetupError{Path: "prog", Err: errors.New("no such file")},
		&engine.CommandError{Command: "prog", Offset: -1, Why: "too long"},
	} {
		cfg.Candidate = waiting(func(context.Context) error { return broken })
		_, err := conformance.Evaluate(t.Context(), cfg)
		require.ErrorIs(t, err, broken)
	}
	for _, failed := range []error{
		&engine.ProcessError{Command: "prog", Why: "exit code 3"},
		&engine.MalformedError{Err: errors.New("half a file")},
		&engine.NoAnswerError{Case: "x", Why: "out of memory"},
	} {
		cfg.Candidate = waiting(func(context.Context) error { return failed })
		rep, err := conformance.Evaluate(t.Context(), cfg)
		require.NoError(t, err)
		assert.Equal(t, conformance.Fails, rep.Conclusion)
		cfg.Candidate = badInfo{err: failed}
		if _, own := failed.(*engine.NoAnswerError); own {
			continue
		}
		rep, err = conformance.Evaluate(t.Context(), cfg)
		require.NoError(t, err)
		assert.Equal(t, conformance.Fails, rep.Conclusion, "no description is no answer")
	}
}
