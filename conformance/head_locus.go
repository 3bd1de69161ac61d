package conformance

import (
	"fmt"
	"slices"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// headFault names the final norm or the head when logits are wrong and the
// layers' last row is not why. It notes where to look when it is neither.
func (r *Report) headFault(evs []*Evidence) (engine.Probe, bool) {
	failed := func(id string) bool {
		return slices.ContainsFunc(r.Checks, func(c Result) bool { return c.ID == id && c.Side == SideCandidate && c.Status == Fail })
	}
	if slices.ContainsFunc(evs, func(ev *Evidence) bool { return ev.ProbeProfile != nil && ev.ProbeProfile.wrongNorm() >= 0 }) {
		return engine.ProbeFinalNorm, true // the probe itself says so
	}
	if failed("LogitRowContract") {
		return "", false // what is in the dump is not what the head gave
	}
	if failed("ResidualToLogits") || headOverBudget(evs) {
		votes := map[engine.Probe]int{}
		for _, ev := range evs {
			if p := ev.Logits; p != nil && p.HeadFault != "" {
				votes[p.HeadFault]++
			}
		}
		switch {
		case len(votes) == 0:
			r.Notes = append(r.Notes, "the logits are not what final norm and head make of the last layer row; "+
				"with a vocabulary this small the two can't be told apart")
			return engine.ProbeLogits, true
		case votes[engine.ProbeFinalNorm] >= votes[engine.ProbeLogits]:
			r.Notes = append(r.Notes, fmt.Sprintf("in %d of %d cases the logits are the right head on another final norm than the last layer row gives",
				votes[engine.ProbeFinalNorm], votes[engine.ProbeFinalNorm]+votes[engine.ProbeLogits]))
			return engine.ProbeFinalNorm, true
		}
		r.Notes = append(r.Notes, "no final norm explains the logits with the model's head: they are scaled, permuted or biased, or come from another matrix")
		return engine.ProbeLogits, true
	}
	if !failed("LogitCandidate") || r.FirstBadRow != nil {
		return "", false
	}
	seen := slices.ContainsFunc(evs, func(ev *Evidence) bool { return ev.Logits != nil && !ev.Logits.Head.Missing })
	step := firstBadStep(evs)
	switch {
	case !seen:
		r.Notes = append(r.Notes, "logits are wrong, and there is no layer dump beside them to tell layers from final norm and head")
		return "", false
	case step > 0:
		r.Notes = append(r.Notes, fmt.Sprintf("the logits of output token 0 are right in every case, and wrong from token %d on: "+
			"final norm and head are sound, and so is the prompt; look at what a decode step does to positions and KV cache", step))
		return "", false
	}
	return engine.ProbeLogits, true
}

func headOverBudget(evs []*Evidence) bool {
	ratios, p := headRatios(evs)
	return len(ratios) >= MedianCases && over(metric.Median(ratios), p.Factors.Median.Value)
}

// firstBadStep is the first output token whose row is out of budget in some
// case, -1 when none is by itself.
func firstBadStep(evs []*Evidence) int {
	first := -1
	for _, ev := range evs {
		if ev.Logits == nil {
			continue
		}
		bound := ev.Logits.rowBound(ev.Budgets).Value
		for i, row := range ev.Logits.Rows {
			if (over(row.Error.Ratio(), bound) || row.Class == Wrong) && (first < 0 || i < first) {
				first = i
			}
		}
	}
	return first
}

// logitPower says what the logit dumps show, and what they can't.
func logitPower(evs []*Evidence) []string {
	s := summarise(evs)
	if s == nil {
		return []string{"not seen: final norm, output head and logits: no logit dump was judged by value"}
	}
	out := []string{fmt.Sprintf("logits: %d rows of %d cases, each along the candidate's own tokens; the reference is sure (margin above the tie band) at %d",
		s.Positions, s.Cases, s.Clear)}
	head, unscaled := false, false
	for _, ev := range evs {
		if p := ev.Logits; p != nil {
			head, unscaled = head || !p.Head.Missing, unscaled || p.Unscaled
		}
	}
	if unscaled {
		out = append(out, "not seen in integer logits: a temperature, of all rows or of one, since each row is brought to the norm of the reference's")
	}
	out = append(out, "not seen in logits: one id in one row, and deviations below what the yardstick shows")
	if !head {
		out = append(out, "not told apart: layers, final norm and head, without a layer dump beside the logits")
	}
	return out
}
