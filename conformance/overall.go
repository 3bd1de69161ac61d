package conformance

import (
	"fmt"
	"slices"
)

// locateAll names the first bad row over all cases. With at least MedianCases
// judged cases the profile of medians decides; where it is clean, or with fewer
// cases, the single cases decide: the smallest row that most of the failing
// ones share.
func locateAll(evs []*Evidence, b Budgets) (Locus, map[string]Locus) {
	each := map[string]Locus{}
	var ps []*Profile
	var failing []Locus
	for _, ev := range evs {
		if l, ok := locateOne(ev, b); ok {
			each[ev.Case.Name] = l
			if l.Row >= 0 {
				failing = append(failing, l)
			}
			if l.form {
				continue // its values would blur the medians of the others
			}
		}
		if ev.Profile != nil {
			ps = append(ps, ev.Profile)
		}
	}
	if len(ps) >= MedianCases {
		if l := locate(medianCurve(ps), ps[0].Factors.Median.Value, b); l.Row >= 0 {
			return l, each
		}
	}
	return mostShared(failing, len(each)), each
}

// locateOne locates within one case. ok is false when the case says nothing.
func locateOne(ev *Evidence, b Budgets) (l Locus, ok bool) {
	if ev.Candidate != nil && ev.Reference != nil {
		if row, _ := badRowOf(ev); row >= 0 {
			return Locus{Row: row, Kind: KindDump, form: true}, true
		}
		if i, j, swapped := swappedRows(ev.Candidate.Rows, ev.Reference.Rows); swapped {
			return Locus{Row: i, Kind: KindDump, form: true, Notes: []string{fmt.Sprintf("rows %d and %d are exchanged", i, j)}}, true
		}
	}
	if ev.Profile == nil {
		return Locus{Row: -1}, false
	}
	return locate(curveOf(ev.Profile), ev.Profile.Factors.Single.Value, b), true
}

// mostShared picks the smallest row named by more than half of the judged
// cases, else the row that most failing cases share.
func mostShared(failing []Locus, judged int) Locus {
	if len(failing) == 0 {
		return Locus{Row: -1}
	}
	count := map[int]int{}
	for _, l := range failing {
		count[l.Row]++
	}
	best := slices.MinFunc(failing, func(a, b Locus) int {
		am, bm := 2*count[a.Row] > judged, 2*count[b.Row] > judged
		switch {
		case am != bm && am:
			return -1
		case am != bm:
			return 1
		case count[a.Row] != count[b.Row]:
			return count[b.Row] - count[a.Row]
		}
		return a.Row - b.Row
	})
	return best
}
