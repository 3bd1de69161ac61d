package metric

import "golang.org/x/sys/cpu"

// haveAVX2 is a variable so that a test can hold both ways together.
var haveAVX2 = cpu.X86.HasAVX2

// sumLanes sums a multiple of 8 pairs, at most pairwiseBlock. numpy's 8 lanes are
// one AVX register: the same additions in the same order, eight at a time.
func sumLanes(cand, ref []float32, s *pairSums) {
	if !haveAVX2 {
		sumLanesGeneric(cand, ref, s)
		return
	}
	sumLanesAVX2(&cand[0], &ref[0], len(cand), s)
}

// sumLanesAVX2 sums n pairs, a positive multiple of 8.
//
//go:noescape
func sumLanesAVX2(cand, ref *float32, n int, s *pairSums)
