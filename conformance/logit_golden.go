package conformance

import (
	"fmt"

	"github.com/plumbline-go/plumbline/engine"
)

// logitGolden holds the reference's logits to the recorded ones.
func logitGolden() *Check {
	return &Check{
		ID: "LogitGolden",
		Rule: "along the recorded tokens, every row of the reference's logits matches the recorded row, " +
			"within a small multiple of what float32 strays from float64",
		Catches: []string{"a wrong final norm or head of the reference", "logits scaled by a temperature", "a bias on one id"},
		Level:   Extended,
		Sides:   []Side{SideReference},
		Needs:   NeedDecode,
		Bounds:  []string{"Golden", "GoldenPlain"},
		Controls: []Control{
			{Mutant: "temperature", Side: SideReference, Layer: -1, Floor: 10},
			{Mutant: "logit-row-permuted", Side: SideReference, Layer: -1, Floor: 10},
			{Mutant: "logit-bias", Side: SideReference, Layer: -1, Floor: 10},
			{Mutant: "final-norm-ones", Side: SideReference, Layer: -1, Floor: 10},
			{Mutant: "wrong-head", Side: SideReference, Layer: -1, Floor: 10},
			{Mutant: "decode-position-shift", Side: SideReference, Layer: -1, Floor: 10},
		},
		Judge: judgeLogitGolden,
	}
}

func judgeLogitGolden(ev *Evidence, _ Side) Outcome {
	if ev.Decode == nil || ev.Decode.Golden == nil {
		return skip("no golden logits were recorded for this case")
	}
	b := ev.goldenBudget(ev.Decode.Plain)
	var fs []Finding
	for i, r := range ev.Decode.Golden {
		fs = append(fs, Finding{Probe: engine.ProbeLogits, Metric: "relative L2 of the row without its mean", Got: Number(r.Error),
			Limit: Limit{Number(b.Value * max(r.Floor, roundingOf("float32"))), b.Describe()}, At: AtStep(i, ""),
			Detail: fmt.Sprintf("KL %.3g nats", r.KL)})
	}
	return bounded(fs)
}
