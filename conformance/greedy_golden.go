package conformance

import (
	"fmt"
	"math"

	"github.com/plumbline-go/plumbline/engine"
)

// greedyGolden holds the reference's tokens to the recorded ones.
func greedyGolden() *Check {
	return &Check{
		ID: "GreedyGolden",
		Rule: "along the recorded tokens, the reference picks the recorded token at every step whose recorded margin is above the tie band; " +
			"a step within the band is counted, not judged",
		Catches:  []string{"another token where the model is sure"},
		Level:    Extended,
		Sides:    []Side{SideReference},
		Needs:    NeedDecode,
		Bounds:   []string{"Golden", "GoldenPlain"},
		Basis:    "the tie band is sqrt 2 standard deviations of the row times the bound on its error",
		Controls: []Control{{Mutant: "flipped-clear-call", Side: SideReference, Layer: -1, Floor: 10}},
		Judge:    judgeGreedyGolden,
	}
}

// tieBand is the largest regret of a tie between two float32 engines.
func tieBand(ev *Evidence, r GoldenRow) (band float64, source string) {
	b := ev.goldenBudget(ev.Decode.Plain)
	// Two logits, each off by the error of the row.
	return math.Sqrt2 * b.Value * max(r.Floor, roundingOf("float32")) * r.Sigma, "the tie band: sqrt 2 standard deviations of the row times " + b.Describe()
}

func judgeGreedyGolden(ev *Evidence, _ Side) Outcome {
	if ev.Decode == nil || ev.Decode.Golden == nil {
		return skip("no golden logits were recorded for this case")
	}
	var failed []Finding
	judged := 0
	for i, r := range ev.Decode.Golden {
		band, source := tieBand(ev, r)
		if r.Margin > band {
			judged++
		}
		if r.Pick != r.Token && over(r.Regret, band) {
			failed = append(failed, Finding{Probe: engine.ProbeLogits, Metric: "regret in nats", Got: Number(r.Regret), Limit: Limit{Number(band), source},
				At: AtStep(i, ""), Detail: fmt.Sprintf("picks %d where the golden picks %d by %.3g", r.Pick, r.Token, r.Margin)})
		}
	}
	switch {
	case len(failed) > 0:
		return fail("", failed...)
	case judged == 0:
		return skip("every margin is within the tie band: the case has no power here")
	}
	return pass()
}
