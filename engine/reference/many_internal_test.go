package reference

import (
	"context"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
)

// tiny has two layers, and two key-value heads of 8.
func tiny(t *testing.T) *Engine {
	a := engine.Arch{Family: "qwen2", Layers: 2, Hidden: 16, Intermediate: 24, Heads: 2, KVHeads: 2, HeadDim: 8, Vocab: 30, TiedHead: true, FinalNormEps: 1e-6}
	for range a.Layers {
		a.PerLayer = append(a.PerLayer, engine.LayerParams{RopeTheta: 1e4, NormEps: 1e-6})
	}
	e, err := New(uniformWeights{a})
	require.NoError(t, err)
	return e
}

func TestPlanErrands(t *testing.T) {
	byLength := func(tokens int) int { return max(0, tokens-4) } // 4 and less are alike
	var got [][]int
	for _, a := range planErrands([][]int{{1, 2, 3, 9}, {1, 2}, {1, 2, 3, 4}, {1, 2, 3, 4, 5}, {1, 2, 3, 4}, {}, {0}}, byLength) {
		got = append(got, append([]int{a.index, a.common}, a.keep...))
	}
	// Index, common with the one before, lengths to keep.
	require.Equal(t, [][]int{
		{5, 0},
		{6, 0},
		{1, 0, 2},
		{2, 2, 3},
		{4, 4, 3},
		{0, 3},
		{3, 0},
	}, got)
}

// A capacity above 1024 shares with its own kind only: bits may depend on it.
func TestLargeCapacitiesShareAmongThemselves(t *testing.T) {
	e := &Engine{set: settings{capacityStep: 64}}
	long := make([]int, 1100)
	var got [][2]int
	for _, a := range planErrands([][]int{long[:1020], long[:1025], long[:1088], long[:1100], long[:20]}, e.sharingClass) {
		got = append(got, [2]int{a.index, a.common})
	}
	require.Equal(t, [][2]int{{4, 0}, {0, 20}, {1, 0}, {2, 1025}, {3, 0}}, got)
}

// The control of the bit identity: a value changed in a snapshot shows, in
// either composition.
func TestAChangedSnapshotShows(t *testing.T) {
	e := tiny(t)
	prompts := [][]int{{1, 2, 3, 4}, {1, 2, 3, 5, 6}}
	fresh, err := e.Capture(t.Context(), prompts[1])
	require.NoError(t, err)

	// spoil adds to the value of a head's first channel at position 1.
	spoil := func(t *testing.T, values *tensors.Tensor, offset int) {
		require.NoError(t, values.MutableFlatData(func(flat any) { flat.([]float32)[offset] += 0.5 }))
	}
	for name, tt := range map[string]struct {
		change      func(t *testing.T, sh *sharing)
		rows, whole bool // what must keep its bits
	}{
		"nothing": {func(*testing.T, *sharing) {}, true, true},
		"a value of a layer": {func(t *testing.T, sh *sharing) {
			spoil(t, sh.steps.stack[0].cache[1].parts[values], e.arch.HeadDim)
		}, false, true},
		"a value of the whole step": {func(t *testing.T, sh *sharing) {
			spoil(t, sh.whole.stack[0].cache[0].parts[values], e.arch.HeadDim)
		}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			sh := e.newSharing(ManyOptions{Oracle: true})
			var last Captured
			for i, errand := range planErrands(prompts, e.sharingClass) {
				if i == 1 {
					require.Len(t, sh.steps.stack, 1)
					require.Len(t, sh.whole.stack, 1)
					tt.change(t, sh)
				}
				last, err = sh.capture(&progress{ctx: context.Background()}, errand)
				require.NoError(t, err)
			}
			require.Equal(t, 1, last.Index)
			require.Equal(t, 3, last.Shared)
			require.Equal(t, tt.rows, equalRows(last.Trace.Rows(), fresh.Rows()), "rows keep their bits")
			require.Equal(t, tt.whole, equalRows(last.WholeRows, fresh.Rows()), "whole-step rows keep their bits")
		})
	}
}

func equalRows(a, b [][]float64) bool { return slices.EqualFunc(a, b, slices.Equal[[]float64]) }

// A snapshot's memory comes back, to the byte.
func TestSnapshotsStayInTheirBudget(t *testing.T) {
	e := tiny(t)
	const position = 2 * 2 * 2 * 8 * 4 // k and v, layers, heads, head dim, float32
	sh := e.newSharing(ManyOptions{SnapshotBytes: 5*position + 1})
	var left []int64
	for _, errand := range planErrands([][]int{{1, 2, 3, 4}, {1, 2, 3, 5}, {1, 2, 6}, {7}}, e.sharingClass) {
		_, err := sh.capture(&progress{ctx: t.Context()}, errand)
		require.NoError(t, err)
		left = append(left, sh.budget)
	}
	// Two and three positions, the two again, nothing.
	require.Equal(t, []int64{1, 1, 3*position + 1, 5*position + 1}, left)
}
