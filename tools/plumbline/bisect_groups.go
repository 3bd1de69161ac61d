package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/tools/internal/bisect"
)

// printGroups sums up each group over its cases and rows. max|dz| can't see
// scale, so figures that can stand beside it.
func printGroups(w io.Writer, b *bisection) {
	fmt.Fprintln(w, "by group, over cases and rows: max|dz|, then the medians of what sees scale")
	heads := []string{"group", "cases", "n", "min", "median", "p95", "max", "mean", "rel L2"}
	if b.judged != nil {
		heads = append(heads, "local err")
	}
	t := newTable(heads...).alignLeft(0)
	for i, g := range b.summary {
		cells := []string{g.Name, strconv.Itoa(g.Cases), strconv.Itoa(g.N)}
		for _, x := range []float64{g.Min, g.Median, g.P95, g.Max, g.Mean} {
			cells = append(cells, fixed(x, 4))
		}
		cells = append(cells, medianCell(b.relativeL2[i].All))
		if b.judged != nil {
			cells = append(cells, medianCell(b.localErrors[i].All))
		}
		t.add("", cells...)
	}
	t.print(w)
}

func medianCell(m bisect.Median) string {
	if m.N == 0 {
		return none
	}
	return scientific(m.Value)
}

// rowFigure is a figure of a group's rows: what it is, how it reads, and its
// value, false where there is none.
type rowFigure struct {
	title, short string
	text         func(float64) string
	value        func(group, row int) (float64, bool)
}

func (b *bisection) rowFigures() []rowFigure {
	median := func(by []bisect.GroupMedians) func(g, row int) (float64, bool) {
		return func(g, row int) (float64, bool) {
			if row >= len(by[g].Rows) {
				return math.NaN(), false
			}
			m := by[g].Rows[row]
			return m.Value, m.N > 0
		}
	}
	mean := func(g, row int) (float64, bool) {
		if means := b.summary[g].RowMeans; row < len(means) {
			return means[row], true
		}
		return math.NaN(), false
	}
	out := []rowFigure{
		{"mean of max|dz|", "max|dz|", func(x float64) string { return fixed(x, 4) }, mean},
		{"median of relative L2", "rel L2", scientific, median(b.relativeL2)},
	}
	if b.judged != nil {
		out = append(out, rowFigure{"median of the local error", "local err", scientific, median(b.localErrors)})
	}
	return out
}

// printRows sums up each row over the cases of a group: one table with all
// figures, or a table for each figure when there are groups to set side by side.
func printRows(w io.Writer, b *bisection) {
	rows := 0
	for _, g := range b.summary {
		rows = max(rows, len(g.RowMeans))
	}
	figures := b.rowFigures()
	switch {
	case rows == 0:
	case len(b.summary) == 1:
		titles, heads := []string{}, []string{"row", "probe"}
		for _, f := range figures {
			titles, heads = append(titles, f.title), append(heads, f.short)
		}
		fmt.Fprintf(w, "\nby row: %s\n", strings.Join(titles, ", "))
		printByRow(w, rows, heads, func(row int) (cells []string) {
			for _, f := range figures {
				x, ok := f.value(0, row)
				cells = append(cells, orNone(ok, f.text(x)))
			}
			return cells
		})
	default:
		for _, f := range figures {
			fmt.Fprintf(w, "\n%s by row\n", f.title)
			b.printGroupsByRow(w, rows, f)
		}
	}
}

// printGroupsByRow sets the groups side by side, with their ratios to the
// group of --ratio-to.
func (b *bisection) printGroupsByRow(w io.Writer, rows int, f rowFigure) {
	heads := []string{"row", "probe"}
	base := slices.IndexFunc(b.summary, func(g bisect.GroupSummary) bool { return b.ratioTo != "" && g.Name == b.ratioTo })
	var others []int
	for i, g := range b.summary {
		heads = append(heads, g.Name)
		if base >= 0 && i != base {
			others = append(others, i)
		}
	}
	for _, i := range others {
		heads = append(heads, b.summary[i].Name+"/"+b.ratioTo)
	}
	printByRow(w, rows, heads, func(row int) (cells []string) {
		for i := range b.summary {
			x, ok := f.value(i, row)
			cells = append(cells, orNone(ok, f.text(x)))
		}
		for _, i := range others {
			x, ok := f.value(i, row)
			by, okBase := f.value(base, row)
			cells = append(cells, orNone(ok && okBase, fixed(x/by, 2)))
		}
		return cells
	})
}

func printByRow(w io.Writer, rows int, heads []string, cells func(row int) []string) {
	t := newTable(heads...).alignLeft(1)
	for row := range rows {
		t.add("", append([]string{strconv.Itoa(row), string(engine.RowProbe(row))}, cells(row)...)...)
	}
	t.print(w)
}

func orNone(ok bool, text string) string {
	if !ok {
		return none
	}
	return text
}
