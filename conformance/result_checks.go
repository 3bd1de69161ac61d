package conformance

import "slices"

// ResultChecks describes what judges the results of other checks: the candidate's claims,
// a baseline, a second run. They are no checks of a [Registry] and have no planted fault
// of their own, can't be waived or skipped, and are no verdict on a candidate by
// themselves. The tests that show them fail are TestClaimedFeatures,
// TestFigureAgainstItsNoise, TestVerdictsAgainstTheBaseline and TestRepeatMeasuresNoise.
func ResultChecks() []CheckInfo { return []CheckInfo{aboutFeatures(), aboutBaseline(), aboutRepeat()} }

// LooksAtResults reports whether an ID is that of one of [ResultChecks].
func LooksAtResults(id string) bool {
	return slices.Contains([]string{featuresID, baselineID, repeatID}, id)
}

// EmptyShard reports whether the report is of a shard that has none of the run's cases,
// and in which nothing failed: no fault, the other shards have what there is to judge.
func (r *Report) EmptyShard() bool {
	return r.Shard != nil && r.Shard.Cases == 0 && r.Shard.AllCases > 0 && r.Conclusion != Fails
}
