package teacher

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// failing changes what a session returns at one of its calls.
type failing struct {
	Session
	at   *int
	fail func(row []float32) ([]float32, error)
}

func (f failing) turn(row []float32, err error) ([]float32, error) {
	if *f.at--; *f.at == 0 {
		return f.fail(row)
	}
	return row, err
}

func (f failing) Prefill(ctx context.Context, ids []int) ([]float32, error) {
	return f.turn(f.Session.Prefill(ctx, ids))
}

func (f failing) Step(ctx context.Context, id int) ([]float32, error) {
	return f.turn(f.Session.Step(ctx, id))
}

func TestExecuteTellsWhere(t *testing.T) {
	plan := casePlan(t)
	broken := errors.New("broken")
	with := func(i int, x float32) func([]float32) ([]float32, error) {
		return func(row []float32) ([]float32, error) { row[i] = x; return row, nil }
	}
	for _, c := range []struct {
		at   int
		fail func([]float32) ([]float32, error)
		want string
	}{
		{1, func([]float32) ([]float32, error) { return nil, broken }, "teacher: example forced/one, row after 4 tokens: broken"},
		{3, func([]float32) ([]float32, error) { return nil, broken }, "teacher: example forced/one, row after 6 tokens: broken"},
		{2, func(row []float32) ([]float32, error) { return row[:36], nil }, "teacher: example forced/one, row after 5 tokens: width: got 36, want 37, the plan's vocabulary"},
		{8, with(3, float32(math.NaN())), "teacher: example gen/é 😀, row after 4 tokens: value 3: got NaN, want a finite value"},
		{20, with(36, float32(math.Inf(1))), "teacher: example gen/é 😀, row after 16 tokens: value 36: got +Inf, want a finite value"},
	} {
		var calls []string
		n := c.at
		_, err := Execute(t.Context(), plan, func(most int) (Session, error) {
			s, err := open(&calls)(most)
			return failing{s, &n, c.fail}, err
		}, func(Point, []float32) error { return nil })
		require.EqualError(t, err, c.want)
		require.Contains(t, calls[len(calls)-1], "close", "the session is closed")
	}
	var calls []string
	_, err := Execute(t.Context(), plan, open(&calls), func(p Point, _ []float32) error {
		if p.Ordinal == 5 {
			return broken
		}
		return nil
	})
	require.ErrorIs(t, err, broken)
	_, err = Execute(t.Context(), plan, func(int) (Session, error) { return nil, broken }, nil)
	require.EqualError(t, err, "teacher: example forced/one: broken")
}

// unclosable can't be closed.
type unclosable struct {
	Session
	err error
}

func (u unclosable) Close() error { return errors.Join(u.Session.Close(), u.err) }

func TestExecuteTellsOfASessionThatDoesNotClose(t *testing.T) {
	plan, stuck, broken := casePlan(t), errors.New("stuck"), errors.New("broken")
	var calls []string
	stuckly := func(most int) (Session, error) {
		s, err := open(&calls)(most)
		return unclosable{s, stuck}, err
	}
	trajectories, err := Execute(t.Context(), plan, stuckly, func(Point, []float32) error { return nil })
	require.EqualError(t, err, "teacher: example forced/one: close: stuck")
	require.ErrorIs(t, err, stuck)
	require.Nil(t, trajectories)
	// What went wrong before is what is told.
	_, err = Execute(t.Context(), plan, stuckly, func(Point, []float32) error { return broken })
	require.ErrorIs(t, err, broken)
	require.NotErrorIs(t, err, stuck)
}

// The lowest id wins a tie: the made-up model has many.
func TestGreedyTakesTheLowestOfEqualLogits(t *testing.T) {
	plan := casePlan(t)
	ties := 0
	var calls []string
	trajectories, err := Execute(t.Context(), plan, func(most int) (Session, error) {
		s, err := open(&calls)(most)
		return counting{s, &ties}, err
	}, func(Point, []float32) error { return nil })
	require.NoError(t, err)
	require.Positive(t, ties, "without a tie nothing is shown")
	ids := make([]int64, 0, GreedyTokens)
	for _, id := range trajectories[1].Tokens {
		ids = append(ids, int64(id))
	}
	want, ok := at(readCase(t, caseEvidence), "greedy_trajectories/1/token_ids").Ints()
	require.True(t, ok)
	require.Equal(t, want, ids)
}

// counting counts the rows whose largest value comes twice.
type counting struct {
	Session
	ties *int
}

func (c counting) Step(ctx context.Context, id int) ([]float32, error) {
	row, err := c.Session.Step(ctx, id)
	most, n := float32(math.Inf(-1)), 0
	for _, x := range row {
		if x > most {
			most, n = x, 0
		}
		if x == most {
			n++
		}
	}
	if n > 1 {
		*c.ties++
	}
	return row, err
}

func TestEvidenceNeedsEveryTrajectory(t *testing.T) {
	plan := casePlan(t)
	full := make([]int, GreedyTokens)
	for _, trajectories := range [][]Trajectory{nil, {{2, full}}, {{3, full}, {2, full}}, {{2, full}, {3, []int{-1}}}} {
		_, err := NewEvidence(plan, dumpfmt.TargetSum{}, trajectories, Implementation{})
		require.Error(t, err)
	}
	_, err := NewEvidence(plan, dumpfmt.TargetSum{}, []Trajectory{{2, full}, {3, full}}, Implementation{Name: "\xff"})
	require.Error(t, err, "no UTF-8")
}
