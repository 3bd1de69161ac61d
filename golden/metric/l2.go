package metric

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// L2 is the Euclidean norm sqrt(sum x_i^2), in the unit of the row. It is
// computed with scaling, so it doesn't overflow before its result does.
// NaN for an empty row or a row that holds a NaN.
func L2(row []float64) float64 {
	if len(row) == 0 || floats.HasNaN(row) {
		return math.NaN()
	}
	return floats.Norm(row, 2)
}

// RelativeL2 is |cand - ref| / |ref|, Euclidean norms, without unit. The
// denominator is the norm of the reference row. It sees direction and scale:
// a doubled row gives 1, a row of zeros gives 1, an opposite row gives 2.
//
// A zero reference gives +Inf, or NaN when the candidate is zero too.
func RelativeL2(cand, ref []float64) float64 {
	mustMatch("RelativeL2", len(cand), len(ref))
	return distance(cand, ref) / L2(ref)
}

// NormRatio is |cand| / |ref|, Euclidean norms: scale alone, 1 for equal scale.
//
// A zero reference gives +Inf, or NaN when the candidate is zero too.
func NormRatio(cand, ref []float64) float64 {
	mustMatch("NormRatio", len(cand), len(ref))
	return L2(cand) / L2(ref)
}

// Cosine is <cand, ref> / (|cand| |ref|), clamped to [-1, 1]: direction alone.
// It never gates by itself (a doubled row has cosine 1). NaN when either row is
// all zeros.
func Cosine(cand, ref []float64) float64 {
	mustMatch("Cosine", len(cand), len(ref))
	nc, nr := L2(cand), L2(ref)
	if !(nc > 0 && nr > 0) {
		return math.NaN()
	}
	// Normalised before the product, so that tiny rows don't underflow to 0/0
	// and large ones don't overflow.
	var dot float64
	for i, c := range cand {
		dot += (c / nc) * (ref[i] / nr)
	}
	return clampUnit(dot)
}

// NRMSE is sqrt(sum (c-r)^2 / sum r^2), the normalised root-mean-square error
// of the flash-attention kernel tests (system 4): the counts cancel, so the
// denominator is the reference's energy, not its range or its standard
// deviation. It equals RelativeL2 in exact arithmetic and is kept apart because
// its rule for a zero reference is the script's: 0, whatever the candidate
// holds. The 0 says "no reference energy", so check [Classify] of the reference
// first. NaN in either row gives NaN.
func NRMSE(cand, ref []float64) float64 {
	mustMatch("NRMSE", len(cand), len(ref))
	if len(ref) == 0 {
		return math.NaN()
	}
	var diff, energy float64
	for i, c := range cand {
		d := c - ref[i]
		diff += d * d
		energy += ref[i] * ref[i]
	}
	if energy == 0 && !math.IsNaN(diff) {
		return 0
	}
	return math.Sqrt(diff / energy)
}

// distance is |cand - ref|, NaN where any difference is.
func distance(cand, ref []float64) float64 {
	if len(cand) == 0 {
		return math.NaN()
	}
	d := make([]float64, len(cand))
	floats.SubTo(d, cand, ref)
	return L2(d)
}

// clampUnit cuts rounding noise off a correlation. NaN stays NaN.
func clampUnit(x float64) float64 {
	return math.Max(-1, math.Min(1, x))
}
