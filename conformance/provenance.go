package conformance

import "fmt"

// provenance holds goldens and fixtures to their manifest.
func provenance() *Check {
	return &Check{
		ID: "Provenance",
		Rule: "goldens, checkpoint, prompts and a teacher's plan match their manifest byte for byte; " +
			"an orphan golden or a case without one fails",
		Catches: []string{
			"a golden edited by hand", "a golden of another checkpoint", "a stale golden that nothing reads",
			"goldens made by the engine under test",
		},
		Level: Provisional, // it guards the suite
		Sides: []Side{SideSuite},
		Basis: "exact: SHA-256",
		Controls: []Control{
			{Mutant: "golden-bit-flipped", Side: SideSuite, Layer: -1},
			{Mutant: "golden-missing", Side: SideSuite, Layer: -1},
			{Mutant: "golden-orphan", Side: SideSuite, Layer: -1},
			{Mutant: "checkpoint-bit-flipped", Side: SideSuite, Layer: -1},
			{Mutant: "prompts-bit-flipped", Side: SideSuite, Layer: -1},
			{Mutant: "case-without-golden", Side: SideSuite, Layer: -1},
			{Mutant: "recorded-target-bit-flipped", Side: SideSuite, Layer: -1},
			{Mutant: "recorded-plan-bit-flipped", Side: SideSuite, Layer: -1},
			{Mutant: "recorded-routes-bit-flipped", Side: SideSuite, Layer: -1},
		},
		Across: judgeProvenance,
	}
}

func judgeProvenance(run *RunEvidence) *Outcome {
	if !run.HasGolden {
		o := skip("the run has no goldens with their inputs to hold to a manifest")
		return &o
	}
	var fs []Finding
	for _, p := range run.GoldenProblems {
		fs = append(fs, Finding{Metric: p.What, Got: 1, Limit: Limit{0, "the goldens' manifest"},
			At: At{Row: -1, Channel: -1, File: p.File}, Detail: p.Error()})
	}
	for _, name := range run.WithoutGolden {
		fs = append(fs, Finding{Metric: "goldens", Got: 0, Limit: Limit{1, "every case has a golden"}, At: Nowhere,
			Detail: fmt.Sprintf("case %s has no golden", name)})
	}
	o := pass()
	if len(fs) > 0 {
		o = fail("", fs...)
	}
	return &o
}
