package conformance

import (
	"fmt"
	"math"
	"slices"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// lastTokenEmbed holds row 0 to the embedding of the last prompt token.
func lastTokenEmbed() *Check {
	return &Check{
		ID: "LastTokenEmbed",
		Rule: "row 0 is the embedding row of the LAST prompt token: bit for bit in a float capture, " +
			"within the roundings of row and table in an int8 one",
		Catches: []string{"a capture of the first token", "an off-by-one in the token that is captured"},
		Level:   Extended,
		Sides:   []Side{SideReference, SideCandidate},
		Needs:   NeedRows,
		Bounds:  []string{"EmbedCodes", "EmbedNear"},
		Basis:   "exact in a float capture: the bits of the table's row",
		Controls: []Control{
			{Mutant: "first-token-embedding", Side: SideReference, Layer: -1, Kind: KindInput},
			{Mutant: "first-token-embedding", Side: SideCandidate, Layer: -1, Kind: KindInput, Floor: 2},
		},
		Judge: judgeLastTokenEmbed,
	}
}

func judgeLastTokenEmbed(ev *Evidence, side Side) Outcome {
	c := ev.capture(side)
	if c == nil {
		if side == SideCandidate {
			return notOffered(ev)
		}
		return skip("the reference was not run")
	}
	if len(c.Rows) == 0 || len(c.Rows[0]) != len(ev.LastEmbedding) {
		return skip("the capture has the wrong shape")
	}
	ids := ev.Case.TokenIDs
	if ids[0] == ids[len(ids)-1] || slices.Equal(ev.FirstEmbedding, ev.LastEmbedding) {
		return skip("first and last token agree: the case has no power here")
	}
	if c.Steps[0] > 0 {
		return embedWithinRounding(ev, c)
	}
	if side == SideCandidate && !arithmeticOf(ev.Declared).float {
		return embedByDirection(ev, c)
	}
	if ch, same := sameBits(c.Rows[0], ev.LastEmbedding); !same {
		return fail(KindInput, Finding{Probe: engine.ProbeEmbed, Exact: true, Metric: "bits", Got: Number(c.Rows[0][ch]),
			Limit: Limit{Number(ev.LastEmbedding[ch]), "the embedding table, row of the last token"},
			At:    At{Row: 0, Channel: ch, File: c.File}, Detail: firstTokenHint(ev, c)})
	}
	return pass()
}

// embedWithinRounding bounds each channel of an int8 row 0. The row is rounded
// once (half its step) and the table was rounded before (half the step of the
// coarsest int8 table, one scale for all of it).
func embedWithinRounding(ev *Evidence, c *Capture) Outcome {
	half := ev.Budgets.EmbedCodes.Value
	table := ev.TableMax / 127
	limit := golden.Of(half*(c.Steps[0]+table), 1, ev.Budgets.EmbedCodes.Source, ev.Budgets.EmbedCodes.Why)
	worst, at := 0.0, 0
	for i, x := range c.Rows[0] {
		if d := math.Abs(x - ev.LastEmbedding[i]); !(d <= worst) {
			worst, at = d, i
		}
	}
	if !limit.Holds(worst) {
		return fail(KindInput, Finding{Probe: engine.ProbeEmbed, Metric: "max abs difference", Got: Number(worst),
			Limit: Limit{Number(limit.Value), limit.Source},
			At:    At{Row: 0, Channel: at, File: c.File}, Detail: firstTokenHint(ev, c)})
	}
	return pass()
}

// embedByDirection judges a float row 0 of an engine whose table is stored in a
// precision that it does not describe exactly: a share of the distance between
// the two tokens' rows separates them whatever the table's precision.
func embedByDirection(ev *Evidence, c *Capture) Outcome {
	got := distance(c.Rows[0], ev.LastEmbedding)
	limit := ev.Budgets.EmbedNear.Value * distance(ev.FirstEmbedding, ev.LastEmbedding)
	if !(got <= limit) {
		return fail(KindInput, Finding{Probe: engine.ProbeEmbed, Metric: "distance", Got: Number(got),
			Limit: Limit{Number(limit), "of the distance between the first and the last token's embedding"},
			At:    At{Row: 0, Channel: -1, File: c.File}, Detail: firstTokenHint(ev, c)})
	}
	return pass()
}

func firstTokenHint(ev *Evidence, c *Capture) string {
	if metric.RelativeL2(c.Rows[0], ev.FirstEmbedding) < metric.RelativeL2(c.Rows[0], ev.LastEmbedding) {
		return fmt.Sprintf("row 0 is nearer to the embedding of the first token (%d) than of the last (%d)",
			ev.Case.TokenIDs[0], ev.Case.TokenIDs[len(ev.Case.TokenIDs)-1])
	}
	return fmt.Sprintf("row 0 is not the embedding of token %d", ev.Case.TokenIDs[len(ev.Case.TokenIDs)-1])
}
