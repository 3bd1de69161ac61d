package metric

import (
	"math"
	"slices"
)

// Quantile is the p-quantile of xs, 0 <= p <= 1, by linear interpolation
// between order statistics at (n-1)p: type 7 of R. J. Hyndman and Y. Fan,
// "Sample Quantiles in Statistical Packages" (1996), numpy's default. gonum's
// LinInterp is type 4 and gives other values. xs isn't changed.
//
// NaN if xs is empty or holds a NaN: a value that couldn't be computed must not
// vanish from a summary. Panics when p is outside [0, 1].
func Quantile(p float64, xs []float64) float64 {
	if !(p >= 0 && p <= 1) {
		panic("metric: Quantile: p outside [0, 1]")
	}
	if len(xs) == 0 || anyNaN(xs) {
		return math.NaN()
	}
	s := slices.Clone(xs)
	slices.Sort(s)
	h := float64(len(s)-1) * p
	lo := int(math.Floor(h))
	if lo == len(s)-1 || s[lo] == s[lo+1] {
		return s[lo] // also keeps Inf - Inf out of the interpolation
	}
	frac := h - float64(lo)
	if frac == 0 {
		return s[lo]
	}
	return s[lo] + frac*(s[lo+1]-s[lo])
}

// Median is the 0.5-[Quantile]: of an even count, the mean of the middle two.
func Median(xs []float64) float64 { return Quantile(0.5, xs) }

// P99 is the 0.99-[Quantile].
func P99(xs []float64) float64 { return Quantile(0.99, xs) }

// Mean is the arithmetic mean; NaN if xs is empty or holds a NaN.
func Mean(xs []float64) float64 {
	var sum float64
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}
