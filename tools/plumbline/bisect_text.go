package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden/metric"
	"github.com/plumbline-go/plumbline/tools/internal/bisect"
)

func (a *app) showBisection(b *bisection) error {
	return a.show(b.json(a.commandLine()), func(w io.Writer) {
		groupOf := b.groupOf()
		for i := range b.cases {
			printCase(w, b, &b.cases[i], groupOf[b.cases[i].Name])
		}
		printGroups(w, b)
		printRows(w, b)
		printRepeats(w, b)
		printVerdict(w, b)
	})
}

func printCase(w io.Writer, b *bisection, c *bisect.Case, group string) {
	fmt.Fprintf(w, "case %s", dumpfmt.Printable(c.Name))
	if group != "" && group != bisect.AllGroup {
		fmt.Fprintf(w, ", group %s", dumpfmt.Printable(group))
	}
	if c.Prompt != "" {
		fmt.Fprintf(w, ": %q", c.Prompt)
	}
	fmt.Fprintln(w)
	switch {
	case c.Err != nil:
		fmt.Fprintf(w, "  not compared: %s\n\n", dumpfmt.Printable(c.Err.Error()))
		return
	case c.Skipped != "":
		fmt.Fprintf(w, "  not compared: %s\n\n", dumpfmt.Printable(c.Skipped))
		return
	}
	heads := []string{"row", "probe", "spearman", "z-pearson", "max|dz|", "rel L2", "norm ratio"}
	if b.judged != nil {
		heads = append(heads, "local err", "local/yard", "accum/yard")
	}
	t := newTable(heads...).alignLeft(1)
	first, depth := b.caseVerdict(c).FirstBadRow, b.depth(c.Name)
	for _, r := range c.Rows {
		cells := []string{strconv.Itoa(r.Index), string(engine.RowProbe(r.Index)), fixed(r.Spearman, 4), fixed(r.Pearson, 4),
			fixed(r.MaxZDiff, 4), scientific(r.RelativeL2), fixed(r.NormRatio, 4)}
		if b.judged != nil {
			cells = append(cells, depthCells(depth, r.Index)...)
		}
		t.add(rowNote(r, first != nil && *first == r.Index), cells...)
	}
	t.print(w)
	fmt.Fprintln(w)
}

// none is the cell of a figure that a row can't have, which NaN isn't.
const none = "-"

func depthCells(depth []conformance.DepthRow, row int) []string {
	if row >= len(depth) {
		return []string{none, none, none}
	}
	d := depth[row]
	local, ratio := none, none
	if d.Local != nil {
		local = scientific(float64(*d.Local))
	}
	if d.LocalRatio != nil {
		ratio = fixed(float64(*d.LocalRatio), 2)
	}
	return []string{local, ratio, fixed(float64(d.AccumulatedRatio), 2)}
}

// rowNote marks the first bad row of a case and says why figures are NaN.
func rowNote(r bisect.Row, firstBad bool) string {
	var notes []string
	if firstBad {
		notes = append(notes, "first bad row")
	}
	for _, s := range []struct {
		side  bisect.Side
		class metric.Class
	}{{bisect.Candidate, r.CandidateClass}, {bisect.Reference, r.ReferenceClass}} {
		if !s.class.Degenerate() {
			continue
		}
		note := fmt.Sprintf("%s row is %s", s.side, s.class.Kind)
		if s.class.Kind == metric.NonFinite {
			note += fmt.Sprintf(" (%v at channel %d)", s.class.Value, s.class.Index)
		}
		notes = append(notes, note)
	}
	if len(notes) == 0 {
		return ""
	}
	return "  <- " + strings.Join(notes, "; ")
}

func printRepeats(w io.Writer, b *bisection) {
	fmt.Fprintln(w, "\nresolving power, max|dz| between two runs of one side")
	if len(b.repeats) == 0 {
		fmt.Fprintln(w, "  unknown: no repeat run was given (--ref-repeat, --cand-repeat)")
		return
	}
	t := newTable("side", "n", "min", "median", "p95", "max", "mean").alignLeft(0)
	for _, r := range b.repeats {
		s := bisect.Summarise(bisect.MaxZDiffs(r.Cases))
		cells := []string{string(r.Side), strconv.Itoa(s.N)}
		for _, x := range []float64{s.Min, s.Median, s.P95, s.Max, s.Mean} {
			cells = append(cells, fixed(x, 6))
		}
		t.add("", cells...)
	}
	t.print(w)
	for _, r := range b.repeats {
		for _, c := range r.Cases {
			if c.Err != nil {
				fmt.Fprintf(w, "  %s %s: not compared: %s\n", r.Side, dumpfmt.Printable(c.Name), dumpfmt.Printable(repeatFault(c.Err)))
			}
		}
	}
}

// repeatFault words a fault between two runs of one side, where the sides that
// the fault itself names have no meaning.
func repeatFault(err error) string {
	f := faultOf(err)
	switch {
	case f == nil:
		return err.Error()
	case f.Kind == bisect.Missing:
		return "the second run has no such case"
	case f.Kind == bisect.Provenance:
		return fmt.Sprintf("%s: %s: got %s, want %s", dumpfmt.Printable(f.File), f.Field, f.Got, f.Want)
	case f.Row >= 0:
		return fmt.Sprintf("row %d: %v", f.Row, f.Err)
	}
	return f.Err.Error()
}

func printVerdict(w io.Writer, b *bisection) {
	v := b.verdict()
	compared, rows := 0, 0
	for i := range b.cases {
		if b.cases[i].Compared() {
			compared++
			rows += len(b.cases[i].Rows)
		}
	}
	fmt.Fprintf(w, "\n%d of %d cases compared, %d rows\n", compared, len(b.cases), rows)
	if b.judged == nil && compared > 0 && v.Conclusion == conformance.NothingJudged {
		fmt.Fprint(w, measuredOnly)
	} else {
		fmt.Fprintf(w, "conclusion: %s", v.Conclusion)
	}
	if v.Kind != nil {
		fmt.Fprintf(w, ", kind %s", *v.Kind)
	}
	if v.FirstBadRow != nil {
		fmt.Fprintf(w, ", first bad row %d (%s)", *v.FirstBadRow, engine.RowProbe(*v.FirstBadRow))
	}
	if v.Source != nil {
		fmt.Fprintf(w, ", source %s", *v.Source)
	}
	fmt.Fprintln(w)
	for _, p := range v.Power {
		printLine(w, "power: %s", p)
	}
}
