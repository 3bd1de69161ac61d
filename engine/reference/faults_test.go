package reference_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
)

// TestPlantedFaults: each fault gives the rows of the naive loops with the same
// fault, leaves the rows before it alone, changes those after it by far more
// than rounding, and is the same in both incremental compositions.
func TestPlantedFaults(t *testing.T) {
	const tokens = 9
	clean := randomWeights(smallArch(), 1)
	ids := prompt(tokens, clean.arch.Vocab)
	cleanRows := capture(t, small(), ids).Rows()
	cleanBatched, err := small().CaptureBatched(bg, ids)
	require.NoError(t, err)

	for _, c := range []struct {
		name    string
		plant   func(*engine.Arch)
		first   int  // the first row that differs
		batched bool // a constant of the layer, which prefill has too
	}{
		{"query offset", func(a *engine.Arch) { a.PerLayer[1].QueryOffset = 1 }, 2, true},
		{"rope theta", func(a *engine.Arch) { a.PerLayer[2].RopeTheta = 100 }, 3, true},
		{"eps", func(a *engine.Arch) { a.PerLayer[0].NormEps = 0.1 }, 1, true},
		{"stale cache", func(a *engine.Arch) {
			a.Fault = engine.Fault{StaleCache: true, StaleLayer: 1, StalePosition: 4}
		}, 2, false},
		{"stale cache from the end", func(a *engine.Arch) {
			a.Fault = engine.Fault{StaleCache: true, StaleLayer: 0, StalePosition: -1}
		}, 1, false},
		{"decode shift", func(a *engine.Arch) { a.Fault = engine.Fault{DecodeShift: 1, DecodeFrom: 5} }, 1, false},
		{"decode shift from the end", func(a *engine.Arch) { a.Fault = engine.Fault{DecodeShift: -2, DecodeFrom: -1} }, 1, false},
		{"embed first", func(a *engine.Arch) { a.Fault = engine.Fault{EmbedFirst: true} }, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := clean.arch.Clone()
			c.plant(&a)
			w := &memWeights{a, clean.tensors}
			e := mustNew(t, w)
			tr := capture(t, e, ids)
			rows := tr.Rows()
			require.True(t, sameBits(rows[:c.first], cleanRows[:c.first]), "rows before the fault")
			for i := c.first; i < len(rows); i++ {
				if d := relL2(rows[i], cleanRows[i]); !(d > 1e-3) {
					t.Errorf("row %d: relative L2 from the clean run %.3g, want more than 1e-3", i, d)
				}
			}
			whole, err := e.CaptureWholeStep(bg, ids)
			require.NoError(t, err)
			require.True(t, sameBits(whole, rows), "whole step")
			for n := range a.Layers {
				got, err := tr.Layer(bg, n, rows[n])
				require.NoError(t, err)
				require.True(t, sameBits([][]float64{got}, rows[n+1:n+2]), "layer %d", n)
			}
			batched, err := e.CaptureBatched(bg, ids)
			require.NoError(t, err)
			require.Equal(t, !c.batched, sameBits(batched, cleanBatched), "batched run has the clean bits")

			double, err := e.Float64()
			require.NoError(t, err)
			requireClose(t, capture(t, double, ids).Rows(), naive{a: a, w: w}.rows(ids), float64Bound)
			if c.batched {
				b, err := double.CaptureBatched(bg, ids)
				require.NoError(t, err)
				requireClose(t, b, naive{a: a, w: w}.rows(ids), float64Bound)
			}
		})
	}
}

// TestConstantShiftIsNoFault: RoPE sees differences of positions only, so a
// shift of q and k from the start on changes nothing but rounding.
func TestConstantShiftIsNoFault(t *testing.T) {
	clean := randomWeights(smallArch(), 1)
	a := clean.arch.Clone()
	a.Fault = engine.Fault{DecodeShift: 3}
	e, err := mustNew(t, &memWeights{a, clean.tensors}).Float64()
	require.NoError(t, err)
	cleanDouble, err := small().Float64()
	require.NoError(t, err)
	ids := prompt(9, a.Vocab)
	requireClose(t, capture(t, e, ids).Rows(), capture(t, cleanDouble, ids).Rows(), float64Bound)
}
