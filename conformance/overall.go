package conformance

import (
	"fmt"
	"slices"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// finding of one case: a fault of form, a fault of values, or both.
type caseLocus struct {
	form, value  Locus // Row -1: none
	provenance   string
	judged       bool
	allPositions bool // where value comes from
}

// first is the smaller of the two rows; a fault of form explains a bad value in
// the same row.
func (c caseLocus) first() Locus { return smaller(c.form, c.value) }

func smaller(form, value Locus) Locus {
	switch {
	case form.Row < 0:
		return value
	case form.Row == value.Row:
		return form
	case value.Row < 0 || form.Row < value.Row:
		form.Sources = append(slices.Clone(form.Sources), value.Sources...)
		form.Notes = append(slices.Clone(form.Notes), value.Notes...)
		return form
	}
	value.Notes = append(slices.Clone(value.Notes), form.Notes...)
	return value
}

// locateAll names the first bad row over all cases. With at least MedianCases
// judged cases the profile of medians decides; where it is clean, or with fewer
// cases, the single cases decide: the smallest row that most of the failing
// ones share. A fault of form that most cases share counts like a bad value.
func locateAll(evs []*Evidence, b Budgets) (Locus, map[string]caseLocus) {
	each := map[string]caseLocus{}
	var ps []*Profile
	var values, positioned, forms []Locus
	judged, judgedAll := 0, 0
	for _, ev := range evs {
		l := locateOne(ev, b)
		if l.value.Row >= 0 {
			l.provenance = matchesAnother(ev, evs)
		}
		each[ev.Case.Name] = l
		if l.judged {
			judged++
		}
		if l.provenance != "" {
			continue // another case's rows say nothing of this one's layers
		}
		if l.form.Row >= 0 {
			forms = append(forms, l.form)
		}
		if ev.ProbeProfile != nil {
			judgedAll++
			if l.allPositions {
				positioned = append(positioned, l.value)
			}
		}
		if l.value.Row >= 0 {
			values = append(values, l.value)
		}
		if ev.Profile != nil {
			ps = append(ps, ev.Profile)
		}
	}
	value := mostShared(positioned, judgedAll)
	value.Sources = sourcesOf(value, positioned)
	if value.Row < 0 && len(ps) >= MedianCases {
		value = locate(medianCurve(ps), ps[0].Factors.Median.Value, b)
	}
	if value.Row < 0 {
		value = mostShared(values, judged)
	}
	form := mostShared(forms, judged)
	if 2*len(forms) <= judged && value.Row >= 0 {
		value.Notes = append(slices.Clone(value.Notes), form.Notes...)
		return value, each
	}
	return smaller(form, value), each
}

// sourcesOf are the sources of the locus that was picked, and those behind it that
// other cases show: on a candidate's own rows no layer is explained by another.
func sourcesOf(picked Locus, all []Locus) []engine.Probe {
	out := slices.Clone(picked.Sources)
	if picked.Kind != KindLayer && picked.Kind != KindDump {
		return out
	}
	for _, l := range all {
		for _, s := range l.Sources {
			if l.Kind != KindAllLayers && depthOfProbe(s)+1 >= picked.Row && !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b engine.Probe) int { return depthOfProbe(a) - depthOfProbe(b) })
	return out
}

// locateOne locates within one case.
func locateOne(ev *Evidence, b Budgets) caseLocus {
	if ev.found != nil {
		return ev.found.locus
	}
	l := caseLocus{form: Locus{Row: -1}, value: Locus{Row: -1}}
	if ev.Candidate != nil && ev.Reference != nil {
		if row, what := badRowOf(ev); row >= 0 {
			l.form = Locus{Row: row, Kind: KindDump, form: true, Notes: []string{fmt.Sprintf("case %s: row %d is %s", ev.Case.Name, row, what)}}
			l.judged = true
		} else if i, j, swapped := swappedRows(ev.Candidate.Rows, ev.Reference.Rows, b.Nearer.Value); swapped {
			l.form = Locus{Row: i, Kind: KindDump, form: true, Notes: []string{fmt.Sprintf("case %s: rows %d and %d are exchanged", ev.Case.Name, i, j)}}
			l.judged = true
		}
	}
	if f, at := placesLocus(ev); at && (l.form.Row < 0 || f.Row <= l.form.Row) {
		l.form, l.judged = f, true
	}
	if ev.Profile != nil {
		l.value = locate(curveOf(ev.Profile), ev.Profile.Factors.Single.Value, b)
		l.judged = true
	}
	if ev.ProbeProfile != nil && ev.ProbeProfile.anyMeasured() {
		l.judged = true
		if at := locateProbes(ev.ProbeProfile, b); at.Row >= 0 {
			l.value, l.allPositions = at, true
		}
	}
	return l
}

// placesLocus is the first place that can't be a run's.
func placesLocus(ev *Evidence) (Locus, bool) {
	if ev.ProbeProfile == nil {
		return Locus{}, false
	}
	for _, f := range placesOfForm(ev) {
		if f.At.Row >= 0 {
			return Locus{Row: f.At.Row, Kind: KindDump, form: true, position: f.At.Position,
				Notes: []string{fmt.Sprintf("case %s: %s", ev.Case.Name, f.what())}}, true
		}
	}
	return Locus{}, false
}

// matchesAnother names the case whose reference rows a failing case's rows are,
// within the bound on every row and far nearer than its own: a dump under
// another prompt's name. Similar prompts have similar rows, so the first alone
// would not do.
func matchesAnother(ev *Evidence, evs []*Evidence) string {
	if ev.Profile == nil || ev.Profile.SchemeUnknown != "" {
		return ""
	}
	bound := ev.Profile.Factors.Single.Value
	for _, other := range evs {
		if other == ev || other.Reference == nil || len(other.Reference.Rows) != len(ev.Candidate.Rows) {
			continue
		}
		fits := true
		var own, others float64
		for i, r := range other.Reference.Rows {
			m := Measure{Got: metric.RelativeL2(ev.Candidate.Rows[i], r), Yard: ev.Profile.Accumulated[i].Yard}
			if over(m.Ratio(), bound) {
				fits = false
				break
			}
			own += ev.Profile.Accumulated[i].Ratio()
			others += m.Ratio()
		}
		if fits && others < ev.Budgets.Nearer.Value*own {
			return other.Case.Name
		}
	}
	return ""
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
	return slices.MinFunc(failing, func(a, b Locus) int {
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
}
