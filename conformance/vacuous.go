package conformance

import (
	"slices"
	"strings"
)

// noVacuousPass holds the run to have judged something.
func noVacuousPass() *Check {
	return &Check{
		ID: "NoVacuousPass",
		Rule: "an empty, all-unsupported, all-skipped, all-waived or all-NaN candidate never conforms: in at least one case all rows and logits that it has " +
			"were judged by value, and not every such verdict is waived or left out",
		Catches: []string{
			"0 of 0 reported as passed", "every case skipped", "NaN compared as within tolerance",
		},
		Level: Provisional, // it guards the suite; the conclusion has its own rule
		Sides: []Side{SideSuite},
		Needs: NeedRows | NeedProfile | NeedLogits,
		Basis: "exact: at least one case",
		Controls: []Control{
			{Mutant: "answers-nothing", Side: SideSuite, Layer: -1},
			{Mutant: "all-nan", Side: SideSuite, Layer: -1},
			{Mutant: "no-cases", Side: SideSuite, Layer: -1},
		},
		Across: func(run *RunEvidence) *Outcome {
			for _, ev := range run.Cases {
				if ev.judgedByValue() {
					o := pass()
					return &o
				}
			}
			o := fail("", Finding{Metric: "cases judged by value", Got: 0, Limit: Limit{1, "something must be judged"}, At: Nowhere})
			return &o
		},
	}
}

// judgedByValue reports whether all that the candidate offered in this case was
// compared by value, and that it was something.
func (ev *Evidence) judgedByValue() bool {
	probes := ev.ProbeProfile != nil && ev.ProbeProfile.anyMeasured()
	rows, logits := ev.Profile != nil || probes, ev.Logits != nil
	if ev.Places != nil && ev.ProbeProfile == nil {
		return false
	}
	return ev.CandidateErr == nil && (rows || logits) && (rows || !ev.Offered) && (logits || ev.LogitForm == nil)
}

// byValue are the checks whose verdicts rest on values that were compared.
var byValue = []string{"ResidualCandidate", "LocalError", "ProbeCandidate", "LogitCandidate", "ResidualToLogits"}

// holdToValues fails NoVacuousPass where waivers and skips leave no verdict by value:
// what remains, of form and tokens, says nothing of what an engine computes.
func (r *Report) holdToValues() {
	leftOut := false
	for _, c := range r.Checks {
		if c.Side != SideCandidate || !slices.Contains(byValue, c.ID) {
			continue
		}
		if c.Status.Judged() && c.Waived == nil {
			return
		}
		leftOut = leftOut || c.Waived != nil || strings.HasPrefix(c.Reason, skipped)
	}
	if !leftOut {
		return
	}
	guard := noVacuousPass()
	verdict := Result{ID: guard.ID, Case: "*", Side: SideSuite, Level: guard.Level, Status: Fail, Rule: guard.Rule, Findings: []Finding{{
		Metric: "verdicts by value that are neither waived nor left out", Got: 0, Limit: Limit{1, "something must be judged"}, At: Nowhere}}}
	for i, c := range r.Checks {
		if c.ID == guard.ID {
			r.Checks[i] = verdict
			return
		}
	}
	r.Checks = append(r.Checks, verdict)
}
