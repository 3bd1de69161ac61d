package plot

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// legend says what marks and lines are, side by side above a plot, where it hides
// nothing.
type legend []legendEntry

type legendEntry struct {
	name  string
	thumb plot.Thumbnailer
}

func (l *legend) add(name string, thumb plot.Thumbnailer) {
	*l = append(*l, legendEntry{name, thumb})
}

// above draws a plot below its legend.
func (l legend) above(p *plot.Plot, c draw.Canvas) {
	const thumb, gap, line, lead = 22, 5, 15, 18 // points
	style := p.Legend.TextStyle
	style.YAlign = draw.YCenter
	x, y := c.Min.X, c.Max.Y
	for _, e := range l {
		width := vg.Points(thumb+gap) + style.Width(e.name)
		if x > c.Min.X && x+width > c.Max.X {
			x, y = c.Min.X, y-vg.Points(line)
		}
		box := draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{Min: vg.Point{X: x, Y: y - vg.Points(11)}, Max: vg.Point{X: x + vg.Points(thumb), Y: y - vg.Points(2)}}}
		e.thumb.Thumbnail(&box)
		c.FillText(style, vg.Point{X: x + vg.Points(thumb+gap), Y: y - vg.Points(6.5)}, e.name)
		x += width + vg.Points(lead)
	}
	p.Draw(draw.Crop(c, 0, 0, 0, y-vg.Points(line)-c.Max.Y))
}
