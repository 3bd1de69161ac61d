package plot

import (
	"fmt"
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
)

// Table is one figure per row and column, with a note in some.
type Table struct {
	// Title and Quantity are text: what is shown, and of what. X and Y name the
	// columns and the rows.
	Title, Quantity, X, Y string
	Columns, Rows         []string
	// Values are [row][column], without unit; NaN where there is none.
	Values [][]float64
	// Low and High are the ends of the colours where a value has the same one in every
	// table, such as 0 and 1 of a share; both 0 for those of the values.
	Low, High float64
	// Notes are written into the cells; nil for none.
	Notes [][]string
}

// Validate refuses a table that isn't one.
func (t *Table) Validate() error {
	if len(t.Rows) == 0 || len(t.Columns) == 0 || len(t.Values) != len(t.Rows) || t.Notes != nil && len(t.Notes) != len(t.Rows) {
		return fmt.Errorf("plot: table: got %d rows of %d columns, %d rows of values and %d of notes, want at least one of each, and as many",
			len(t.Rows), len(t.Columns), len(t.Values), len(t.Notes))
	}
	if span := t.High - t.Low; (t.Low != 0 || t.High != 0) && (!(span > 0) || math.IsInf(span, 0)) {
		return fmt.Errorf("plot: table: colours: got %g to %g, want the lower end first, finite", t.Low, t.High)
	}
	for i, row := range t.Values {
		if len(row) != len(t.Columns) || t.Notes != nil && len(t.Notes[i]) != len(t.Columns) {
			return fmt.Errorf("plot: table: row %d: got %d values, want %d, and as many notes, if any", i, len(row), len(t.Columns))
		}
	}
	return nil
}

// Map draws a table with its first row at the bottom, coloured by value with a
// scale beside; a NaN is grey, an infinity black.
func Map(w io.Writer, f Format, t Table) error {
	if err := t.Validate(); err != nil {
		return err
	}
	p := newPlot(t.Title, t.X, t.Y)
	p.X.Tick.Marker = plot.ConstantTicks(ticks(len(t.Columns), func(i int) string { return t.Columns[i] }))
	p.Y.Tick.Marker = plot.ConstantTicks(ticks(len(t.Rows), func(i int) string { return t.Rows[i] }))
	notes, err := t.labels()
	if err != nil {
		return err
	}
	low, high := t.span()
	return heat(w, f, p, t.Values, low, high, t.Quantity, notes...)
}

// span are the ends of the colours.
func (t *Table) span() (low, high float64) {
	if t.Low != 0 || t.High != 0 {
		return t.Low, t.High
	}
	return spanOf(t.Values)
}

// labels are the notes, dark on light cells and the other way round.
func (t *Table) labels() ([]plot.Plotter, error) {
	var l plotter.XYLabels
	var white []bool
	low, high := t.span()
	for i, row := range t.Notes {
		for j, note := range row {
			if note == "" {
				continue
			}
			l.XYs = append(l.XYs, plotter.XY{X: float64(j), Y: float64(i)})
			l.Labels = append(l.Labels, note)
			white = append(white, t.Values[i][j] > low+(high-low)/2)
		}
	}
	if len(l.Labels) == 0 {
		return nil, nil
	}
	labels, err := plotter.NewLabels(l)
	if err != nil {
		return nil, fmt.Errorf("plot: notes: %w", err)
	}
	for i := range labels.TextStyle {
		s := &labels.TextStyle[i]
		s.Font.Size = vg.Points(7)
		s.XAlign, s.YAlign = text.XCenter, text.YCenter
		if white[i] {
			s.Color = color.White
		}
	}
	return []plot.Plotter{labels}, nil
}
