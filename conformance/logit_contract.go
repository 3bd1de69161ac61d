package conformance

import (
	"fmt"

	"github.com/plumbline-go/plumbline/engine"
)

// logitRowContract holds a logit dump to what its rows are said to be.
func logitRowContract() *Check {
	return &Check{
		ID: "LogitRowContract",
		Rule: "row i of the logits is the whole row before output token i was chosen: as many rows as tokens, no row twice, " +
			"and token i is the largest entry of row i, the lowest index where several are equal",
		Catches: []string{
			"rows stored one step too late", "a sampler that takes the last of equal logits",
			"logits dumped after temperature, penalties or masks chose another token",
			"rows of NaN, zeros or one repeated value",
		},
		Level: Core,
		Sides: []Side{SideCandidate, SideReference},
		Needs: NeedLogits | NeedDecode,
		Basis: "exact: counts, finite and differing rows, and the place of the largest entry",
		Controls: []Control{
			{Mutant: "logit-rows-shifted", Side: SideCandidate, Layer: -1, Kind: KindDump},
			{Mutant: "last-wins-ties", Side: SideCandidate, Layer: -1, Kind: KindDump},
			{Mutant: "logits-nan", Side: SideCandidate, Layer: -1, Kind: KindDump},
			{Mutant: "logits-constant", Side: SideCandidate, Layer: -1, Kind: KindDump},
			{Mutant: "last-position-logits-repeated", Side: SideCandidate, Layer: -1, Kind: KindDump},
			{Mutant: "logit-rows-shifted", Side: SideReference, Layer: -1, Kind: KindDump},
			{Mutant: "last-wins-ties", Side: SideReference, Layer: -1, Kind: KindDump},
		},
		Judge: judgeLogitRowContract,
	}
}

func judgeLogitRowContract(ev *Evidence, side Side) Outcome {
	f := ev.LogitForm
	if side == SideReference {
		if ev.Decode == nil {
			return skip("the reference was not decoded on this case")
		}
		f = ev.Decode.Form
	}
	if f == nil {
		return noLogitDump(ev)
	}
	if f.Rows == 0 && len(f.Told) == 0 {
		return skip("no token was decoded: the logit dump has no rows")
	}
	for i, what := range f.Degenerate {
		if what != "" {
			return fail(KindDump, Finding{Probe: engine.ProbeLogits, Metric: "entries that differ and are finite", Got: 0,
				Limit: Limit{1, "a row that chooses a token"}, At: AtStep(i, f.File), Detail: "the row is " + what})
		}
	}
	if f.Repeats > 0 {
		return fail(KindDump, Finding{Probe: engine.ProbeLogits, Metric: "values that differ from the row before", Got: 0,
			Limit: Limit{1, "another position gives another row"}, At: AtStep(f.Repeats, f.File), Detail: "the row is the one before it once more"})
	}
	if f.Told == nil {
		return unsupported("output_ids were not told: nothing to hold the rows to")
	}
	if len(f.Told) != f.Rows {
		return fail(KindDump, Finding{Probe: engine.ProbeLogits, Exact: true, Metric: "rows", Got: Number(f.Rows),
			Limit: Limit{Number(len(f.Told)), "the tokens that were chosen"}, At: At{Row: -1, Channel: -1, File: f.File}})
	}
	var out []Finding
	for i, id := range f.Told {
		if id != f.ArgMax[i] {
			out = append(out, Finding{Probe: engine.ProbeLogits, Exact: true, Metric: "token", Got: Number(id),
				Limit: Limit{Number(f.ArgMax[i]), "the largest entry of the row, lowest index"}, At: AtStep(i, f.File),
				Detail: shiftHint(f, i)})
		}
	}
	if len(out) > 0 {
		return fail(KindDump, out...)
	}
	return pass()
}

// shiftHint says when the rows fit the tokens one step away.
func shiftHint(f *LogitForm, first int) string {
	for _, by := range []int{1, -1} {
		fits, n := true, 0
		for i, id := range f.ArgMax {
			if j := i + by; j >= 0 && j < len(f.Told) {
				fits = fits && f.Told[j] == id
				n++
			}
		}
		if fits && n > 1 {
			return fmt.Sprintf("every row fits the token %d step(s) further on: the rows are shifted", by)
		}
	}
	if first > 0 {
		return fmt.Sprintf("the %d rows before fit", first)
	}
	return ""
}

// noLogitDump is the outcome of a check on a candidate that gave no logits.
func noLogitDump(ev *Evidence) Outcome {
	if ev.CandidateErr != nil {
		return answerError(ev.CandidateErr)
	}
	return unsupported(noLogitsOffered)
}

const noLogitsOffered = "no logit dump in this case"
