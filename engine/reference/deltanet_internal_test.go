package reference

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
)

// inverted runs unitLowerInverse on one matrix.
func inverted(t *testing.T, d DType, a [][]float64) [][]float64 {
	t.Helper()
	backend, err := newBackend(DefaultBackend)
	require.NoError(t, err)
	length := len(a)
	x, err := graph.NewExec(backend, func(in []*graph.Node) []*graph.Node {
		square := shapes.Make(dtypes.Int32, 1, length, length)
		return []*graph.Node{unitLowerInverse(in[0], graph.Iota(in[0].Graph(), square, 1), graph.Iota(in[0].Graph(), square, 2))}
	})
	require.NoError(t, err)
	var flat []float64
	for _, row := range a {
		flat = append(flat, row...)
	}
	in, err := upload(device{backend, d}, flat, 1, length, length)
	require.NoError(t, err)
	out, err := x.Call(in)
	require.NoError(t, err)
	rows, err := unstack(out[0], length)
	require.NoError(t, err)
	return rows
}

// substituted is the inverse of 1 + a by forward substitution.
func substituted(a [][]float64) [][]float64 {
	out := make([][]float64, len(a))
	for i := range a {
		out[i] = make([]float64, len(a))
		out[i][i] = 1
		for j := range i {
			for k := range out[i] {
				out[i][k] -= a[i][j] * out[j][k]
			}
		}
	}
	return out
}

// TestUnitLowerInverse: of any size, and of matrices whose powers are as large as
// binomials: those of equal keys that nothing fades, where a sum of 64 powers has
// terms of 10^18 for entries of at most 1.
func TestUnitLowerInverse(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	lower := func(length int, entry func() float64) [][]float64 {
		a := make([][]float64, length)
		for i := range a {
			a[i] = make([]float64, length)
			for j := range i {
				a[i][j] = float64(float32(entry()))
			}
		}
		return a
	}
	for name, entry := range map[string]func() float64{
		"equal keys": func() float64 { return 1 },
		"almost":     func() float64 { return 0.999 },
		"random":     func() float64 { return rng.Float64() - 0.5 },
	} {
		for _, length := range []int{1, 2, 3, 5, 33, 63, 64} {
			a := lower(length, entry)
			want := substituted(a)
			var largest float64
			for _, row := range want {
				for _, v := range row {
					largest = max(largest, math.Abs(v))
				}
			}
			for d, unit := range map[DType]float64{Float32: 0x1p-24, Float64: 0x1p-53} {
				for i, row := range inverted(t, d, a) {
					for j, v := range row {
						// Each of the six levels sums over at most all columns.
						if err := math.Abs(v - want[i][j]); !(err <= 6*float64(length)*unit*largest) {
							t.Fatalf("%s, %d rows, %s: entry %d, %d: got %v, want %v", name, length, d, i, j, v, want[i][j])
						}
					}
				}
			}
		}
	}
}

// deltaTiny has a linear layer, one with attention, and one more.
func deltaTiny(t *testing.T) *Engine {
	t.Helper()
	a := engine.Arch{Family: "qwen3_5", Layers: 3, Hidden: 16, Intermediate: 24, Heads: 2, KVHeads: 2, HeadDim: 8, Vocab: 30, TiedHead: true, FinalNormEps: 1e-6,
		DeltaNet: engine.DeltaNet{KeyHeads: 2, ValueHeads: 4, KeyDim: 4, ValueDim: 8, Kernel: 3}}
	for n := range a.Layers {
		a.PerLayer = append(a.PerLayer, engine.LayerParams{RopeTheta: 1e4, NormEps: 1e-6, Linear: n != 1})
	}
	e, err := New(uniformWeights{a})
	require.NoError(t, err)
	return e
}

// TestDeltaScanContinues: chunks of any length continue a state as if they were one,
// and so do steps; what is left out, or run twice, shows.
func TestDeltaScanContinues(t *testing.T) {
	e := deltaTiny(t)
	double, err := e.Float64()
	require.NoError(t, err)
	d := double.(*Engine)
	ids := make([]int, 150)
	for i := range ids {
		ids[i] = 7 * i * i % 30
	}
	state := func(chunks ...[2]int) []*tensors.Tensor {
		r, s := run{e: d}, schedule{arch: d.arch, ids: ids}
		r.cache, err = d.newKVCache(200)
		require.NoError(t, err)
		p := &progress{ctx: context.Background()}
		for _, c := range chunks {
			_, err := r.chunk(p, s, c[0], c[1])
			require.NoError(t, err)
		}
		return append(append([]*tensors.Tensor{}, r.cache[0].parts...), r.cache[2].parts...)
	}
	away := func(a, b []*tensors.Tensor) (worst float64) {
		for i := range a {
			x, err := download(a[i], 0, a[i].Size())
			require.NoError(t, err)
			y, err := download(b[i], 0, b[i].Size())
			require.NoError(t, err)
			var diff, size float64
			for j := range x {
				diff, size = diff+(x[j]-y[j])*(x[j]-y[j]), size+y[j]*y[j]
			}
			worst = max(worst, math.Sqrt(diff/size))
		}
		return worst
	}
	whole := state([2]int{0, 150})
	for _, cuts := range [][]int{{1}, {64}, {128}, {1, 2, 3}, {63, 64, 65}, {70, 71}, {149}} {
		var chunks [][2]int
		at := 0
		for _, to := range append(cuts, len(ids)) {
			chunks = append(chunks, [2]int{at, to})
			at = to
		}
		if err := away(state(chunks...), whole); !(err <= 1e-12) {
			t.Errorf("cuts %v: %.3g away", cuts, err)
		}
	}
	for what, chunks := range map[string][][2]int{"run twice": {{0, 70}, {69, 150}}, "left out": {{0, 70}, {71, 150}}} {
		if err := away(state(chunks...), whole); !(err >= 1e-6) {
			t.Errorf("a position that is %s: %.3g away", what, err)
		}
	}

	r, s := run{e: d}, schedule{arch: d.arch, ids: ids}
	r.cache, err = d.newKVCache(200)
	require.NoError(t, err)
	p := &progress{ctx: context.Background()}
	for pos, id := range ids {
		_, err := r.token(p, s, pos, id, watch{})
		require.NoError(t, err)
	}
	if err := away(append(append([]*tensors.Tensor{}, r.cache[0].parts...), r.cache[2].parts...), whole); !(err <= 1e-12) {
		t.Errorf("steps: %.3g away", err)
	}
}

// TestAChangedStateShows is the control of the bit identity of shared prefixes: a
// value changed in a snapshot of a linear layer shows, in either composition, and
// whichever part of the state it is in.
func TestAChangedStateShows(t *testing.T) {
	e := deltaTiny(t)
	prompts := [][]int{{1, 2, 3, 4}, {1, 2, 3, 5, 6}}
	fresh, err := e.Capture(t.Context(), prompts[1])
	require.NoError(t, err)
	spoil := func(values *tensors.Tensor) {
		last := values.Size() - 1 // the newest input of the convolution
		require.NoError(t, values.MutableFlatData(func(flat any) { flat.([]float32)[last] += 0.5 }))
	}
	for part := range 2 {
		for _, whole := range []bool{false, true} {
			t.Run(fmt.Sprintf("part %d, whole step %v", part, whole), func(t *testing.T) {
				sh := e.newSharing(ManyOptions{Oracle: true})
				var last Captured
				for i, errand := range planErrands(prompts, e.sharingClass) {
					if i == 1 {
						stack := sh.steps.stack
						if whole {
							stack = sh.whole.stack
						}
						spoil(stack[0].cache[0].parts[part])
					}
					last, err = sh.capture(&progress{ctx: context.Background()}, errand)
					require.NoError(t, err)
				}
				require.Equal(t, 3, last.Shared)
				require.Equal(t, whole, equalRows(last.Trace.Rows(), fresh.Rows()))
				require.Equal(t, !whole, equalRows(last.WholeRows, fresh.Rows()))
			})
		}
	}
}

// A snapshot's memory is that of its positions, and of a state that has none.
func TestSnapshotsOfStatesStayInTheirBudget(t *testing.T) {
	e := deltaTiny(t)
	const position = 2 * 2 * 8 * 4        // k and v, heads, head dim, float32
	const states = 2 * (3*48 + 4*4*8) * 4 // layers, (taps * channels + heads * dk * dv), float32
	sh := e.newSharing(ManyOptions{SnapshotBytes: states + 3*position})
	var left []int64
	for _, errand := range planErrands([][]int{{1, 2, 3, 4}, {1, 2, 3, 5}, {1, 6}}, e.sharingClass) {
		_, err := sh.capture(&progress{ctx: t.Context()}, errand)
		require.NoError(t, err)
		left = append(left, sh.budget)
	}
	// One position first, which leaves too little for another snapshot.
	require.Equal(t, []int64{2 * position, 2 * position, 2 * position}, left)
}
