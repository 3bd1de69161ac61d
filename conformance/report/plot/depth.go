package plot

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Depth is how far off the rows of a model are, from the embedding down.
type Depth struct {
	Title, X, Y string
	// Median and Worst are over cases, by row; NaN where there is none.
	Median, Worst []float64
	// MedianLimit and WorstLimit bound them; 0 for none.
	MedianLimit, WorstLimit float64
	// Bad is the row that is marked; -1 for none.
	Bad int
}

// Validate refuses a profile that isn't one.
func (d *Depth) Validate() error {
	if len(d.Median) == 0 || len(d.Median) != len(d.Worst) {
		return fmt.Errorf("plot: depth: got %d medians and %d worst, want at least one, and as many", len(d.Median), len(d.Worst))
	}
	if d.Bad < -1 || d.Bad >= len(d.Median) {
		return fmt.Errorf("plot: depth: bad row: got %d, want -1 to %d", d.Bad, len(d.Median)-1)
	}
	for _, l := range []float64{d.MedianLimit, d.WorstLimit} {
		if !(l >= 0) || math.IsInf(l, 0) {
			return fmt.Errorf("plot: depth: limit: got %g, want a positive one, or 0", l)
		}
	}
	return nil
}

// ByDepth draws a profile: medians as a line, the worst as a dashed one, and the
// budgets as bands below their limits. The vertical axis is logarithmic; a value that
// isn't positive and finite leaves a gap.
func ByDepth(w io.Writer, f Format, d Depth) error {
	if err := d.Validate(); err != nil {
		return err
	}
	p := inlinePlot(d.Title, d.X, d.Y)
	var legend legend
	var s span
	rows := make([]int, len(d.Median))
	for i := range rows {
		rows[i] = i
	}
	median, worst := runs(rows, d.Median, &s), runs(rows, d.Worst, &s)
	for _, l := range []float64{d.MedianLimit, d.WorstLimit} {
		if l > 0 {
			s.reach(l)
		}
	}
	low, high := 0.1, 1.
	if s.any {
		low, high = s.low/1.5, s.high*1.5
	}
	p.X.Min, p.X.Max = -0.5, float64(len(rows))-0.5
	p.Y.Scale, p.Y.Min, p.Y.Max = plot.LogScale{}, low, high
	p.Y.Tick.Marker = plot.ConstantTicks(withLimits(logTicks(low, high), low, high, d.MedianLimit, d.WorstLimit))
	p.X.Tick.Marker = plot.ConstantTicks(ticks(len(rows), strconv.Itoa))

	p.Add(bands{low: low, median: d.MedianLimit, worst: d.WorstLimit})
	if d.Bad >= 0 {
		p.Add(column{x: float64(d.Bad), colour: badRole})
	}
	for _, l := range []struct {
		name   string
		pieces []plotter.XYs
		role   role
		dashes []vg.Length
	}{
		{"worst case", worst, nearRole, []vg.Length{vg.Points(2), vg.Points(2)}},
		{"median over the cases", median, goodRole, nil},
	} {
		for i, piece := range l.pieces {
			line, points, err := plotter.NewLinePoints(piece)
			if err != nil {
				return fmt.Errorf("plot: %s: %w", l.name, err)
			}
			line.Color, line.Width, line.Dashes = l.role, vg.Points(1.6), l.dashes
			points.Color, points.Radius, points.Shape = l.role, vg.Points(1.8), draw.CircleGlyph{}
			p.Add(line, points)
			if i == 0 {
				legend.add(l.name, line)
			}
		}
	}
	for _, l := range []struct {
		at     float64
		name   string
		dashes []vg.Length
	}{{d.MedianLimit, "limit of the median", nil}, {d.WorstLimit, "limit of one case", []vg.Length{vg.Points(6), vg.Points(3)}}} {
		if l.at == 0 {
			continue
		}
		line, err := plotter.NewLine(plotter.XYs{{X: p.X.Min, Y: l.at}, {X: p.X.Max, Y: l.at}})
		if err != nil {
			return fmt.Errorf("plot: %s: %w", l.name, err)
		}
		line.Color, line.Width, line.Dashes = inkRole, vg.Points(1), l.dashes
		p.Add(line)
		legend.add(fmt.Sprintf("%s, %.3g", l.name, l.at), line)
	}
	return renderSized(w, f, size{26 * vg.Centimeter, 8 * vg.Centimeter}, func(c draw.Canvas) { legend.above(p, c) })
}

// withLimits adds ticks at limits, where no other stands so near that their labels would
// touch.
func withLimits(ticks []plot.Tick, low, high float64, limits ...float64) []plot.Tick {
	const apart = 0.09 // of the axis, about a label's height
	for _, l := range limits {
		near := func(t plot.Tick) bool { return math.Abs(math.Log(t.Value/l)) < apart*math.Log(high/low) }
		if l >= low && l <= high && !slices.ContainsFunc(ticks, near) {
			ticks = append(ticks, plot.Tick{Value: l, Label: strconv.FormatFloat(l, 'g', 3, 64)})
		}
	}
	return ticks
}

// bands fill what is within the budgets.
type bands struct{ low, median, worst float64 }

// Plot implements plot.Plotter.
func (b bands) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	fill := func(r role, from, to float64) {
		if to > from {
			c.FillPolygon(r, []vg.Point{{X: x(p.X.Min), Y: y(from)}, {X: x(p.X.Max), Y: y(from)}, {X: x(p.X.Max), Y: y(to)}, {X: x(p.X.Min), Y: y(to)}})
		}
	}
	fill(bandRole2, b.low, b.worst)
	fill(bandRole, b.low, b.median)
}

// column marks a place on the horizontal axis, with a triangle on top.
type column struct {
	x      float64
	colour role
}

// Plot implements plot.Plotter.
func (m column) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	at, size := x(m.x), vg.Points(5)
	c.StrokeLine2(draw.LineStyle{Color: m.colour, Width: vg.Points(1.5), Dashes: []vg.Length{vg.Points(1), vg.Points(2)}}, at, c.Min.Y, at, c.Max.Y)
	c.FillPolygon(m.colour, []vg.Point{{X: at - size, Y: c.Max.Y}, {X: at + size, Y: c.Max.Y}, {X: at, Y: c.Max.Y - 1.6*size}})
}

// Thumbnail implements plot.Thumbnailer.
func (m column) Thumbnail(c *draw.Canvas) {
	at := c.Center().X
	c.StrokeLine2(draw.LineStyle{Color: m.colour, Width: vg.Points(1.5), Dashes: []vg.Length{vg.Points(1), vg.Points(2)}}, at, c.Min.Y, at, c.Max.Y)
}
