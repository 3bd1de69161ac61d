package conformance

import (
	"fmt"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// residualGolden holds the reference engine to what a trusted one recorded.
func residualGolden() *Check {
	faults := []Control{
		{Mutant: "post-norm-last-row", Side: SideReference, Layer: -1, Floor: 10},
		{Mutant: "first-token-embedding", Side: SideReference, Layer: -1, Floor: 10},
		{Mutant: "decode-position-shift", Side: SideReference, Layer: -1, Floor: 10},
		{Mutant: "shifted-index", Side: SideReference, Layer: -1, Floor: 10},
		// Where the rows are smallest, an epsilon is largest.
		{Mutant: "norm-eps", Side: SideReference, Layer: 0, Floor: 10},
	}
	for _, name := range []string{
		"rope-base", "q-position-off-by-one", "q-bias-missing", "norm-gain-ones", "gate-up-swapped",
		"kv-heads-swapped", "layer-skipped", "layers-swapped", "stale-cache-row",
	} {
		faults = append(faults, Control{Mutant: name, Side: SideReference, Layer: 11, Floor: 10})
	}
	return &Check{
		ID: "ResidualGolden",
		Rule: "every row of the reference matches the row that was recorded for the prompt, " +
			"within a small multiple of what float32 strays from float64",
		Catches: []string{
			"any deviation of the reference engine from the model, a wrong norm epsilon included, which int8 rows can't show",
		},
		Level:    Extended,
		Sides:    []Side{SideReference},
		Needs:    NeedRows | NeedGolden,
		Bounds:   []string{"Golden", "GoldenPlain"},
		Controls: faults,
		Judge:    judgeResidualGolden,
	}
}

func judgeResidualGolden(ev *Evidence, side Side) Outcome {
	c := ev.capture(side)
	if c == nil || ev.Golden == nil {
		return skip("no golden was recorded for this case")
	}
	if len(ev.Golden) != len(c.Rows) || len(ev.GoldenFloor) != len(c.Rows) {
		return fail(KindFormat, Finding{Metric: "rows", Got: Number(len(c.Rows)),
			Limit: Limit{Number(len(ev.Golden)), "the golden"}, At: Nowhere,
			Detail: fmt.Sprintf("the golden has %d rows and %d floors", len(ev.Golden), len(ev.GoldenFloor))})
	}
	b := ev.goldenBudget(ev.GoldenPlain)
	var fs []Finding
	for i, want := range ev.Golden {
		if len(want) != len(c.Rows[i]) {
			return fail(KindFormat, Finding{Probe: engine.RowProbe(i), Metric: "width", Got: Number(len(c.Rows[i])),
				Limit: Limit{Number(len(want)), "the golden"}, At: AtRow(i)})
		}
		fs = append(fs, Finding{Probe: engine.RowProbe(i), Metric: "relative L2", At: AtRow(i),
			Got:   Number(metric.RelativeL2(c.Rows[i], want)),
			Limit: Limit{Number(b.Value * max(ev.GoldenFloor[i], roundingOf("float32"))), b.Describe()}})
	}
	return bounded(fs)
}

// goldenBudget bounds the reference against a golden; plain is true where the
// golden recorded no error of its own.
func (ev *Evidence) goldenBudget(plain bool) golden.Budget {
	if plain {
		return ev.Budgets.GoldenPlain
	}
	return ev.Budgets.Golden
}
