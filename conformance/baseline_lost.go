package conformance

import "fmt"

// lostMetric is the metric of figures that the baseline has and a run lacks.
const lostMetric = "figures"

// lostFigures says, for each check and case that both reports judge, how many of the
// baseline's figures the run doesn't have: a probe that is no longer written, a row that
// became NaN. Fewer figures under the same verdicts are a loss of coverage. Where a check
// no longer judges the case, the verdicts say so.
func lostFigures(b, r *Report) []Change {
	before, after := verdictsOf(b), verdictsOf(r)
	had, has := pairFigures(b, b), pairFigures(r, r)
	counts := map[place]int{}
	lost := map[place][]figureKey{}
	for _, k := range had.order {
		for name := range had.byKey[k] {
			p := place{k.check, name}
			_, still := r.Cases[name]
			if !still || before[p] == unjudged || after[p] == unjudged {
				continue
			}
			counts[p]++
			if _, ok := has.byKey[k][name]; !ok {
				lost[p] = append(lost[p], k)
			}
		}
	}
	var out []Change
	for p, ks := range lost {
		out = append(out, Change{Check: p.check, Case: p.name, Probe: ks[0].probe, Metric: lostMetric,
			Before: Number(counts[p]), After: Number(counts[p] - len(ks)), Limit: Limit{Number(counts[p]), "the baseline"},
			Detail: fmt.Sprintf("%d of the baseline's %d figures are not in this run, the first: %s", len(ks), counts[p], ks[0].metric)})
	}
	return out
}
