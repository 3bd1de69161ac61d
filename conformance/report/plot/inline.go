package plot

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Inline is an svg element for an HTML page. Its fonts are the page's to bring, by the
// rule that [FontFace] returns, and its colours are CSS variables, --plot-ink and so
// on, so that it follows the page's theme; each has the colour of a file as fallback.
const Inline Format = "inline svg"

// inlineFont is the font of inline drawings. Its metrics are those of the text that
// gonum lays out.
var inlineFont = font.Font{Typeface: "Liberation", Variant: "Sans"}

// role is what a colour is for, and its name among CSS variables.
type role struct {
	colour color.RGBA
	name   string
}

// RGBA implements color.Color.
func (r role) RGBA() (red, green, blue, alpha uint32) { return r.colour.RGBA() }

// The roles. No two have one colour: by that a drawing is turned into CSS.
var (
	inkRole    = role{color.RGBA{R: 0x20, G: 0x22, B: 0x24, A: 255}, "ink"}
	gridRole   = role{color.RGBA{R: 0xd5, G: 0xd8, B: 0xdc, A: 255}, "grid"}
	paperRole  = role{color.RGBA{R: 0xff, G: 0xff, B: 0xfe, A: 255}, "paper"}
	goodRole   = role{color.RGBA{R: 0x1d, G: 0x6f, B: 0x9c, A: 255}, "good"}
	nearRole   = role{color.RGBA{R: 0xb3, G: 0x6b, B: 0x05, A: 255}, "near"}
	badRole    = role{color.RGBA{R: 0xbe, G: 0x28, B: 0x1e, A: 255}, "bad"}
	bandRole   = role{color.RGBA{R: 0xd9, G: 0xec, B: 0xf5, A: 255}, "band"}
	bandRole2  = role{color.RGBA{R: 0xf7, G: 0xea, B: 0xcf, A: 255}, "band-2"}
	allBarRole = role{color.RGBA{R: 150, G: 175, B: 215, A: 255}, "bar"}
)

// themed replaces colours of roles by variables.
var themed = func() *strings.Replacer {
	var pairs []string
	for _, r := range []role{inkRole, gridRole, paperRole, goodRole, nearRole, badRole, bandRole, bandRole2, allBarRole} {
		hex := fmt.Sprintf("#%02X%02X%02X", r.colour.R, r.colour.G, r.colour.B)
		pairs = append(pairs, hex, "var(--plot-"+r.name+","+hex+")")
	}
	// What the rule of FontFace says once needn't be said of each text.
	pairs = append(pairs, "font-family:Liberation Sans;font-variant:normal;font-weight:normal;font-style:normal;", "", "\n\tstyle=", " style=")
	return strings.NewReplacer(pairs...)
}()

// inlinePlot prepares a plot whose parts all have a role.
func inlinePlot(title, x, y string) *plot.Plot {
	p := newPlot(title, x, y)
	p.BackgroundColor = nil
	for _, s := range []*draw.TextStyle{&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle} {
		s.Color = inkRole
		s.Font.Typeface, s.Font.Variant = inlineFont.Typeface, inlineFont.Variant
	}
	for _, s := range []*draw.LineStyle{&p.X.LineStyle, &p.Y.LineStyle, &p.X.Tick.LineStyle, &p.Y.Tick.LineStyle} {
		s.Color = inkRole
	}
	p.X.Label.TextStyle.Font.Size, p.Y.Label.TextStyle.Font.Size, p.Legend.TextStyle.Font.Size = vg.Points(10.5), vg.Points(10.5), vg.Points(10)
	p.Y.Label.Padding = vg.Points(4) // the label would touch a wide tick's
	return p
}

// size is that of a drawing.
type size struct{ w, h vg.Length }

// renderSized is render in another size.
func renderSized(w io.Writer, f Format, s size, drawing func(draw.Canvas)) error {
	if f != Inline {
		return renderFile(w, f, s, drawing)
	}
	c := vgsvg.NewWith(vgsvg.UseWH(s.w, s.h))
	drawing(draw.Crop(draw.New(c), vg.Points(6), -vg.Points(10), vg.Points(6), -vg.Points(8)))
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return fmt.Errorf("plot: %w", err)
	}
	_, rest, ok := strings.Cut(b.String(), "xmlns:xlink=\"http://www.w3.org/1999/xlink\">")
	if !ok {
		return fmt.Errorf("plot: inline: got a drawing that begins %.80q, want an svg element", b.String())
	}
	head := fmt.Sprintf("<svg class=\"plot\" aria-hidden=\"true\" viewBox=\"0 0 %.5g %.5g\">", s.w.Points(), s.h.Points())
	if _, err := io.WriteString(w, head+themed.Replace(rest)); err != nil {
		return fmt.Errorf("plot: %w", err)
	}
	return nil
}
