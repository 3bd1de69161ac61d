package metric

import (
	"math"

	"gonum.org/v1/gonum/stat"
)

// ZScores returns (x - mean) / std with the population standard deviation
// (divisor n), the owners' rule for comparing a float row with raw int8 codes.
// A constant row gives all zeros. A row that holds a NaN or an infinity gives
// all NaN.
func ZScores(row []float64) []float64 {
	z := make([]float64, len(row))
	if len(row) == 0 || constant(row) {
		return z
	}
	mean, variance := stat.PopMeanVariance(row, nil)
	std := math.Sqrt(variance)
	if std == 0 { // differences so small that their squares underflow
		return z
	}
	for i, x := range row {
		z[i] = (x - mean) / std
	}
	return z
}

// PearsonZ is the Pearson correlation of the z-scored rows, mean(z(c) * z(r)).
// Pearson's correlation is the same for every positive scale and offset, so the
// z-scores (population std) change nothing but rounding; the name says which
// column of the owners' report it is. It can't see scale: never gate on it alone.
//
// NaN where either row is constant (its z is all zeros, and 0/0 has no
// direction), holds a NaN or an infinity, or is empty.
func PearsonZ(cand, ref []float64) float64 {
	mustMatch("PearsonZ", len(cand), len(ref))
	return pearson(cand, ref)
}

// MaxZDiff is max_i |z(cand)_i - z(ref)_i| over [ZScores], in standard
// deviations. A constant row counts as all zeros, so against another row the
// result is that row's largest |z|, and 0 against another constant row: read it
// together with [Classify]. NaN where either row holds a NaN or an infinity, or
// is empty.
func MaxZDiff(cand, ref []float64) float64 {
	mustMatch("MaxZDiff", len(cand), len(ref))
	if len(cand) == 0 {
		return math.NaN()
	}
	zc, zr := ZScores(cand), ZScores(ref)
	var m float64
	for i, c := range zc {
		d := math.Abs(c - zr[i])
		if math.IsNaN(d) {
			return d
		}
		m = math.Max(m, d)
	}
	return m
}

// pearson is gonum's two-pass correlation. Constant rows are caught first:
// gonum divides by a standard deviation that rounding may leave above zero, and
// then returns noise where the answer is undefined.
func pearson(x, y []float64) float64 {
	if len(x) == 0 || constant(x) || constant(y) {
		return math.NaN()
	}
	return clampUnit(stat.Correlation(x, y, nil))
}
