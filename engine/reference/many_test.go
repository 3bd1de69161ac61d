package reference_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
)

// family is prompts of every relation: a common prefix that crosses a capacity
// step, duplicates, a prompt that is the prefix of others, one token, strangers.
func family() [][]int {
	base := prompt(70, 50)
	with := func(n int, more ...int) []int { return append(base[:n:n], more...) }
	return [][]int{
		with(60, 1, 2, 3), with(70), {7}, with(60, 1, 2, 4), with(3), with(70), prompt(9, 50),
		with(60, 1), with(3, 49), {7, 8}, with(65, 0, 0), {7},
	}
}

func captureMany(t testing.TB, e *reference.Engine, prompts [][]int, o reference.ManyOptions) []reference.Captured {
	t.Helper()
	out := make([]reference.Captured, len(prompts))
	seen := 0
	require.NoError(t, e.CaptureMany(bg, prompts, o, func(c reference.Captured) error {
		out[c.Index] = c
		seen++
		return nil
	}))
	require.Equal(t, len(prompts), seen)
	return out
}

// requireFresh demands the bits of fresh runs.
func requireFresh(t *testing.T, e *reference.Engine, ids []int, got reference.Captured, oracle bool) {
	t.Helper()
	fresh := capture(t, e, ids)
	require.True(t, sameBits(got.Trace.Rows(), fresh.Rows()), "prompt %d: rows", got.Index)
	row := fresh.Rows()[0]
	for n := range e.Weights().Arch().Layers {
		want, err := fresh.Layer(bg, n, row)
		require.NoError(t, err)
		layer, err := got.Trace.Layer(bg, n, row)
		require.NoError(t, err)
		require.True(t, sameBits([][]float64{layer}, [][]float64{want}), "prompt %d: layer %d on a row of the caller's", got.Index, n)
	}
	if !oracle {
		require.Nil(t, got.WholeRows)
		require.Nil(t, got.LastHidden)
		return
	}
	whole, err := e.CaptureWholeStep(bg, ids)
	require.NoError(t, err)
	require.True(t, sameBits(got.WholeRows, whole), "prompt %d: whole step", got.Index)
	hidden, err := e.LastHidden(bg, ids)
	require.NoError(t, err)
	require.True(t, sameBits([][]float64{got.LastHidden}, [][]float64{hidden}), "prompt %d: last hidden state", got.Index)
}

func TestSharedPrefixesKeepTheBits(t *testing.T) {
	w := randomWeights(smallArch(), 1)
	for name, tt := range map[string]struct {
		e *reference.Engine
		o reference.ManyOptions
	}{
		"rows":            {small(), reference.ManyOptions{}},
		"with oracle":     {small(), reference.ManyOptions{Oracle: true}},
		"little memory":   {small(), reference.ManyOptions{Oracle: true, SnapshotBytes: 10_000}},
		"float64":         {mustNew(t, w, reference.WithDType(reference.Float64)), reference.ManyOptions{Oracle: true}},
		"many capacities": {mustNew(t, w, reference.WithCapacityStep(1)), reference.ManyOptions{Oracle: true}},
	} {
		t.Run(name, func(t *testing.T) {
			prompts, shared := family(), 0
			for i, c := range captureMany(t, tt.e, prompts, tt.o) {
				require.Equal(t, i, c.Index)
				requireFresh(t, tt.e, prompts[i], c, tt.o.Oracle)
				shared += c.Shared
			}
			require.Positive(t, shared)
		})
	}
}

// How much is shared follows from the prompts alone: each takes over the longest
// prefix that an earlier one, in sorted order, has in common with it, short of
// its own last token.
func TestWhatIsShared(t *testing.T) {
	shared := func(e *reference.Engine, prompts [][]int, o reference.ManyOptions) (n []int) {
		for _, c := range captureMany(t, e, prompts, o) {
			n = append(n, c.Shared)
		}
		return n
	}
	prompts := [][]int{{1, 2, 3, 9}, {1, 2}, {1, 2, 3, 4}, {5}, {5}, {1, 2, 3, 4}, {1, 2, 4}}
	require.Equal(t, []int{3, 0, 2, 0, 0, 3, 2}, shared(small(), prompts, reference.ManyOptions{Oracle: true}))
	require.Equal(t, make([]int, 7), shared(small(), prompts, reference.ManyOptions{SnapshotBytes: -1}))
	// 2 layers' worth of k and v, 3 layers x 2 heads x 8 x 4 bytes x 2 a position:
	// room for two positions, not for three.
	require.Equal(t, []int{2, 0, 2, 0, 0, 2, 2}, shared(small(), prompts, reference.ManyOptions{SnapshotBytes: 2*384 + 383}))

	w := randomWeights(smallArch(), 1)
	w.arch.Fault = engine.Fault{StaleCache: true, StaleLayer: 1, StalePosition: -2}
	e := mustNew(t, w)
	require.Equal(t, make([]int, 7), shared(e, prompts, reference.ManyOptions{}))
	for i, c := range captureMany(t, e, prompts, reference.ManyOptions{Oracle: true}) {
		requireFresh(t, e, prompts[i], c, true)
	}
}

func TestCaptureManyRefusals(t *testing.T) {
	none := func(reference.Captured) error { t.Error("called"); return nil }
	err := small().CaptureMany(bg, [][]int{{1}, {2, 50}}, reference.ManyOptions{}, none)
	var bad *reference.PromptError
	require.ErrorAs(t, err, &bad)
	require.ErrorContains(t, err, "prompt 1 of 2")
	require.ErrorContains(t, err, "token 1: got id 50")
	require.NoError(t, small().CaptureMany(bg, nil, reference.ManyOptions{}, none))

	calls, stop := 0, errors.New("enough")
	err = small().CaptureMany(bg, family(), reference.ManyOptions{}, func(reference.Captured) error {
		calls++
		return stop
	})
	require.ErrorIs(t, err, stop)
	require.Equal(t, 1, calls)
}

// The outcomes come prompt by prompt: those before the end of the context stay.
func TestCaptureManyEndsWithItsContext(t *testing.T) {
	var got []int
	err := small().CaptureMany(&errAfter{Context: bg, calls: 12}, [][]int{{3}, {2, 1}, {1, 1}}, reference.ManyOptions{}, func(c reference.Captured) error {
		got = append(got, c.Index)
		return nil
	})
	require.ErrorContains(t, err, "context deadline exceeded")
	require.NotEmpty(t, got)
	require.Less(t, len(got), 3)
	require.True(t, slices.Contains(got, 2), "{1, 1} comes first in order")
}
