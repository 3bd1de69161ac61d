package plot

import (
	"fmt"
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Histogram is how often values were in each of some ranges, one behind the other.
type Histogram struct {
	// Title is what is shown; X names the ranges.
	Title, X string
	Labels   []string
	// Series are counted beside each other, such as all and a part of them, each
	// with a count per range.
	Series []Series
	// Mark is a line at a place between the ranges, in ranges from the first one's
	// lower end; MarkName says what it is, "" for none.
	Mark     float64
	MarkName string
}

// Series are the counts of a histogram under a name.
type Series struct {
	Name   string
	Counts []int
}

// Validate refuses a histogram that isn't one.
func (h *Histogram) Validate() error {
	if len(h.Labels) == 0 || len(h.Series) == 0 {
		return fmt.Errorf("plot: histogram: got %d ranges and %d series, want at least one of each", len(h.Labels), len(h.Series))
	}
	for _, s := range h.Series {
		if len(s.Counts) != len(h.Labels) {
			return fmt.Errorf("plot: histogram: series %q: got %d counts, want %d", s.Name, len(s.Counts), len(h.Labels))
		}
		for i, n := range s.Counts {
			if n < 0 {
				return fmt.Errorf("plot: histogram: series %q: range %d: got %d, want a count", s.Name, i, n)
			}
		}
	}
	return nil
}

// least is where the bars begin: a single one is to be seen.
const least = 0.5

// Bars draws a histogram. The vertical axis is logarithmic, so that a part is seen
// beside the whole.
func Bars(w io.Writer, f Format, h Histogram) error {
	if err := h.Validate(); err != nil {
		return err
	}
	p := newPlot(h.Title, h.X, "rows")
	p.Legend.TextStyle.Font.Size = vg.Points(8)
	third := color.Color(color.RGBA{R: 60, G: 60, B: 60, A: 255})
	second := color.Color(color.RGBA{R: 190, G: 40, B: 30, A: 255})
	if f == Inline {
		p = inlinePlot(h.Title, h.X, "rows")
		second, third = nearRole, badRole
	}
	p.Legend.Top, p.Legend.Left = true, true
	var legend legend
	most := 1
	colours := []color.Color{allBarRole, second, third}
	for i, s := range h.Series {
		var boxes bars
		boxes.colour = colours[i%len(colours)]
		boxes.inset = 0.06 + 0.12*float64(i)
		for _, n := range s.Counts {
			most = max(most, n)
			boxes.heights = append(boxes.heights, float64(n))
		}
		p.Add(boxes)
		legend.add(s.Name, boxes)
	}
	p.X.Min, p.X.Max = -0.6, float64(len(h.Labels))-0.4
	p.Y.Scale, p.Y.Min, p.Y.Max = plot.LogScale{}, least, float64(most)*1.6
	p.Y.Tick.Marker = plot.ConstantTicks(logTicks(1, p.Y.Max))
	p.X.Tick.Marker = plot.ConstantTicks(ticks(len(h.Labels), func(i int) string { return h.Labels[i] }))
	if h.MarkName != "" {
		m := column{x: h.Mark - 0.5, colour: inkRole}
		p.Add(m)
		legend.add(h.MarkName, m)
	}
	if f == Inline {
		return renderSized(w, f, size{26 * vg.Centimeter, 8 * vg.Centimeter}, func(c draw.Canvas) { legend.above(p, c) })
	}
	for _, e := range legend {
		p.Legend.Add(e.name, e.thumb)
	}
	return render(w, f, func(c draw.Canvas) { p.Draw(c) })
}

// bars are boxes around 0, 1, 2, …
type bars struct {
	heights []float64
	colour  color.Color
	inset   float64 // what is left free at either side
}

var (
	_ plot.Plotter     = bars{}
	_ plot.Thumbnailer = bars{}
	_ plot.DataRanger  = bars{}
)

func (b bars) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for i, n := range b.heights {
		if n <= 0 {
			continue
		}
		left, right := x(float64(i)-0.5+b.inset), x(float64(i)+0.5-b.inset)
		c.FillPolygon(b.colour, []vg.Point{{X: left, Y: y(least)}, {X: right, Y: y(least)}, {X: right, Y: y(n)}, {X: left, Y: y(n)}})
	}
}

func (b bars) DataRange() (xmin, xmax, ymin, ymax float64) {
	most := 1.
	for _, n := range b.heights {
		most = math.Max(most, n)
	}
	return -0.5, float64(len(b.heights)) - 0.5, least, most
}

func (b bars) Thumbnail(c *draw.Canvas) {
	(&plotter.BarChart{Color: b.colour}).Thumbnail(c)
}
