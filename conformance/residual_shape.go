package conformance

import (
	"fmt"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// residualShape is the check of form and provenance, before any value.
func residualShape() *Check {
	return &Check{
		ID: "ResidualShape",
		Rule: "a residual capture has layers+1 rows of the hidden size, the fingerprint of its own prompt, " +
			"capture mode 1, and rows that are finite, not degenerate and in order",
		Catches: []string{
			"a dump of another prompt or model", "a capture that skipped a row", "rows pushed in the wrong order",
			"a batched capture (mode other than 1)", "NaN compared as equal",
		},
		Level:  Core,
		Sides:  []Side{SideReference, SideCandidate},
		Needs:  NeedRows | NeedWholeStep,
		Bounds: []string{"Nearer"},
		Basis:  "exact: rows, width, fingerprint and capture mode; a row counts as out of order when it is nearer to another row's place",
		Controls: []Control{
			{Mutant: "row-short", Side: SideCandidate, Layer: -1, Kind: KindFormat},
			{Mutant: "rows-swapped", Side: SideCandidate, Layer: 9, Kind: KindDump},
			{Mutant: "another-prompt", Side: SideCandidate, Layer: -1, Kind: KindProvenance},
			{Mutant: "capture-mode-2", Side: SideCandidate, Layer: -1, Kind: KindFormat},
			{Mutant: "wrong-width", Side: SideCandidate, Layer: -1, Kind: KindFormat},
			{Mutant: "zero-rows", Side: SideCandidate, Layer: -1, Kind: KindFormat},
			{Mutant: "nan-row", Side: SideCandidate, Layer: 11, Kind: KindDump},
			{Mutant: "zero-row", Side: SideCandidate, Layer: 11, Kind: KindDump},
			{Mutant: "constant-row", Side: SideCandidate, Layer: 11, Kind: KindDump},
			{Mutant: "row-short", Side: SideReference, Layer: -1, Kind: KindFormat},
			{Mutant: "rows-swapped", Side: SideReference, Layer: 9, Kind: KindDump},
		},
		Judge: judgeShape,
	}
}

func judgeShape(ev *Evidence, side Side) Outcome {
	h, ok := ev.header(side)
	if !ok {
		if side == SideCandidate {
			return notOffered(ev)
		}
		return skip("the reference was not run")
	}
	file := ev.layersFile(side)
	exact := func(metric string, got, want float64, detail string) Finding {
		return Finding{Exact: true, Metric: metric, Got: Number(got), Limit: Limit{Number(want), "the model and the prompt"},
			At: At{Row: -1, Channel: -1, File: file}, Detail: detail}
	}
	if h.Rows != ev.Arch.Layers+1 {
		return fail(KindFormat, exact("rows", float64(h.Rows), float64(ev.Arch.Layers+1), "layers + 1 rows are expected"))
	}
	if h.Width != ev.Arch.Hidden {
		return fail(KindFormat, exact("width", float64(h.Width), float64(ev.Arch.Hidden), "the hidden size is expected"))
	}
	if want := dumpfmt.Fingerprint(ev.Case.Text); h.Fingerprint != want {
		return fail(KindProvenance, exact("fingerprint", float64(h.Fingerprint), float64(want),
			fmt.Sprintf("the dump belongs to another prompt: fingerprint got 0x%016X, want 0x%016X", h.Fingerprint, want)))
	}
	if h.Mode != engine.CaptureModeIncremental {
		return fail(KindFormat, exact("capture mode", float64(h.Mode), engine.CaptureModeIncremental,
			"only token-by-token captures can be compared"))
	}
	c := ev.capture(side)
	if c == nil {
		return Outcome{Status: Error, Reason: "the rows could not be read"}
	}
	var ref [][]float64
	if side == SideCandidate && ev.Reference != nil {
		ref = ev.Reference.Rows
	}
	if row, what := badRowAgainst(c.Rows, ref); row >= 0 {
		cls := metric.Classify(c.Rows[row])
		at, value := cls.Index, cls.Value
		if !cls.Degenerate() {
			at = beyondFloat32(c.Rows[row])
			value = c.Rows[row][at]
		}
		return fail(KindDump, Finding{Probe: engine.RowProbe(row), Metric: "degenerate", Got: Number(value),
			Limit:  Limit{0, "a row must be finite and carry information"},
			At:     At{Row: row, Channel: at, File: file},
			Detail: fmt.Sprintf("row %d is %s", row, what)})
	}
	against := ev.orderReference(side)
	if against == nil {
		return pass()
	}
	if i, j, swapped := swappedRows(c.Rows, against, ev.Budgets.Nearer.Value); swapped {
		return fail(KindDump, Finding{Probe: engine.RowProbe(i), Metric: "row order", Got: Number(j), Limit: Limit{Number(i), "rows come in depth order"},
			At: At{Row: i, Channel: -1, File: file}, Detail: fmt.Sprintf("rows %d and %d are exchanged", i, j)})
	}
	return pass()
}

// orderReference is what a capture's row order is held against: the
// reference's rows for a candidate, its second composition for the reference.
func (ev *Evidence) orderReference(side Side) [][]float64 {
	if side == SideReference {
		return ev.WholeStep
	}
	if ev.Reference == nil {
		return nil
	}
	return ev.Reference.Rows
}

// swappedRows finds two rows that stand in each other's place: each is much
// nearer to the other's reference row than to its own.
func swappedRows(rows, ref [][]float64, nearer float64) (i, j int, swapped bool) {
	if len(rows) != len(ref) {
		return 0, 0, false
	}
	for i := range rows {
		own := distance(rows[i], ref[i])
		for j := i + 1; j < len(rows); j++ {
			if distance(rows[i], ref[j]) < nearer*own &&
				distance(rows[j], ref[i]) < nearer*distance(rows[j], ref[j]) {
				return i, j, true
			}
		}
	}
	return 0, 0, false
}

// badRowOf is the candidate's first degenerate row that the reference does not
// share.
func badRowOf(ev *Evidence) (row int, what string) {
	var ref [][]float64
	if ev.Reference != nil {
		ref = ev.Reference.Rows
	}
	return badRowAgainst(ev.Candidate.Rows, ref)
}

func badRowAgainst(rows, ref [][]float64) (row int, what string) {
	for i, r := range rows {
		cls := metric.Classify(r)
		if !cls.Degenerate() {
			if beyondFloat32(r) >= 0 {
				return i, "beyond what a float32 layer can take"
			}
			continue
		}
		if i < len(ref) && metric.Classify(ref[i]).Kind == cls.Kind && cls.Kind != metric.NonFinite {
			continue // e.g. the embedding of a padding token
		}
		return i, cls.Kind.String()
	}
	return -1, ""
}

const nothingOffered = "no layer dump in this case"

// notOffered is the outcome of a check on a candidate that gave no rows.
func notOffered(ev *Evidence) Outcome {
	if ev.CandidateErr != nil {
		return answerError(ev.CandidateErr)
	}
	return unsupported(nothingOffered)
}
