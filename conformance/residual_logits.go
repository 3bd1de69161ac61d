package conformance

import (
	"fmt"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// residualToLogits charges an error of the logits to the final norm and the head
// when it is theirs.
func residualToLogits() *Check {
	return &Check{
		ID: "ResidualToLogits",
		Rule: "the reference's final norm and head, fed with the candidate's own last layer row, " +
			"give the candidate's first row of logits, within a multiple of the yardstick's own error there",
		Catches: []string{"a final norm that is skipped, not loaded or shifted", "another matrix as the head", "logits scaled or permuted"},
		Level:   Extended,
		Sides:   []Side{SideCandidate},
		Needs:   NeedRows | NeedProfile | NeedLogits,
		Bounds:  []string{"Int8", "Float"},
		Controls: []Control{
			{Mutant: "final-norm-ones", Side: SideCandidate, Layer: -1, Floor: 2},
			{Mutant: "final-norm-rolled", Side: SideCandidate, Layer: -1, Floor: 2},
			{Mutant: "wrong-head", Side: SideCandidate, Layer: -1, Floor: 2},
		},
		Judge:  judgeResidualToLogits,
		Across: acrossResidualToLogits,
	}
}

func judgeResidualToLogits(ev *Evidence, _ Side) Outcome {
	if ev.LogitForm == nil {
		return noLogitDump(ev)
	}
	p := ev.Logits
	switch {
	case p == nil:
		return skip("not judged by value: " + ev.NoLogits)
	case p.SchemeUnknown != "":
		return unsupported("no absolute bound: " + p.SchemeUnknown)
	case p.Head.Missing:
		return skip("needs a layer dump of the same case, with a last row that can be measured")
	}
	f := Finding{Probe: headProbe(p), Metric: "relative L2 of the row without its mean", Got: Number(p.Head.Got),
		Limit: Limit{Number(p.Factors.Single.Value * p.Head.Yard), p.Factors.Single.Describe()}, At: AtStep(0, p.File),
		Detail: fmt.Sprintf("%.2f times the yardstick's error", p.Head.Ratio())}
	if over(p.Head.Ratio(), p.Factors.Single.Value) {
		return fail(KindHead, f)
	}
	return Outcome{Status: Pass, Findings: []Finding{f}}
}

func headProbe(p *LogitProfile) engine.Probe {
	if p.HeadFault != "" {
		return p.HeadFault
	}
	return engine.ProbeLogits
}

func acrossResidualToLogits(run *RunEvidence) *Outcome {
	ratios, p := headRatios(run.Cases)
	if len(ratios) < MedianCases {
		return nil
	}
	f := Finding{Probe: headProbe(p), Metric: "error of the head over the yardstick's, median over the cases", Got: Number(metric.Median(ratios)),
		Limit: Limit{Number(p.Factors.Median.Value), p.Factors.Median.Describe()}, At: Nowhere}
	o := Outcome{Status: Pass, Findings: []Finding{f}}
	if over(float64(f.Got), p.Factors.Median.Value) {
		o = fail(KindHead, f)
	}
	return &o
}

// headRatios are the errors of final norm and head in multiples of the
// yardstick's, and one of the profiles that they come from.
func headRatios(evs []*Evidence) (ratios []float64, one *LogitProfile) {
	for _, ev := range evs {
		if p := ev.Logits; p != nil && !p.Head.Missing && p.SchemeUnknown == "" {
			ratios = append(ratios, p.Head.Ratio())
			if one == nil || one.HeadFault == "" {
				one = p
			}
		}
	}
	return ratios, one
}
