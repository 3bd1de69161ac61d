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
	n := len(ref)
	s := sortScratch.Get().(*sorter)
	defer sortScratch.Put(s)
	s.resize(n)
	ranks := s.ranks
	var rr float64
	s.sort(ref, nil)
	for lo, hi := 0, 0; lo < n; lo = hi {
		hi = s.tieEnd(lo)
		rank := lo + hi + 1
		for _, e := range s.sorted[lo:hi] {
			ranks[e.load()] = uint32(rank)
		}
		d := float64(rank - n - 1)
		rr += float64(hi-lo) * d * d
	}
	// Each element of the candidate carries its reference's rank, which is then
	// at hand in the candidate's order.
	s.sort(cand, ranks)
	var cc, cr float64
	for lo, hi := 0, 0; lo < n; lo = hi {
		hi = s.tieEnd(lo)
		d := float64(lo + hi - n)
		cc += float64(hi-lo) * d * d
		for _, e := range s.sorted[lo:hi] {
			cr += d * float64(int(e.load())-n-1)
		}
	}
	// Twice the distances from the mean rank (n+1)/2: whole numbers, the sums
	// exact up to rows of 300,000. A constant row's are 0.
	return clampUnit(cr / math.Sqrt(cc*rr))
}

// tieEnd is the end of the run of equal values that starts at lo. The elements
// lo..hi-1 have the ranks lo+1..hi, whose mean is (lo+hi+1)/2.
func (s *sorter) tieEnd(lo int) int {
	hi := lo + 1
	for hi < len(s.sorted) && s.sorted[hi].key() == s.sorted[lo].key() {
		hi++
	}
	return hi
}

func anyNaN(row []float64) bool {
	return slices.ContainsFunc(row, math.IsNaN)
}
