package metric_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/golden/metric"
)

func TestCompareTensorsByHand(t *testing.T) {
	s := metric.CompareTensors([]float32{1, 2, 5, -4}, []float32{1, 4, 4, -4})
	require.Equal(t, metric.TensorStats{N: 4, FirstNonFinite: -1, MaxAbs: 2, MaxAt: 1, MeanAbs: 0.75, MSE: 1.25,
		RefMeanAbs: 3.25, CandMeanAbs: 3, SumSqDiff: 5, SumSqRef: 49, SumSqCand: 46, Dot: 1 + 8 + 20 + 16}, s)
	assert.Equal(t, math.Sqrt(5.0/49), s.NRMSE())
	assert.Equal(t, s.NRMSE(), s.RelativeL2())
	assert.InDelta(t, math.Sqrt(46.0/49), s.NormRatio(), 1e-15)
	assert.InDelta(t, 45/math.Sqrt(49*46), s.Cosine(), 1e-15)
	assert.InDelta(t, 100*0.75/3.25, s.LegacyRelErrPct(), 1e-9)
	assert.Zero(t, s.NonFinite())
}

// Where numbers end: the script's rule says 0, the other ratio must not.
func TestCompareTensorsWithoutReferenceEnergy(t *testing.T) {
	zero := make([]float32, 200)
	other := append(make([]float32, 199), 3)
	s := metric.CompareTensors(other, zero)
	assert.Zero(t, s.NRMSE())
	assert.True(t, math.IsInf(s.RelativeL2(), 1), "%v", s.RelativeL2())
	assert.EqualValues(t, 199, s.MaxAt)
	s = metric.CompareTensors(zero, zero)
	assert.Zero(t, s.NRMSE())
	assert.True(t, math.IsNaN(s.RelativeL2()) && math.IsNaN(s.Cosine()) && math.IsNaN(s.NormRatio()))
	assert.EqualValues(t, 0, s.MaxAt)
	s = metric.CompareTensors(nil, nil)
	assert.True(t, math.IsNaN(s.MaxAbs) && math.IsNaN(s.MeanAbs) && math.IsNaN(s.RelativeL2()), "nothing compared is no number")
	assert.EqualValues(t, -1, s.MaxAt)
}

func TestCompareTensorsNonFinite(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, at := range []int{0, 5, 8, 127, 128, 300, 1029} { // lanes, remainders, both halves of a cut
		for _, tc := range []struct {
			name      string
			cand, ref float32
			want      [4]int64 // cand NaN, cand Inf, ref NaN, ref Inf
			maxNaN    bool
		}{
			{"NaN in the candidate", nan, 1, [4]int64{1, 0, 0, 0}, true},
			{"negative NaN in the reference", 1, -nan, [4]int64{0, 0, 1, 0}, true},
			{"infinity in the candidate", -inf, 1, [4]int64{0, 1, 0, 0}, false},
			{"the same infinity", inf, inf, [4]int64{0, 1, 0, 1}, true},
		} {
			cand, ref := drawPair(1030)
			cand[at], ref[at] = tc.cand, tc.ref
			s := metric.CompareTensors(cand, ref)
			assert.Equal(t, tc.want, [4]int64{s.CandNaN, s.CandInf, s.RefNaN, s.RefInf}, "%s at %d", tc.name, at)
			assert.EqualValues(t, at, s.FirstNonFinite, "%s at %d", tc.name, at)
			assert.EqualValues(t, at, s.MaxAt, "%s at %d", tc.name, at)
			assert.Equal(t, tc.maxNaN, math.IsNaN(s.MaxAbs), "%s at %d: %v", tc.name, at, s.MaxAbs)
			assert.Positive(t, s.NonFinite())
			assert.False(t, s.RelativeL2() < 1e30, "%s at %d: no bound may hold, got %v", tc.name, at, s.RelativeL2())
			assert.False(t, s.MaxAbs <= 1e30, "%s at %d: no bound may hold, got %v", tc.name, at, s.MaxAbs)
		}
	}
	// An overflow of two finite values is a difference, not a broken tensor.
	s := metric.CompareTensors([]float32{math.MaxFloat32}, []float32{-math.MaxFloat32})
	assert.True(t, math.IsInf(s.MaxAbs, 1))
	assert.Zero(t, s.NonFinite())
}

func TestCompareHeads(t *testing.T) {
	cand, ref := drawPair(16 * 256)
	heads := metric.CompareHeads(cand, ref, 16)
	require.Len(t, heads, 16)
	require.Equal(t, metric.CompareTensors(cand[3*256:4*256], ref[3*256:4*256]), heads[3])
	var diff, energy, worst float64
	for _, h := range heads {
		diff, energy, worst = diff+h.SumSqDiff, energy+h.SumSqRef, max(worst, h.MaxAbs)
	}
	all := metric.CompareTensors(cand, ref)
	assert.InEpsilon(t, all.NRMSE(), math.Sqrt(diff/energy), 1e-12)
	assert.Equal(t, all.MaxAbs, worst)
	for name, f := range map[string]func(){
		"no head":              func() { metric.CompareHeads(cand, ref, 0) },
		"heads that don't fit": func() { metric.CompareHeads(cand, ref, 7) },
		"other length":         func() { metric.CompareHeads(cand[1:], ref, 1) },
	} {
		assert.Panics(t, f, name)
	}
}

func TestTensorDiffCounts(t *testing.T) {
	var d metric.TensorDiff
	d.Reset(3)
	for name, f := range map[string]func(){
		"unequal chunks": func() { d.Add(make([]float32, 2), make([]float32, 1)) },
		"too much":       func() { d.Add(make([]float32, 4), make([]float32, 4)) },
		"too early":      func() { d.Stats() },
	} {
		func() {
			defer func() { assert.IsType(t, &metric.LengthError{}, recover(), name) }()
			f()
		}()
	}
	d.Add(make([]float32, 3), make([]float32, 3))
	assert.EqualValues(t, 3, d.Stats().N)
	d.Reset(1) // what went before leaves no trace
	d.Add([]float32{2}, []float32{1})
	assert.Equal(t, metric.CompareTensors([]float32{2}, []float32{1}), d.Stats())
}
