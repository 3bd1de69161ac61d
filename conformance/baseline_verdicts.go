package conformance

import (
	"fmt"
	"slices"

	"github.com/plumbline-go/plumbline/engine"
)

// verdict is what a check says of a case, as far as a baseline is concerned.
type verdict int

const (
	unjudged verdict = iota
	passed
	failed
	waived
)

func (v verdict) String() string {
	return [...]string{"not judged", "pass", "fail", "waived"}[v]
}

// place is where a verdict stands.
type place struct{ check, name string }

// verdictsOf are the verdicts on a candidate, those on other verdicts excepted.
func verdictsOf(r *Report) map[place]verdict {
	out := map[place]verdict{}
	for _, c := range r.Checks {
		if c.Side != SideCandidate || LooksAtResults(c.ID) {
			continue
		}
		v := unjudged
		switch {
		case c.Waived != nil:
			v = waived
		case c.Status == Pass:
			v = passed
		case c.Status == Fail || c.Status == Error:
			v = failed
		}
		out[place{c.ID, c.Case}] = v
	}
	return out
}

// verdictChanges compares verdicts and coverage. Checks that this run left out by name
// (Config.Only) are not compared: such a run is partial by itself.
func verdictChanges(b, r *Report) (worse, better []Change) {
	before, after := verdictsOf(b), verdictsOf(r)
	change := func(p place, metric string, was, is verdict, detail string) Change {
		c := Change{Check: p.check, Case: p.name, Metric: metric, Before: 1, After: 0, Limit: Limit{1, "the baseline"}, Detail: detail}
		if detail == "" {
			c.Detail = fmt.Sprintf("%s, in the baseline %s", is, was)
		}
		return c
	}
	gone := map[string]bool{}
	for name := range b.Cases {
		if _, ok := r.Cases[name]; !ok {
			gone[name] = true
			worse = append(worse, change(place{"*", name}, "case", passed, unjudged, "the case is gone"))
		}
	}
	for p, was := range before {
		if gone[p.name] {
			continue
		}
		is := after[p]
		switch {
		case was == passed && is == unjudged:
			worse = append(worse, change(p, "judged", was, is, ""))
		case was == passed && is == failed:
			worse = append(worse, change(p, "verdict", was, is, ""))
		case was != passed && is == passed:
			better = append(better, change(p, "verdict", was, is, ""))
		}
	}
	for p, is := range after {
		if was := before[p]; is == waived && was != waived {
			worse = append(worse, change(p, "waived", was, is, ""))
		}
	}
	for i, c := range better {
		better[i].Before, better[i].After = c.After, c.Before
	}
	for _, cs := range [][]Change{worse, better} {
		slices.SortFunc(cs, compareChanges)
	}
	return worse, better
}

func compareChanges(a, b Change) int {
	return slices.Compare([]string{a.Case, a.Check, a.Metric}, []string{b.Case, b.Check, b.Metric})
}

func probeOf(c Change) engine.Probe { return engine.Probe(c.Probe) }
