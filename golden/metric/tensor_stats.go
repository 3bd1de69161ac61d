package metric

import "math"

// TensorStats are the figures of one tensor, candidate against reference. They
// are in the tensors' unit unless they say otherwise.
type TensorStats struct {
	// N is the number of pairs.
	N int64
	// How many values of each side are NaN or infinite, and the flat index of
	// the first one of either side, -1 where all are finite. Look at these first.
	CandNaN, CandInf, RefNaN, RefInf, FirstNonFinite int64
	// MaxAbs is max |ref - cand|, the difference rounded to float32, MaxAt the
	// first flat index that reaches it, -1 without a pair. NaN where any
	// difference is.
	MaxAbs float64
	MaxAt  int64
	// MeanAbs is the mean of |ref - cand|, MSE that of its square (unit
	// squared), RefMeanAbs and CandMeanAbs are those of |ref| and |cand|; float32
	// pairwise sums, rounded to float32.
	MeanAbs, MSE, RefMeanAbs, CandMeanAbs float64
	// Sums of squares of the float32 difference and of both sides, and of
	// cand*ref, in float64, pairwise.
	SumSqDiff, SumSqRef, SumSqCand, Dot float64
}

// NonFinite is the number of NaNs and infinities on both sides.
func (s TensorStats) NonFinite() int64 { return s.CandNaN + s.CandInf + s.RefNaN + s.RefInf }

// NRMSE is sqrt(SumSqDiff / SumSqRef), without unit. Its rule where the
// reference has no energy (all zero, or a NaN) is that of the script it comes
// from: 0, whatever the candidate holds. Look at NonFinite and SumSqRef first.
func (s TensorStats) NRMSE() float64 {
	if !(s.SumSqRef > 0) {
		return 0
	}
	return math.Sqrt(s.SumSqDiff / s.SumSqRef)
}

// RelativeL2 is the same ratio without that rule: +Inf for a zero reference, NaN
// where both sides are zero, or any value is NaN. A bound written as
// RelativeL2() < limit fails on all of them.
func (s TensorStats) RelativeL2() float64 { return math.Sqrt(s.SumSqDiff / s.SumSqRef) }

// NormRatio is sqrt(SumSqCand / SumSqRef), scale alone.
func (s TensorStats) NormRatio() float64 { return math.Sqrt(s.SumSqCand) / math.Sqrt(s.SumSqRef) }

// Cosine is Dot / sqrt(SumSqCand * SumSqRef), clamped to [-1, 1], direction
// alone; NaN when either side is all zero.
func (s TensorStats) Cosine() float64 {
	return clampUnit(s.Dot / (math.Sqrt(s.SumSqCand) * math.Sqrt(s.SumSqRef)))
}

// LegacyRelErrPct is 100 * MeanAbs / (RefMeanAbs + 1e-12), in per cent: an older
// formula that the kernel bound must not be held against, since it is smaller
// than nRMSE where the error is concentrated.
func (s TensorStats) LegacyRelErrPct() float64 { return 100 * s.MeanAbs / (s.RefMeanAbs + 1e-12) }
