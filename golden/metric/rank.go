package metric

import (
	"math"
	"slices"
)

// Spearman is Spearman's rank correlation: the Pearson correlation of the
// ranks, ties given their average rank (C. Spearman 1904; M. G. Kendall, "Rank
// Correlation Methods", ch. 3, for ties). Infinities rank as the extremes.
//
// NaN where either row is constant, holds a NaN, or is shorter than 2.
func Spearman(cand, ref []float64) float64 {
	mustMatch("Spearman", len(cand), len(ref))
	if anyNaN(cand) || anyNaN(ref) {
		return math.NaN()
	}
	return pearson(averageRanks(cand), averageRanks(ref))
}

// averageRanks returns 1-based ranks; equal values share the mean of theirs.
// The row holds no NaN.
func averageRanks(row []float64) []float64 {
	order := make([]int, len(row))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		switch {
		case row[a] < row[b]:
			return -1
		case row[a] > row[b]:
			return 1
		}
		return 0
	})
	ranks := make([]float64, len(row))
	for lo := 0; lo < len(order); {
		hi := lo + 1
		for hi < len(order) && row[order[hi]] == row[order[lo]] {
			hi++
		}
		// Positions lo..hi-1 are ranks lo+1..hi; their mean is (lo+1+hi)/2.
		mean := float64(lo+1+hi) / 2
		for _, i := range order[lo:hi] {
			ranks[i] = mean
		}
		lo = hi
	}
	return ranks
}

func anyNaN(row []float64) bool {
	return slices.ContainsFunc(row, math.IsNaN)
}
