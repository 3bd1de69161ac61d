package routes

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/plumbline-go/plumbline/golden/trace"
)

// Names are what a report calls the two runs, and the one that the band was measured
// in; Noise is the judged one where it is empty.
type Names struct{ Judged, Reference, Noise string }

// Bin counts the rows whose margin lies in a range.
type Bin struct {
	// Label is the range's end, a power of two; it begins at half of it. "0" are exact
	// ties, "none" rows that had no other expert to choose.
	Label string
	// Rows counts all, Others those of them with other experts.
	Rows, Others int
}

// Bins are the ranges of margins from the first that has rows to the last.
func (r *Report) Bins() []Bin {
	all, others := &r.All.Margins, &r.Others.Margins
	var out []Bin
	if all.Zero > 0 {
		out = append(out, Bin{"0", all.Zero, others.Zero})
	}
	first, last := len(all.Bins), -1
	for i, n := range all.Bins {
		if n > 0 {
			first, last = min(first, i), i
		}
	}
	for i := first; i <= last; i++ {
		_, to := all.Bounds(i)
		out = append(out, Bin{fmt.Sprintf("2^%d", int(math.Log2(to))), all.Bins[i], others.Bins[i]})
	}
	if all.Without > 0 {
		out = append(out, Bin{"none", all.Without, others.Without})
	}
	return out
}

// Text is the report for a terminal.
func (r *Report) Text(n Names) string {
	var b strings.Builder
	b.WriteString(r.title(n) + "\n\n")
	b.WriteString(r.histogram())
	if !r.Sole {
		b.WriteString("\n" + r.verdict(n) + "\n\n" + r.grid())
	}
	return b.String()
}

// Markdown is the report as a page that shows the images beside it.
func (r *Report) Markdown(n Names, margins, flips string) string {
	var b strings.Builder
	b.WriteString("# Routes\n\n" + r.title(n) + "\n\n")
	fmt.Fprintf(&b, "![Route margins](%s)\n\n```\n%s```\n", margins, r.histogram())
	if !r.Sole {
		fmt.Fprintf(&b, "\n%s\n\n![Other experts by layer and condition](%s)\n\n```\n%s```\n", r.verdict(n), flips, r.grid())
	}
	return b.String()
}

func (r *Report) title(n Names) string {
	of := n.Reference
	if r.Sole {
		of = n.Judged
	}
	return fmt.Sprintf("Route margins, the score of the last expert chosen minus that of the next, in %s: %d rows of %d gates.", of, r.All.Judged(), len(r.shape.Gates))
}

// histogram is a line for each power of two.
func (r *Report) histogram() string {
	var b strings.Builder
	bins := r.Bins()
	most := 0
	for _, x := range bins {
		most = max(most, x.Rows)
	}
	fmt.Fprintf(&b, "%-12s %8s", "margin below", "rows")
	if !r.Sole {
		fmt.Fprintf(&b, " %14s", "other experts")
	}
	b.WriteByte('\n')
	for _, x := range bins {
		fmt.Fprintf(&b, "%-12s %8d", x.Label, x.Rows)
		if !r.Sole {
			fmt.Fprintf(&b, " %14d", x.Others)
		}
		const width = 40
		bar := strings.Repeat("#", (x.Rows*width+most-1)/most)
		if bar != "" {
			b.WriteString("  " + bar)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// verdict is a paragraph on what differs.
func (r *Report) verdict(n Names) string {
	t := &r.All
	s := fmt.Sprintf("Experts of %s and of %s: the same in %d of %d rows, others in %d: %d TIE, %d FLIP.", n.Judged, n.Reference, t.Match, t.Judged(), t.Tie+t.Flip, t.Tie, t.Flip)
	if t.Unjudged > 0 {
		s += fmt.Sprintf(" %s no order of scores and %s judged.", count(t.Unjudged, "row has", "rows have"), one(t.Unjudged, "isn't", "aren't"))
	}
	if t.NearTies > 0 {
		s += fmt.Sprintf(" Of %s %.1f %% have others.", count(t.NearTies, "near tie", "near ties"), 100*t.NearTieRate())
	}
	s += fmt.Sprintf(" Near is a margin within the band: %d times what scores at its ends are off by at a gate in %s, 99th percentile.", multiple, cmp.Or(n.Noise, n.Judged))
	if judged := t.Judged(); judged > 0 {
		s += fmt.Sprintf(" %.1f %% of rows lie above it, %.2f %% are a FLIP.", 100*float64(judged-t.NearTies)/float64(judged), 100*float64(t.Flip)/float64(judged))
	}
	if t.Flip > 0 && n.Noise == "" { // the band is the judged run's own
		s += " As the band follows a percentile, a sound run has some, a few in a thousand rows, spread out; suspicious is a layer or a condition that stands out."
	}
	return s
}

// grid is the map: TIE and FLIP of each cell.
func (r *Report) grid() string {
	rows := [][]string{{"layer", "rows", "band"}}
	rows[0] = append(rows[0], r.Map.Conditions...)
	for g, layer := range r.shape.Gates {
		judged := 0
		var cells []string
		for c := range r.Map.Conditions {
			t := &r.Map.Cells[g][c]
			judged += t.Judged()
			cells = append(cells, cell(t))
		}
		rows = append(rows, append([]string{fmt.Sprintf("%02d", layer), fmt.Sprint(judged), fmt.Sprintf("%.1e", r.Noise[g].Largest)}, cells...))
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, c := range row {
			widths[i] = max(widths[i], len(c))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		for i, c := range row {
			if i > 0 {
				b.WriteString("  ")
			}
			fmt.Fprintf(&b, "%*s", widths[i], c)
		}
		b.WriteByte('\n')
	}
	return b.String() + "Cells: rows with other experts, TIE, then FLIP behind a plus.\n"
}

// cell is a cell of the map, "." where no row has other experts.
func cell(t *trace.RouteTally) string {
	switch {
	case t.Judged() == 0:
		return "-"
	case t.Flip > 0:
		return fmt.Sprintf("%d+%d", t.Tie, t.Flip)
	case t.Tie > 0:
		return fmt.Sprint(t.Tie)
	}
	return "."
}

// count is a number of things, one of which has another name.
func count(n int, single, many string) string { return fmt.Sprintf("%d %s", n, one(n, single, many)) }

func one(n int, single, many string) string {
	if n == 1 {
		return single
	}
	return many
}
