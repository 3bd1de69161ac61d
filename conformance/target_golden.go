package conformance

import (
	"fmt"
	"math"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden"
)

// targetGolden holds the reference to a teacher's target, row by row.
func targetGolden() *Check {
	return &Check{
		ID: "TargetGolden",
		Rule: "run through a teacher's plan in the target's arithmetic, the reference has the target's rows within a small multiple of what they stray from float64, " +
			"and chooses the same token wherever the target's margin is above the tie band; its greedy trajectories leave the recorded ones only at ties",
		Catches: []string{"a recurrent state that isn't carried", "a convolution whose state is one position late", "attention without its gate",
			"rows of another model", "a trajectory edited by hand, hashes included"},
		Level:  Extended,
		Sides:  []Side{SideReference},
		Needs:  NeedTargetRows,
		Bounds: []string{"Target", "TargetPlain"},
		Basis:  "the tie band is sqrt 2 standard deviations of the row times that, or two bfloat16 steps",
		Controls: []Control{
			{Mutant: "recurrent-state-stale", Side: SideReference, Layer: 2, Floor: 10},
			{Mutant: "conv-state-off-by-one", Side: SideReference, Layer: 5, Floor: 10},
			{Mutant: "attention-gate-missing", Side: SideReference, Layer: 3, Floor: 10},
			{Mutant: "beta-wrong-row", Side: SideReference, Layer: 0, Floor: 10},
			{Mutant: "trajectory-forged", Side: SideReference, Layer: -1, Floor: 10},
		},
		Across: acrossTargetGolden,
	}
}

func acrossTargetGolden(run *RunEvidence) *Outcome {
	ev := run.Teacher
	if ev == nil {
		return nil
	}
	if ev.NoRows != "" {
		o := skip(ev.NoRows)
		return &o
	}
	b := run.Budgets.Target
	if ev.RowsPlain {
		b = run.Budgets.TargetPlain
	}
	var fs []Finding
	for _, r := range ev.Rows {
		at := At{Row: -1, Channel: -1, Point: &r.Point, File: ev.targetFile}
		fs = append(fs, Finding{Probe: engine.ProbeLogits, Metric: "relative L2 of the row", Got: Number(r.Error),
			Limit: Limit{Number(b.Value * r.Floor), b.Describe()}, At: at, Detail: "example " + r.Example})
		if r.Pick != r.Token {
			fs = append(fs, Finding{Probe: engine.ProbeLogits, Metric: "regret in nats", Got: Number(r.Regret), Limit: targetTie(b, r.Floor, r.Sigma, r.Top), At: at,
				Detail: fmt.Sprintf("example %s: chooses %d where the target has %d", r.Example, r.Pick, r.Token)})
		}
	}
	for _, x := range ev.Flips {
		fs = append(fs, Finding{Probe: engine.ProbeLogits, Metric: "regret in nats of the trajectory", Got: Number(x.Regret), Limit: targetTie(b, x.Floor, x.Sigma, x.Top),
			At:     At{Row: -1, Channel: -1, Step: &x.Step, Point: &x.Point, File: ev.evidenceFile},
			Detail: fmt.Sprintf("example %s: chooses %d where %d is recorded", x.Example, x.Pick, x.Token)})
	}
	o := bounded(fs)
	return &o
}

// targetTie is the largest regret of a tie: of two logits that are each off by the
// error of the row, or that were rounded to bfloat16, half a step each, on both sides.
func targetTie(b golden.Budget, floor, sigma, top float64) Limit {
	band, source := math.Sqrt2*b.Value*floor*sigma, "the tie band: sqrt 2 standard deviations of the row times "+b.Describe()
	if steps := 2 * bfloat16Step(top); !(steps <= band) {
		band, source = steps, "the tie band: two bfloat16 steps at the row's largest logit"
	}
	return Limit{Number(band), source}
}
