package conformance

import (
	"fmt"
	"math"

	"github.com/plumbline-go/plumbline/engine"
)

// tieOverwriteBypass holds the last row of the capture to be the residual
// stream and not the hidden state after the final norm.
func tieOverwriteBypass() *Check {
	return &Check{
		ID: "TieOverwriteBypass",
		Rule: "the last row is not bit-identical to the model's own post-norm last hidden state from a separate run, " +
			"and its final norm is that state within one rounding",
		Catches: []string{"a capture by output_hidden_states, whose last entry is taken after the final norm"},
		Level:   Extended,
		Sides:   []Side{SideReference},
		Needs:   NeedRows | NeedLastHidden,
		Basis:   "exact: bits; the normed row may differ by one rounding of float32",
		Controls: []Control{
			{Mutant: "post-norm-last-row", Side: SideReference, Layer: -1, Kind: KindDump},
		},
		Judge: judgeTieOverwrite,
	}
}

func judgeTieOverwrite(ev *Evidence, side Side) Outcome {
	c := ev.capture(side)
	if c == nil || ev.LastHidden == nil {
		return skip("the reference's last hidden state was not computed")
	}
	last := len(c.Rows) - 1
	row := c.Rows[last]
	if _, same := sameBits(row, ev.LastHidden); same {
		return fail(KindDump, Finding{Probe: engine.RowProbe(last), Metric: "differing channels", Got: 0,
			Limit: Limit{1, "a row before the final norm differs from one after it"}, At: AtRow(last),
			Detail: "the last row is bit-identical to the model's own hidden state after the final norm"})
	}
	if len(ev.NormOfLast) != len(ev.LastHidden) {
		return fail(KindDump, Finding{Probe: engine.ProbeFinalNorm, Metric: "width", Got: Number(len(ev.NormOfLast)),
			Limit: Limit{Number(len(ev.LastHidden)), "the hidden size"}, At: AtRow(last)})
	}
	for i, want := range ev.LastHidden {
		// One rounding: a unit in the last place of the larger value.
		limit := 2 * ev.Rounding * math.Abs(want)
		if d := math.Abs(ev.NormOfLast[i] - want); !(d <= limit) {
			return fail(KindDump, Finding{Probe: engine.ProbeFinalNorm, Metric: "max abs difference", Got: Number(d),
				Limit: Limit{Number(limit), "one rounding"}, At: At{Row: last, Channel: i},
				Detail: fmt.Sprintf("the final norm of row %d is not the model's own last hidden state", last)})
		}
	}
	return pass()
}
