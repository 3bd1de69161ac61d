package main

import (
	"fmt"
	"io"
	"math"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden/metric"
	"github.com/plumbline-go/plumbline/tools/internal/bisect"
)

func (a *app) showBisection(b *bisection) error {
	return a.show(b.json(a.commandLine()), func(w io.Writer) {
		groupOf := b.groupOf()
		for i := range b.cases {
			printCase(w, &b.cases[i], groupOf[b.cases[i].Name], b.local(b.cases[i].Name))
		}
		printGroups(w, b)
		printRepeats(w, b)
		printVerdict(w, b)
	})
}

func printCase(w io.Writer, c *bisect.Case, group string, local []float64) {
	fmt.Fprintf(w, "case %s", c.Name)
	if group != "" && group != bisect.AllGroup {
		fmt.Fprintf(w, ", group %s", group)
	}
	if c.Prompt != "" {
		fmt.Fprintf(w, ": %q", c.Prompt)
	}
	fmt.Fprintln(w)
	switch {
	case c.Err != nil:
		fmt.Fprintf(w, "  not compared: %v\n\n", c.Err)
		return
	case c.Skipped != "":
		fmt.Fprintf(w, "  not compared: %s\n\n", c.Skipped)
		return
	}
	fmt.Fprintf(w, "  %3s  %-22s %9s %9s %9s %9s %10s", "row", "probe", "spearman", "z-pearson", "max|dz|", "rel L2", "norm ratio")
	if local != nil {
		fmt.Fprintf(w, " %10s", "local err")
	}
	fmt.Fprintln(w)
	for i, r := range c.Rows {
		fmt.Fprintf(w, "  %3d  %-22s %9.4f %9.4f %9.4f %9.3g %10.4f", r.Index, engine.RowProbe(r.Index),
			r.Spearman, r.Pearson, r.MaxZDiff, r.RelativeL2, r.NormRatio)
		if local != nil {
			at := math.NaN()
			if i < len(local) {
				at = local[i]
			}
			fmt.Fprintf(w, " %10.3g", at)
		}
		fmt.Fprintln(w, rowNote(r))
	}
	fmt.Fprintln(w)
}

// rowNote says why figures of a row are NaN.
func rowNote(r bisect.Row) string {
	note := ""
	for _, s := range []struct {
		side  bisect.Side
		class metric.Class
	}{{bisect.Candidate, r.CandidateClass}, {bisect.Reference, r.ReferenceClass}} {
		if !s.class.Degenerate() {
			continue
		}
		note += fmt.Sprintf("  <- %s row is %s", s.side, s.class.Kind)
		if s.class.Kind == metric.NonFinite {
			note += fmt.Sprintf(" (%v at channel %d)", s.class.Value, s.class.Index)
		}
	}
	return note
}

func printGroups(w io.Writer, b *bisection) {
	fmt.Fprintln(w, "max|dz| by group, over cases and rows")
	fmt.Fprintf(w, "  %-16s %5s %6s %8s %8s %8s %8s %8s\n", "group", "cases", "n", "min", "median", "p95", "max", "mean")
	for _, g := range b.summary {
		fmt.Fprintf(w, "  %-16s %5d %6d %8.4f %8.4f %8.4f %8.4f %8.4f\n", g.Name, g.Cases, g.N, g.Min, g.Median, g.P95, g.Max, g.Mean)
	}
	rows := 0
	for _, g := range b.summary {
		rows = max(rows, len(g.RowMeans))
	}
	if rows == 0 {
		return
	}
	fmt.Fprintln(w, "\nmean of max|dz| by row")
	fmt.Fprintf(w, "  %3s  %-22s", "row", "probe")
	for _, g := range b.summary {
		fmt.Fprintf(w, " %10s", g.Name)
	}
	for _, g := range b.summary {
		if b.ratioTo != "" && g.Name != b.ratioTo {
			fmt.Fprintf(w, " %*s", ratioWidth(g.Name, b.ratioTo), g.Name+"/"+b.ratioTo)
		}
	}
	fmt.Fprintln(w)
	for i := range rows {
		fmt.Fprintf(w, "  %3d  %-22s", i, engine.RowProbe(i))
		base := math.NaN()
		for _, g := range b.summary {
			mean := rowMean(g, i)
			if g.Name == b.ratioTo {
				base = mean
			}
			fmt.Fprintf(w, " %10.4f", mean)
		}
		for _, g := range b.summary {
			if b.ratioTo != "" && g.Name != b.ratioTo {
				fmt.Fprintf(w, " %*.2f", ratioWidth(g.Name, b.ratioTo), rowMean(g, i)/base)
			}
		}
		fmt.Fprintln(w)
	}
}

func ratioWidth(group, base string) int { return max(10, len(group)+1+len(base)) }

// rowMean is the group's mean of row i, NaN where its cases have fewer rows.
func rowMean(g bisect.GroupSummary, i int) float64 {
	if i >= len(g.RowMeans) {
		return math.NaN()
	}
	return g.RowMeans[i]
}

func printRepeats(w io.Writer, b *bisection) {
	fmt.Fprintln(w, "\nresolving power, max|dz| between two runs of one side")
	if len(b.repeats) == 0 {
		fmt.Fprintln(w, "  unknown: no repeat run was given (--ref-repeat, --cand-repeat)")
		return
	}
	fmt.Fprintf(w, "  %-16s %6s %9s %9s %9s %9s %9s\n", "side", "n", "min", "median", "p95", "max", "mean")
	for _, r := range b.repeats {
		s := bisect.Summarise(bisect.MaxZDiffs(r.Cases))
		fmt.Fprintf(w, "  %-16s %6d %9.6f %9.6f %9.6f %9.6f %9.6f\n", r.Side, s.N, s.Min, s.Median, s.P95, s.Max, s.Mean)
		for _, c := range r.Cases {
			if c.Err != nil {
				fmt.Fprintf(w, "  %s %s: not compared: %s\n", r.Side, c.Name, repeatFault(c.Err))
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
		return fmt.Sprintf("%s: %s: got %s, want %s", f.File, f.Field, f.Got, f.Want)
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
	fmt.Fprintf(w, "\n%d of %d cases compared, %d rows\nconclusion: %s", compared, len(b.cases), rows, v.Conclusion)
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
		fmt.Fprintf(w, "power: %s\n", p)
	}
}
