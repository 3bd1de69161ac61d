package conformance

import (
	"fmt"
	"math"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden"
)

// residualCandidate holds every row of the candidate to the reference's, in
// direction and scale.
func residualCandidate() *Check {
	return &Check{
		ID: "ResidualCandidate",
		Rule: "every row of the candidate matches the reference's in direction (relative L2) and scale (norm ratio), " +
			"within a multiple of the yardstick's own error on the same prompt",
		Catches: []string{
			"a wrong rotary base", "gate and up projections swapped", "a layer that contributes nothing",
			"a doubled row, which correlation and z-scores can't see",
		},
		Level:  Core,
		Sides:  []Side{SideCandidate},
		Needs:  NeedRows | NeedProfile,
		Bounds: []string{"Int8", "Float"},
		Controls: []Control{
			{Mutant: "rope-base", Side: SideCandidate, Layer: -1, Floor: 2},
			{Mutant: "gate-up-swapped", Side: SideCandidate, Layer: -1, Floor: 2},
			{Mutant: "layer-skipped", Side: SideCandidate, Layer: 0, Floor: 2},
			{Mutant: "doubled-scale", Side: SideCandidate, Layer: 12, Floor: 2},
			{Mutant: "duplicated-row", Side: SideCandidate, Layer: 14, Floor: 2},
			{Mutant: "post-norm-last-row", Side: SideCandidate, Layer: -1, Floor: 2},
		},
		Judge:  judgeResidualCandidate,
		Across: func(run *RunEvidence) *Outcome { return acrossMedians(run.Cases, false, accumulatedFindings) },
	}
}

func judgeResidualCandidate(ev *Evidence, _ Side) Outcome {
	if ev.Profile == nil {
		return noProfile(ev)
	}
	p := ev.Profile
	if p.SchemeUnknown != "" {
		return unsupported("no absolute bound: " + p.SchemeUnknown)
	}
	var out []Finding
	bound := p.Factors.Single
	for i, m := range p.Accumulated {
		if m.Missing {
			continue // the check of form has named the row
		}
		limit := Limit{Number(bound.Value * m.Yard), bound.Describe()}
		if over(m.Ratio(), bound.Value) {
			out = append(out, Finding{Probe: engine.RowProbe(i), Metric: "accumulated relative L2", Got: Number(m.Got),
				Limit: limit, At: At{Row: i, Channel: -1, File: ev.CandidateFile},
				Detail: fmt.Sprintf("%.2f times the yardstick's error, norm ratio %.4f", m.Ratio(), p.NormRatio[i])})
		} else if d := math.Abs(p.NormRatio[i] - 1); over(d, float64(limit.Value)) {
			// A norm can't differ by more than the relative L2 does; kept apart
			// so that a change of scale is named as one.
			out = append(out, Finding{Probe: engine.RowProbe(i), Metric: "norm ratio", Got: Number(p.NormRatio[i]),
				Limit: limit, At: At{Row: i, Channel: -1, File: ev.CandidateFile}})
		}
	}
	if len(out) > 0 {
		return fail("", out...)
	}
	return pass()
}

// noProfile is the outcome of a value check on a case without values.
func noProfile(ev *Evidence) Outcome {
	if !ev.Offered {
		return notOffered(ev)
	}
	if ev.CandidateErr != nil {
		return answerError(ev.CandidateErr)
	}
	return skip("not judged by value: " + ev.NoProfile)
}

// accumulatedFindings holds the medians of the accumulated ratios to factor.
func accumulatedFindings(c curve, f Factors, _ Budgets) []Finding {
	return medianFindings(c.accumulated, f.Median, 0, "accumulated error over the yardstick's, median over the cases")
}

func medianFindings(xs []float64, bound golden.Budget, offset int, metric string) []Finding {
	var out []Finding
	for i, x := range xs {
		if over(x, bound.Value) {
			out = append(out, Finding{Probe: engine.RowProbe(i + offset), Metric: metric, Got: Number(x),
				Limit: Limit{Number(bound.Value), bound.Describe()},
				At:    AtRow(i + offset)})
		}
	}
	return out
}

// acrossMedians judges the medians over all cases that have a profile, when
// there are enough of them. In an unknown scheme only a check of the profile's
// shape means something.
func acrossMedians(evs []*Evidence, shape bool, findings func(curve, Factors, Budgets) []Finding) *Outcome {
	var ps []*Profile
	for _, ev := range evs {
		if ev.Profile != nil {
			ps = append(ps, ev.Profile)
		}
	}
	if len(ps) < MedianCases || (ps[0].SchemeUnknown != "" && !shape) {
		return nil
	}
	if fs := findings(medianCurve(ps), ps[0].Factors, evs[0].Budgets); len(fs) > 0 {
		o := fail("", fs...)
		return &o
	}
	o := pass()
	return &o
}
