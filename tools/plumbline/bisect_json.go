package main

import (
	"errors"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden/metric"
	"github.com/plumbline-go/plumbline/tools/internal/bisect"
)

type num = conformance.Number

// bisectJSON is the object that bisect --json prints: the verdict's fields, with
// the figures in each case.
type bisectJSON struct {
	conformance.Report
	Cases          map[string]bisectCaseJSON   `json:"cases"`
	Groups         []groupJSON                 `json:"groups"`
	ResolvingPower map[bisect.Side]summaryJSON `json:"resolving_power,omitempty"`
}

type bisectCaseJSON struct {
	conformance.CaseVerdict
	Group string    `json:"group,omitempty"`
	Rows  []rowJSON `json:"rows,omitempty"`
}

type rowJSON struct {
	Row        int  `json:"row"`
	Spearman   num  `json:"spearman"`
	PearsonZ   num  `json:"pearson_z"`
	MaxZDiff   num  `json:"max_z_diff"`
	RelativeL2 num  `json:"relative_l2"`
	NormRatio  num  `json:"norm_ratio"`
	LocalError *num `json:"local_error,omitempty"`
}

type summaryJSON struct {
	N      int `json:"n"`
	Min    num `json:"min"`
	Median num `json:"median"`
	P95    num `json:"p95"`
	Max    num `json:"max"`
	Mean   num `json:"mean"`
}

type groupJSON struct {
	Name  string `json:"name"`
	Cases int    `json:"cases"`
	summaryJSON
	RowMeans []num `json:"row_means"`
	// Medians, null for a row that can't have the figure.
	RelativeL2    *num   `json:"relative_l2"`
	RowRelativeL2 []*num `json:"row_relative_l2"`
	LocalError    *num   `json:"local_error,omitempty"`
	RowLocalError []*num `json:"row_local_error,omitempty"`
}

func (b *bisection) json(reproduce string) *bisectJSON {
	out := &bisectJSON{Report: *b.verdict(), Cases: map[string]bisectCaseJSON{}, Groups: []groupJSON{}}
	out.Reproduce = reproduce
	groupOf := b.groupOf()
	for i := range b.cases {
		c := &b.cases[i]
		j := bisectCaseJSON{CaseVerdict: b.caseVerdict(c), Group: groupOf[c.Name]}
		for _, r := range c.Rows {
			row := rowJSON{Row: r.Index, Spearman: num(r.Spearman), PearsonZ: num(r.Pearson),
				MaxZDiff: num(r.MaxZDiff), RelativeL2: num(r.RelativeL2), NormRatio: num(r.NormRatio)}
			if x, ok := b.localError(c, r); ok {
				row.LocalError = new(num)
				*row.LocalError = num(x)
			}
			j.Rows = append(j.Rows, row)
		}
		out.Cases[c.Name] = j
	}
	for i, g := range b.summary {
		j := groupJSON{Name: g.Name, Cases: g.Cases, summaryJSON: summaryOf(g.Summary), RowMeans: []num{}}
		for _, m := range g.RowMeans {
			j.RowMeans = append(j.RowMeans, num(m))
		}
		j.RelativeL2, j.RowRelativeL2 = mediansJSON(b.relativeL2[i])
		if b.judged != nil {
			j.LocalError, j.RowLocalError = mediansJSON(b.localErrors[i])
		}
		out.Groups = append(out.Groups, j)
	}
	for _, r := range b.repeats {
		if out.ResolvingPower == nil {
			out.ResolvingPower = map[bisect.Side]summaryJSON{}
		}
		out.ResolvingPower[r.Side] = summaryOf(bisect.Summarise(bisect.MaxZDiffs(r.Cases)))
	}
	return out
}

// noBisection prints the JSON object for a candidate's folder that can't be
// compared as a whole, and returns err. Where err is the run's own fault, there
// is no object, as with gate.
func (a *app) noBisection(folder string, reference engine.Info, err error) error {
	var e *exitError
	if !a.json || !errors.As(err, &e) {
		return err
	}
	b := &bisection{reference: reference}
	if side, readErr := dumpfmt.ReadEngineFile(folder); readErr == nil {
		b.candidate = infoOfFile(side)
	}
	out := b.json(a.commandLine())
	if e.code == exitFails {
		kind := conformance.KindFormat
		out.Conclusion, out.Kind = conformance.Fails, &kind
	}
	out.Notes = append(out.Notes, err.Error())
	if failed := a.emitJSON(out); failed != nil {
		return failed
	}
	return err
}

func summaryOf(s bisect.Summary) summaryJSON {
	return summaryJSON{N: s.N, Min: num(s.Min), Median: num(s.Median), P95: num(s.P95), Max: num(s.Max), Mean: num(s.Mean)}
}

func mediansJSON(g bisect.GroupMedians) (all *num, rows []*num) {
	value := func(m bisect.Median) *num {
		if m.N == 0 {
			return nil
		}
		x := num(m.Value)
		return &x
	}
	rows = []*num{}
	for _, m := range g.Rows {
		rows = append(rows, value(m))
	}
	return value(g.All), rows
}

func (b *bisection) groupOf() map[string]string {
	out := map[string]string{}
	for _, g := range b.groups {
		for _, c := range g.Cases {
			out[c] = g.Name
		}
	}
	return out
}

// noModel is what figures without a model can't show.
const noModel = "no model was given: these figures have no bound, and an inherited error isn't told from an introduced one"

// measuredOnly is the outcome without a model.
const measuredOnly = "measured only: no model, so nothing was judged"

// verdict is the model's, or what can be said without one: that a candidate's
// file is broken or of something else, or that a row is one that no engine may
// produce.
func (b *bisection) verdict() *conformance.Report {
	if b.judged != nil {
		return b.judged.report
	}
	r := &conformance.Report{SchemaVersion: conformance.SchemaVersion, Conclusion: conformance.NothingJudged,
		Power: []string{noModel}, Sources: []engine.Probe{}, Tool: conformance.Tool(), About: []conformance.CheckInfo{}, Checks: []conformance.Result{},
		Candidate: b.candidate, Reference: b.reference}
	fail := func(kind conformance.Kind) {
		r.Conclusion = conformance.Fails
		if r.Kind == nil || *r.Kind != conformance.KindDump {
			r.Kind = &kind
		}
	}
	for i := range b.cases {
		c := &b.cases[i]
		if f := faultOf(c.Err); f != nil && f.Side == bisect.Candidate {
			if f.Kind == bisect.Provenance {
				fail(conformance.KindProvenance)
			} else {
				fail(conformance.KindFormat)
			}
		}
		if row := firstBroken(c.Rows, bisect.Candidate); row >= 0 {
			fail(conformance.KindDump)
			if r.FirstBadRow == nil || row < *r.FirstBadRow {
				r.FirstBadRow = &row
			}
		}
	}
	return r
}

func (b *bisection) caseVerdict(c *bisect.Case) conformance.CaseVerdict {
	if b.judged != nil {
		if v, ok := b.judged.report.Cases[c.Name]; ok {
			return v
		}
	}
	v := conformance.CaseVerdict{Reason: c.Skipped}
	if c.Err != nil {
		v.Reason = c.Err.Error()
		if f := faultOf(c.Err); f != nil {
			v.File = f.File
		}
	}
	if c.Compared() && b.judged == nil {
		v.Reason = measuredOnly
	}
	if row := firstBroken(c.Rows, bisect.Candidate); row >= 0 {
		v.FirstBadRow, v.Judged, v.Reason = &row, true, "the row is "+c.Rows[row].CandidateClass.Kind.String()
	}
	return v
}

// firstBroken is the first row that is the side's own fault, or -1. NaN and
// infinities always are; a constant row is the candidate's fault only where the
// reference's isn't constant too.
func firstBroken(rows []bisect.Row, side bisect.Side) int {
	for i, r := range rows {
		class, other := r.CandidateClass, r.ReferenceClass
		if side == bisect.Reference {
			if r.ReferenceClass.Kind == metric.NonFinite {
				return i
			}
			continue
		}
		if class.Kind == metric.NonFinite || class.Degenerate() && !other.Degenerate() {
			return i
		}
	}
	return -1
}
