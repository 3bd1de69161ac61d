package plot

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/palette"
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
	p := plot.New()
	p.Title.Text = g.Title
	p.X.Label.Text, p.Y.Label.Text = "decode step", g.Quantity
	low, high := math.Inf(1), math.Inf(-1)
	reach := func(y float64) bool {
		if !(y > 0) || math.IsInf(y, 1) {
			return false
		}
		low, high = min(low, y), max(high, y)
		return true
	}
	colours := hues(len(g.Values))
	for layer, row := range g.Values {
		var run plotter.XYs
		flush := func() error {
			if len(run) == 0 {
				return nil
			}
			l, points, err := plotter.NewLinePoints(run)
			if err != nil {
				return fmt.Errorf("plot: layer %d: %w", layer, err)
			}
			l.Color, points.Color, points.Radius = colours[layer], colours[layer], vg.Points(1.5)
			points.Shape = draw.CircleGlyph{}
			p.Add(l, points)
			if layer == 0 || layer == len(g.Values)-1 || len(g.Values) <= 8 || layer%6 == 5 {
				p.Legend.Add("layer "+strconv.Itoa(layer), l)
			}
			run = nil
			return nil
		}
		labelled := false
		for i, y := range row {
			if reach(y) {
				run = append(run, plotter.XY{X: float64(g.Steps[i]), Y: y})
				continue
			}
			if err := flush(); err != nil {
				return err
			}
			labelled = true
		}
		_ = labelled
		if err := flush(); err != nil {
			return err
		}
	}
	if g.Limit > 0 {
		reach(g.Limit)
		first, last := float64(g.Steps[0]), float64(g.Steps[len(g.Steps)-1])
		limit, err := plotter.NewLine(plotter.XYs{{X: first, Y: g.Limit}, {X: last, Y: g.Limit}})
		if err != nil {
			return fmt.Errorf("plot: limit: %w", err)
		}
		limit.Color, limit.Dashes, limit.Width = color.Black, []vg.Length{vg.Points(4), vg.Points(3)}, vg.Points(1)
		p.Add(limit)
		p.Legend.Add("limit "+strconv.FormatFloat(g.Limit, 'g', -1, 64), limit)
	}
	if low <= high { // a logarithmic axis needs something positive
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
		p.Y.Min, p.Y.Max = low/1.5, high*1.5
	} else {
		p.Y.Min, p.Y.Max = 0, 1
	}
	p.X.Min, p.X.Max = float64(g.Steps[0]), float64(g.Steps[len(g.Steps)-1])
	if p.X.Min == p.X.Max {
		p.X.Min, p.X.Max = p.X.Min-0.5, p.X.Max+0.5
	}
	p.Legend.Top = true
	p.Legend.Left = true
	p.Legend.TextStyle.Font.Size = vg.Points(8)
	return render(w, f, p)
}

// HeatMap draws layers over positions, coloured by value; what has no value is
// grey.
func HeatMap(w io.Writer, f Format, g Grid) error {
	if err := g.Validate(); err != nil {
		return err
	}
	p := plot.New()
	p.Title.Text = g.Title
	p.X.Label.Text, p.Y.Label.Text = "decode step", "layer"
	low, high := math.Inf(1), math.Inf(-1)
	for _, row := range g.Values {
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
		high = low + max(math.Abs(low)*1e-6, 1e-12) // a palette needs a span
	}
	colours := palette.Heat(64, 1)
	h := plotter.NewHeatMap(cells{g}, colours)
	h.Min, h.Max = low, high
	h.NaN = color.Gray{Y: 160}
	h.Overflow, h.Underflow = color.Black, color.Gray{Y: 160}
	p.Add(h)
	p.Y.Tick.Marker = plot.ConstantTicks(ticks(len(g.Values), func(i int) string { return strconv.Itoa(i) }))
	p.X.Tick.Marker = plot.ConstantTicks(ticks(len(g.Steps), func(i int) string { return strconv.Itoa(g.Steps[i]) }))
	p.Legend.Top = true
	p.Legend.TextStyle.Font.Size = vg.Points(8)
	for _, t := range []struct {
		at int
		z  float64
	}{{63, high}, {32, (low + high) / 2}, {0, low}} {
		p.Legend.Add(g.Quantity+" "+strconv.FormatFloat(t.z, 'e', 2, 64), swatch{colours.Colors()[t.at]})
	}
	p.Legend.YOffs = vg.Points(26) // above the cells, beside the title
	p.Y.Padding = 0
	return render(w, f, p)
}

// cells is a grid as the heat map asks for it: columns are positions.
type cells struct{ Grid }

func (c cells) Dims() (columns, rows int) { return len(c.Steps), len(c.Values) }
func (c cells) Z(column, row int) float64 { return c.Values[row][column] }
func (c cells) X(column int) float64      { return float64(column) }
func (c cells) Y(row int) float64         { return float64(row) }

// swatch is a colour in the legend.
type swatch struct{ color.Color }

func (s swatch) Thumbnail(c *draw.Canvas) {
	points := []vg.Point{{X: c.Min.X, Y: c.Min.Y}, {X: c.Min.X, Y: c.Max.Y}, {X: c.Max.X, Y: c.Max.Y}, {X: c.Max.X, Y: c.Min.Y}}
	c.FillPolygon(s.Color, c.ClipPolygonY(points))
}

// ticks labels at most about a dozen of n places.
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

func render(w io.Writer, f Format, p *plot.Plot) error {
	var c interface {
		vg.CanvasSizer
		io.WriterTo
	}
	switch f {
	case SVG:
		c = vgsvg.NewWith(vgsvg.UseWH(width, height), vgsvg.EmbedFonts(true))
	case PNG:
		c = vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(120))}
	default:
		return fmt.Errorf("plot: format: got %q, want %q or %q", f, SVG, PNG)
	}
	p.Draw(draw.New(c))
	if _, err := c.WriteTo(w); err != nil {
		return fmt.Errorf("plot: %w", err)
	}
	return nil
}
