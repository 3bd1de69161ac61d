package conformance

import (
	"fmt"

	"github.com/plumbline-go/plumbline/engine"
)

// interiorRowOracle holds every captured row to a second composition of the
// same arithmetic.
func interiorRowOracle() *Check {
	return &Check{
		ID: "InteriorRowOracle",
		Rule: "every row of the per-layer capture is bit-identical to the row of a whole-step graph " +
			"that shares no capture code",
		Catches: []string{"a row captured from the step before", "a capture index shifted by one", "two rows sharing one buffer"},
		Level:   Extended,
		Sides:   []Side{SideReference},
		Needs:   NeedRows | NeedWholeStep,
		Basis:   "exact: bits",
		Controls: []Control{
			{Mutant: "stale-row", Side: SideReference, Layer: 7, Kind: KindDump},
			{Mutant: "shifted-index", Side: SideReference, Layer: -1},
			{Mutant: "aliased-row", Side: SideReference, Layer: 7, Kind: KindDump},
		},
		Judge: judgeInteriorRows,
	}
}

func judgeInteriorRows(ev *Evidence, side Side) Outcome {
	c := ev.capture(side)
	if c == nil || ev.WholeStep == nil {
		return skip("the whole-step graph was not run")
	}
	if len(c.Rows) != len(ev.WholeStep) {
		return fail(KindFormat, Finding{Metric: "rows", Got: Number(len(c.Rows)),
			Limit: Limit{Number(len(ev.WholeStep)), "the whole-step graph"}, At: Nowhere})
	}
	for i, want := range ev.WholeStep {
		if ch, same := sameBits(c.Rows[i], want); !same {
			var got, exp Number
			if ch < len(c.Rows[i]) && ch < len(want) {
				got, exp = Number(c.Rows[i][ch]), Number(want[ch])
			}
			return fail(KindDump, Finding{Probe: engine.RowProbe(i), Exact: true, Metric: "bits", Got: got,
				Limit: Limit{exp, "the whole-step graph"}, At: At{Row: i, Channel: ch},
				Detail: fmt.Sprintf("row %d differs between the two compositions: wrong module, wrong index, stale or aliased", i)})
		}
	}
	return pass()
}
