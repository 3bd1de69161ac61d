package conformance

// noVacuousPass holds the run to have judged something.
func noVacuousPass() *Check {
	return &Check{
		ID:   "NoVacuousPass",
		Rule: "an empty, all-unsupported or all-NaN candidate never conforms: at least one case has rows or logits that were judged by value",
		Catches: []string{
			"0 of 0 reported as passed", "every case skipped", "NaN compared as within tolerance",
		},
		Level: Provisional, // it guards the suite; the conclusion has its own rule
		Sides: []Side{SideSuite},
		Needs: NeedRows | NeedProfile | NeedLogits,
		Controls: []Control{
			{Mutant: "answers-nothing", Side: SideSuite, Layer: -1},
			{Mutant: "all-nan", Side: SideSuite, Layer: -1},
			{Mutant: "no-cases", Side: SideSuite, Layer: -1},
		},
		Across: func(run *RunEvidence) *Outcome {
			for _, ev := range run.Cases {
				if (ev.Profile != nil || ev.Logits != nil) && ev.CandidateErr == nil {
					o := pass()
					return &o
				}
			}
			o := fail("", Finding{Metric: "cases judged by value", Got: 0, Limit: Limit{1, "something must be judged"}, At: Nowhere})
			return &o
		},
	}
}
