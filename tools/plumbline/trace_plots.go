package main

import (
	"fmt"
	"math"

	"github.com/plumbline-go/plumbline/conformance/report/plot"
)

// histogram is the margins as a drawing: all rows and, where there are two runs,
// those with other experts.
func (r *routeReport) histogram() plot.Histogram {
	h := plot.Histogram{Title: "Route margins, " + r.names.Judged, X: "margin below", Series: []plot.Series{{Name: "all rows"}}}
	if !r.figures.Sole {
		h.Title = "Route margins, " + r.names.Reference
		h.Series = append(h.Series, plot.Series{Name: "rows with other experts in " + r.names.Judged})
	}
	for _, b := range r.figures.Bins() {
		h.Labels = append(h.Labels, b.Label)
		h.Series[0].Counts = append(h.Series[0].Counts, b.Rows)
		if !r.figures.Sole {
			h.Series[1].Counts = append(h.Series[1].Counts, b.Others)
		}
	}
	return h
}

// flips is the map as a drawing: the share of rows with other experts, with the
// number of FLIPs in the cells that have one.
func (r *routeReport) flips() plot.Table {
	t := plot.Table{
		Title:    fmt.Sprintf("Rows with other experts in %s than in %s; FLIPs as numbers", r.names.Judged, r.names.Reference),
		Quantity: "share of rows", X: "condition", Y: "layer", Columns: r.figures.Map.Conditions,
		Low: 0, High: 1, // a few rows in a hundred are usual, and look it
	}
	for g, layer := range r.shape.Gates {
		t.Rows = append(t.Rows, fmt.Sprintf("%02d", layer))
		values, notes := make([]float64, len(t.Columns)), make([]string, len(t.Columns))
		for c := range values {
			cell := &r.figures.Map.Cells[g][c]
			values[c] = math.NaN()
			if n := cell.Judged(); n > 0 {
				values[c] = float64(cell.Tie+cell.Flip) / float64(n)
			}
			if cell.Flip > 0 {
				notes[c] = fmt.Sprint(cell.Flip)
			}
		}
		t.Values, t.Notes = append(t.Values, values), append(t.Notes, notes)
	}
	return t
}
