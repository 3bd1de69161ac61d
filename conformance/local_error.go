package conformance

import (
	"fmt"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// localError charges an error to the layer that introduces it.
func localError() *Check {
	return &Check{
		ID: "LocalError",
		Rule: "fed with the candidate's own row N, the reference's layer N gives the candidate's row N+1: " +
			"the first layer whose local error is out of budget is the source",
		Catches: []string{
			"a fault in one layer, named at that layer whatever the later layers inherit",
			"a norm gain that was never loaded, too weak for the accumulated error to show",
			"a stale KV cache row", "layers in the wrong order",
		},
		Level:  Core,
		Sides:  []Side{SideCandidate},
		Needs:  NeedRows | NeedProfile,
		Bounds: []string{"Int8", "Float", "OwnRowsKnown", "OwnRowsScaled", "OwnRowsInt8", "OwnRowsUnknown", "OwnRowsFloat", "Level", "Outlier", "OutlierUnknown", "OutlierSingle"},
		Basis:  "OwnRows* hold where places of all positions were dumped",
		Controls: []Control{
			{Mutant: "norm-gain-ones", Side: SideCandidate, Layer: 5, Floor: 2},
			{Mutant: "rope-base", Side: SideCandidate, Layer: 9, Floor: 2},
			{Mutant: "q-position-off-by-one", Side: SideCandidate, Layer: 9, Floor: 2},
			{Mutant: "q-bias-missing", Side: SideCandidate, Layer: 9, Floor: 2},
			{Mutant: "gate-up-swapped", Side: SideCandidate, Layer: 7, Floor: 2},
			{Mutant: "kv-heads-swapped", Side: SideCandidate, Layer: 9, Floor: 2},
			{Mutant: "layer-skipped", Side: SideCandidate, Layer: 17, Floor: 2},
			{Mutant: "layers-swapped", Side: SideCandidate, Layer: 11, Floor: 2},
			{Mutant: "stale-cache-row", Side: SideCandidate, Layer: 9, Floor: 2},
			{Mutant: "duplicated-row", Side: SideCandidate, Layer: 14, Floor: 2},
			{Mutant: "post-norm-last-row", Side: SideCandidate, Layer: -1, Floor: 2},
		},
		Judge:  judgeLocalError,
		Across: func(run *RunEvidence) *Outcome { return acrossMedians(run.Cases, true, localFindings) },
	}
}

func judgeLocalError(ev *Evidence, _ Side) Outcome {
	if ev.localOfAllPositions() {
		if o := judgeAllPositions(ev); o.Status == Fail || ev.Profile == nil {
			return o
		}
	}
	if ev.Profile == nil {
		return noProfile(ev)
	}
	p := ev.Profile
	source := p.Factors.Single
	if p.SchemeUnknown != "" {
		source = outlying(ev.Budgets.OutlierSingle, curveOf(p), 0)
	}
	bound := localBound(curveOf(p), p.Factors.Single.Value, ev.Budgets)
	var out []Finding
	for n, m := range p.Local {
		if r := m.Ratio(); over(r, bound) {
			out = append(out, Finding{Probe: engine.ResidPost(n), Metric: "local error", Got: Number(m.Got),
				Limit:  Limit{Number(bound * m.Yard), source.Describe()},
				At:     At{Row: n + 1, Channel: -1, File: ev.CandidateFile},
				Detail: fmt.Sprintf("%.2f times the yardstick's error%s", r, updateHint(m))})
		}
	}
	if len(out) > 0 {
		return fail("", out...)
	}
	return pass()
}

// judgeAllPositions is the same from all positions: keys and values are those of the
// candidate's own rows, and no layer inherits from another.
func judgeAllPositions(ev *Evidence) Outcome {
	p := ev.ProbeProfile
	bound := p.boundsOf(p.column(wholeLayer), ev.Budgets)
	var out []Finding
	for n, l := range p.Layers {
		f := probeFault{layer: n, part: engine.PartResidPost, m: l.Local, bound: bound, first: l.Local.first(bound.single.Value), source: true}
		if f.first >= 0 || over(l.Local.All.Ratio(), bound.pooled.Value) {
			x := f.finding(ev.Places.File, false)
			x.Metric = "local error over all positions"
			out = append(out, x)
		}
	}
	if len(out) > 0 {
		return fail("", out...)
	}
	return pass()
}

// updateHint reads the one figure that has a meaning of its own: a local error
// of exactly the update means that the row did not move.
func updateHint(m Measure) string {
	if m.Got > 0.999 && m.Got < 1.001 {
		return "; the row equals the one before: the layer contributed nothing, or the row is a copy"
	}
	return ""
}

// localOfAllPositions reports whether the local error of every layer is known from all
// positions.
func (ev *Evidence) localOfAllPositions() bool {
	if ev.ProbeProfile == nil {
		return false
	}
	for _, l := range ev.ProbeProfile.Layers {
		if !l.Local.measured() {
			return false
		}
	}
	return true
}

// outlying is a bound on what stands out from the other layers, whose source says what
// they have: the lower quartile of their ratios to the yardstick's errors. An engine that
// is nearer to the reference than the yardstick is not held to its own level, see
// localBound.
func outlying(b golden.Budget, c curve, value float64) golden.Budget {
	kappa := metric.Quantile(0.25, measured(c.local))
	b.Value = value
	b.Source += fmt.Sprintf("; that quartile is %.3g of the yardstick's errors", kappa)
	if !c.unknown && kappa < 1 {
		b.Source += ", and taken as 1"
	}
	return b
}

// localFindings holds the medians of the local ratios to the factor, and to
// what stands out.
func localFindings(c curve, f Factors, b Budgets) []Finding {
	bound := f.Median
	if v := localBound(c, f.Median.Value, b); v < bound.Value {
		if bound = b.Outlier; c.unknown {
			bound = b.OutlierUnknown
		}
		bound = outlying(bound, c, v)
	}
	return medianFindings(c.local, bound, 1, "local error over the yardstick's, median over the cases")
}
