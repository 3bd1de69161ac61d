package plot

import (
	"fmt"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Points are pairs of figures, by class.
type Points struct {
	Title, X, Y string
	Classes     []PointClass
	// Band is how high a point may lie and be a tie; 0 for none. BandName says so.
	Band     float64
	BandName string
}

// PointClass are points of one class. All figures are 0 or more; what isn't finite is
// left out.
type PointClass struct {
	Name string
	XY   [][2]float64
}

// classMarks tell classes by shape as by colour, from the harmless one on.
var classMarks = []struct {
	role role
	draw func(p *vg.Path, x, y vg.Length)
}{
	{goodRole, circleMark}, {nearRole, triangleMark}, {badRole, squareMark}, {badRole, crossMark},
}

// Validate refuses what can't be drawn.
func (s *Points) Validate() error {
	if len(s.Classes) == 0 || len(s.Classes) > len(classMarks) {
		return fmt.Errorf("plot: points: got %d classes, want 1 to %d", len(s.Classes), len(classMarks))
	}
	for _, c := range s.Classes {
		for i, p := range c.XY {
			if p[0] < 0 || p[1] < 0 {
				return fmt.Errorf("plot: points: class %q: point %d: got %g, %g, want no negative one", c.Name, i, p[0], p[1])
			}
		}
	}
	return nil
}

// Scatter draws points. Both axes have the square root's scale, which shows what is
// near 0 and what is far from it, and 0 itself.
func Scatter(w io.Writer, f Format, s Points) error {
	if err := s.Validate(); err != nil {
		return err
	}
	p := inlinePlot(s.Title, s.X, s.Y)
	var legend legend
	maxX, maxY := 0., s.Band
	for _, c := range s.Classes {
		for _, xy := range c.XY {
			if isFinite(xy[0]) && isFinite(xy[1]) {
				maxX, maxY = max(maxX, xy[0]), max(maxY, xy[1])
			}
		}
	}
	if maxX == 0 {
		maxX = 1
	}
	if maxY == 0 {
		maxY = 1
	}
	p.X.Scale, p.Y.Scale = rootScale{}, rootScale{}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, maxX*1.08, 0, maxY*1.15
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.ConstantTicks(rootTicks(p.X.Max)), plot.ConstantTicks(rootTicks(p.Y.Max))
	if s.Band > 0 {
		band := limitBand{s.Band}
		p.Add(band)
		legend.add(s.BandName, band)
	}
	for i, c := range s.Classes {
		m := marks{c.XY, i}
		p.Add(m)
		legend.add(fmt.Sprintf("%s (%d)", c.Name, len(c.XY)), m)
	}
	return renderSized(w, f, size{26 * vg.Centimeter, 10 * vg.Centimeter}, func(c draw.Canvas) { legend.above(p, c) })
}

func isFinite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// rootScale is the square root's.
type rootScale struct{}

// Normalize implements plot.Normalizer.
func (rootScale) Normalize(low, high, x float64) float64 {
	return (math.Sqrt(max(x, 0)) - math.Sqrt(low)) / (math.Sqrt(high) - math.Sqrt(low))
}

// rootTicks are 0 and round numbers up to high, not too near to each other.
func rootTicks(high float64) []plot.Tick {
	out := []plot.Tick{{Value: 0, Label: "0"}}
	last := 0.
	for e := math.Floor(math.Log10(high)) - 3; e <= math.Log10(high); e++ {
		for _, m := range []float64{1, 2, 5} {
			x := m * math.Pow(10, e)
			if at := math.Sqrt(x / high); x <= high && at-last >= 0.07 {
				out = append(out, plot.Tick{Value: x, Label: fmt.Sprintf("%.3g", x)})
				last = at
			}
		}
	}
	return out
}

// marks draws all points of a class as one path: a page may hold thousands.
type marks struct {
	xy    [][2]float64
	class int
}

// Plot implements plot.Plotter.
func (m marks) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	var path vg.Path
	for _, xy := range m.xy {
		if isFinite(xy[0]) && isFinite(xy[1]) {
			classMarks[m.class].draw(&path, x(xy[0]), y(xy[1]))
		}
	}
	m.stroke(&c, path)
}

// Thumbnail implements plot.Thumbnailer.
func (m marks) Thumbnail(c *draw.Canvas) {
	var path vg.Path
	classMarks[m.class].draw(&path, c.Center().X, c.Center().Y)
	m.stroke(c, path)
}

func (m marks) stroke(c *draw.Canvas, path vg.Path) {
	if len(path) == 0 {
		return
	}
	c.SetLineStyle(draw.LineStyle{Color: classMarks[m.class].role, Width: vg.Points(1.2)})
	c.Stroke(path)
}

const markSize = 3.2 // points

func circleMark(p *vg.Path, x, y vg.Length) {
	p.Move(vg.Point{X: x + markSize*0.8, Y: y})
	p.Arc(vg.Point{X: x, Y: y}, markSize*0.8, 0, 2*math.Pi)
	p.Close()
}

func polygonMark(p *vg.Path, x, y vg.Length, corners ...[2]vg.Length) {
	for i, c := range corners {
		at := vg.Point{X: x + c[0], Y: y + c[1]}
		if i == 0 {
			p.Move(at)
		} else {
			p.Line(at)
		}
	}
	p.Close()
}

func triangleMark(p *vg.Path, x, y vg.Length) {
	polygonMark(p, x, y, [2]vg.Length{-markSize, -markSize * 0.8}, [2]vg.Length{markSize, -markSize * 0.8}, [2]vg.Length{0, markSize})
}

func squareMark(p *vg.Path, x, y vg.Length) {
	polygonMark(p, x, y, [2]vg.Length{-markSize, -markSize}, [2]vg.Length{markSize, -markSize}, [2]vg.Length{markSize, markSize}, [2]vg.Length{-markSize, markSize})
}

func crossMark(p *vg.Path, x, y vg.Length) {
	const s = markSize * 1.2
	p.Move(vg.Point{X: x - s, Y: y - s})
	p.Line(vg.Point{X: x + s, Y: y + s})
	p.Move(vg.Point{X: x - s, Y: y + s})
	p.Line(vg.Point{X: x + s, Y: y - s})
}

// limitBand fills what lies below a limit.
type limitBand struct{ to float64 }

// Plot implements plot.Plotter.
func (b limitBand) Plot(c draw.Canvas, p *plot.Plot) {
	_, y := p.Transforms(&c)
	c.FillPolygon(bandRole, []vg.Point{{X: c.Min.X, Y: y(0)}, {X: c.Max.X, Y: y(0)}, {X: c.Max.X, Y: y(b.to)}, {X: c.Min.X, Y: y(b.to)}})
	c.StrokeLine2(draw.LineStyle{Color: inkRole, Width: vg.Points(1), Dashes: []vg.Length{vg.Points(6), vg.Points(3)}}, c.Min.X, y(b.to), c.Max.X, y(b.to))
}

// Thumbnail implements plot.Thumbnailer.
func (b limitBand) Thumbnail(c *draw.Canvas) {
	c.FillPolygon(bandRole, []vg.Point{c.Min, {X: c.Max.X, Y: c.Min.Y}, c.Max, {X: c.Min.X, Y: c.Max.Y}})
	c.StrokeLine2(draw.LineStyle{Color: inkRole, Width: vg.Points(1)}, c.Min.X, c.Max.Y, c.Max.X, c.Max.Y)
}
