package plot

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/palette"
	"gonum.org/v1/plot/palette/moreland"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Format is a file format.
type Format string

// The formats. An SVG carries its fonts, so that it looks the same everywhere.
const (
	SVG Format = "svg"
	PNG Format = "png"
)

// Grid is one figure per layer and position.
type Grid struct {
	// Title and Quantity are text: what is shown, and of what.
	Title, Quantity string
	// Steps are the positions' labels on the horizontal axis, ascending.
	Steps []int
	// Values are [layer][position], without unit; NaN where there is none.
	Values [][]float64
	// Limit is drawn as a line of its own; 0 for none.
	Limit float64
}

// Validate refuses a grid that isn't one.
func (g *Grid) Validate() error {
	if len(g.Values) == 0 || len(g.Steps) == 0 {
		return fmt.Errorf("plot: grid: got %d layers and %d positions, want at least one of each", len(g.Values), len(g.Steps))
	}
	for i, row := range g.Values {
		if len(row) != len(g.Steps) {
			return fmt.Errorf("plot: grid: layer %d: got %d positions, want %d", i, len(row), len(g.Steps))
		}
	}
	return nil
}

const (
	width  = 22 * vg.Centimeter
	height = 15 * vg.Centimeter
)

// Lines draws one line per layer over the positions. The vertical axis is
// logarithmic; a value that isn't positive and finite leaves a gap.
func Lines(w io.Writer, f Format, g Grid) error {
	if err := g.Validate(); err != nil {
		return err
	}
	p := newPlot(g.Title, "decode step", g.Quantity)
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.TextStyle.Font.Size = vg.Points(8)
	var span span
	colours := hues(len(g.Values))
	for layer, row := range g.Values {
		named := len(g.Values) <= 8 || layer == 0 || layer%6 == 5 || layer == len(g.Values)-1
		for _, run := range runs(g.Steps, row, &span) {
			l, points, err := plotter.NewLinePoints(run)
			if err != nil {
				return fmt.Errorf("plot: layer %d: %w", layer, err)
			}
			l.Color, points.Color = colours[layer], colours[layer]
			points.Radius, points.Shape = vg.Points(1.5), draw.CircleGlyph{}
			p.Add(l, points)
			if named {
				p.Legend.Add("layer "+strconv.Itoa(layer), l)
				named = false // once, whatever the gaps
			}
		}
	}
	first, last := float64(g.Steps[0]), float64(g.Steps[len(g.Steps)-1])
	if g.Limit > 0 {
		span.reach(g.Limit)
		limit, err := plotter.NewLine(plotter.XYs{{X: first, Y: g.Limit}, {X: last, Y: g.Limit}})
		if err != nil {
			return fmt.Errorf("plot: limit: %w", err)
		}
		limit.Color, limit.Dashes, limit.Width = color.Black, []vg.Length{vg.Points(4), vg.Points(3)}, vg.Points(1)
		p.Add(limit)
		p.Legend.Add("limit "+strconv.FormatFloat(g.Limit, 'g', -1, 64), limit)
	}
	p.Y.Min, p.Y.Max = 0, 1
	if span.any { // a logarithmic axis needs something positive
		p.Y.Scale, p.Y.Min, p.Y.Max = plot.LogScale{}, span.low/1.5, span.high*1.5
		p.Y.Tick.Marker = plot.ConstantTicks(logTicks(p.Y.Min, p.Y.Max))
	}
	p.X.Min, p.X.Max = first, last
	if first == last {
		p.X.Min, p.X.Max = first-0.5, last+0.5
	}
	steps := ticks(len(g.Steps), func(i int) string { return strconv.Itoa(g.Steps[i]) })
	for i := range steps {
		steps[i].Value = float64(g.Steps[int(steps[i].Value)])
	}
	p.X.Tick.Marker = plot.ConstantTicks(steps)
	return render(w, f, func(c draw.Canvas) { p.Draw(c) })
}

// span is the range of what was seen of positive, finite values.
type span struct {
	low, high float64
	any       bool
}

// reach reports whether y is such a value.
func (s *span) reach(y float64) bool {
	if !(y > 0) || math.IsInf(y, 1) {
		return false
	}
	if !s.any {
		s.low, s.high, s.any = y, y, true
	}
	s.low, s.high = min(s.low, y), max(s.high, y)
	return true
}

// runs are the pieces of a row between its gaps.
func runs(steps []int, row []float64, s *span) []plotter.XYs {
	var out []plotter.XYs
	open := false
	for i, y := range row {
		if !s.reach(y) {
			open = false
			continue
		}
		if !open {
			out = append(out, nil)
			open = true
		}
		out[len(out)-1] = append(out[len(out)-1], plotter.XY{X: float64(steps[i]), Y: y})
	}
	return out
}

// logTicks are 1, 2 and 5 times the powers of ten within [low, high], labelled.
func logTicks(low, high float64) []plot.Tick {
	var out []plot.Tick
	few := math.Log10(high/low) < 4
	for e := math.Floor(math.Log10(low)); e <= math.Log10(high); e++ {
		for _, m := range []float64{1, 2, 5} {
			if x := m * math.Pow(10, e); x >= low && x <= high {
				t := plot.Tick{Value: x}
				if m == 1 || few {
					t.Label = strconv.FormatFloat(x, 'g', 3, 64)
				}
				out = append(out, t)
			}
		}
	}
	return out
}

// HeatMap draws layers over positions, coloured by value with a scale beside; a
// NaN is grey, an infinity black.
func HeatMap(w io.Writer, f Format, g Grid) error {
	if err := g.Validate(); err != nil {
		return err
	}
	p := newPlot(g.Title, "decode step", "layer")
	p.Y.Tick.Marker = plot.ConstantTicks(ticks(len(g.Values), strconv.Itoa))
	p.X.Tick.Marker = plot.ConstantTicks(ticks(len(g.Steps), func(i int) string { return strconv.Itoa(g.Steps[i]) }))
	low, high := spanOf(g.Values)
	return heat(w, f, p, g.Values, low, high, g.Quantity)
}

// spanOf are the lowest and the highest of finite values, apart from each other.
func spanOf(values [][]float64) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, row := range values {
		for _, z := range row {
			if !math.IsNaN(z) && !math.IsInf(z, 0) {
				low, high = min(low, z), max(high, z)
			}
		}
	}
	if low > high {
		low, high = 0, 1
	}
	if low == high {
		high = low + max(math.Abs(low)*1e-6, 1e-12) // a scale needs a span
	}
	return low, high
}

// heat draws values over a plot, and their scale beside it.
func heat(w io.Writer, f Format, p *plot.Plot, values [][]float64, low, high float64, quantity string, over ...plot.Plotter) error {
	colours := palette.Reverse(moreland.ExtendedBlackBody()) // dark is large
	colours.SetMin(low)
	colours.SetMax(high)

	h := plotter.NewHeatMap(cells(values), colours.Palette(256)) // gonum 0.17.0 leaves the middle one of an odd number out
	h.Min, h.Max = low, high
	h.NaN, h.Underflow, h.Overflow = color.Gray{Y: 160}, color.Gray{Y: 160}, color.Black
	p.Add(h)
	p.Add(over...)

	scale := newPlot("", "", quantity)
	scale.Add(&plotter.ColorBar{ColorMap: colours, Vertical: true})
	scale.HideX()
	scale.Y.Padding = 0
	return render(w, f, func(c draw.Canvas) {
		const beside = 3 * vg.Centimeter
		p.Draw(draw.Crop(c, 0, -beside, 0, 0))
		scale.Draw(draw.Crop(c, c.Max.X-c.Min.X-beside+vg.Points(8), 0, 0, 0))
	})
}

func newPlot(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.Padding = vg.Points(6)
	return p
}

// cells are rows of values as the heat map asks for them.
type cells [][]float64

func (c cells) Dims() (columns, rows int) { return len(c[0]), len(c) }
func (c cells) Z(column, row int) float64 { return c[row][column] }
func (c cells) X(column int) float64      { return float64(column) }
func (c cells) Y(row int) float64         { return float64(row) }

// ticks labels at most 16 of n places, by index.
func ticks(n int, label func(int) string) []plot.Tick {
	every := (n + 15) / 16
	var out []plot.Tick
	for i := 0; i < n; i += every {
		out = append(out, plot.Tick{Value: float64(i), Label: label(i)})
	}
	return out
}

// hues are n colours from early layers to late ones.
func hues(n int) []color.Color {
	if n == 1 {
		return []color.Color{color.RGBA{B: 200, A: 255}}
	}
	return palette.Rainbow(n, palette.Blue, palette.Red, 1, 0.85, 1).Colors()
}

func render(w io.Writer, f Format, drawing func(draw.Canvas)) error {
	return renderSized(w, f, size{width, height}, drawing)
}

// renderFile draws what stands alone.
func renderFile(w io.Writer, f Format, s size, drawing func(draw.Canvas)) error {
	var c interface {
		vg.CanvasSizer
		io.WriterTo
	}
	switch f {
	case SVG:
		c = vgsvg.NewWith(vgsvg.UseWH(s.w, s.h), vgsvg.EmbedFonts(true))
	case PNG:
		c = vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(s.w, s.h), vgimg.UseDPI(120))}
	default:
		return fmt.Errorf("plot: format: got %q, want %q, %q or %q", f, SVG, PNG, Inline)
	}
	drawing(draw.Crop(draw.New(c), vg.Points(6), -vg.Points(10), vg.Points(6), -vg.Points(8)))
	if _, err := c.WriteTo(w); err != nil {
		return fmt.Errorf("plot: %w", err)
	}
	return nil
}
