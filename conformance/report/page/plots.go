package page

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/conformance/report/plot"
)

// figures are the drawings; a drawing says in words what it shows.
type drawing struct {
	SVG         template.HTML
	Title, Desc string
}

func svgOf(draw func(w *strings.Builder) error) (template.HTML, error) {
	var b strings.Builder
	if err := draw(&b); err != nil {
		return "", err
	}
	return template.HTML(b.String()), nil
}

// depthPlots draw the profiles of the maps; none without rows.
func depthPlots(h heatMaps) ([]drawing, error) {
	var out []drawing
	for _, m := range h.Maps {
		d := plot.Depth{X: "dump row: 0 is the embedding, row N the output of layer N-1", Y: "error over the yardstick's", Median: m.median, Worst: m.worst, Bad: h.bad}
		if h.bad >= h.Rows {
			d.Bad = -1
		}
		if b := h.Bounds; b != nil {
			d.WorstLimit = positive(float64(b.Single.Value))
			if h.Cases >= b.Cases {
				d.MedianLimit = positive(m.medianLimit)
			}
		}
		svg, err := svgOf(func(w *strings.Builder) error { return plot.ByDepth(w, plot.Inline, d) })
		if err != nil {
			return nil, err
		}
		at, most := peak(m.worst)
		desc := fmt.Sprintf("%d rows; nothing measured", h.Rows)
		if at >= 0 {
			desc = fmt.Sprintf("%d rows of %s; largest ratio %s, in row %d.", h.Rows, plural(h.Cases, "case"), ratioText(most), at)
		}
		if h.bad >= 0 {
			desc += fmt.Sprintf(" Row %d, the first bad one, is marked.", h.bad)
		}
		title, _, _ := strings.Cut(m.Title, ":")
		out = append(out, drawing{svg, title + " by depth", desc})
	}
	return out, nil
}

func positive(x float64) float64 {
	if x > 0 && !math.IsInf(x, 0) {
		return x
	}
	return 0
}

func peak(xs []float64) (at int, most float64) {
	at = -1
	for i, x := range xs {
		if !math.IsNaN(x) && (at < 0 || x > most) {
			at, most = i, x
		}
	}
	return at, most
}

// logits is what the section on logits shows.
type logits struct {
	*conformance.LogitSummary
	drawing
	Left int
}

// maxPoints is how many points a drawing has.
const maxPoints = 1500

func logitsOf(r *conformance.Report, names []string) (*logits, error) {
	classes := []conformance.Margin{conformance.Match, conformance.TieFlip, conformance.Drift, conformance.Wrong}
	says := []string{"MATCH: the same token", "TIE-FLIP: rounding alone can exchange the two", "DRIFT: beyond the tie band", "WRONG: no rounding explains it"}
	p := plot.Points{X: "margin of the reference's pick, nats", Y: "regret of the candidate's pick, nats", BandName: "tie band, median over the rows"}
	var bands []float64
	all := make([][][2]float64, len(classes))
	n := 0
	for _, name := range names {
		for _, s := range r.Cases[name].Logits {
			i := slices.Index(classes, s.Class)
			x, y := float64(s.Margin), float64(s.Regret)
			if i < 0 || !(x >= 0) || !(y >= 0) || math.IsInf(x, 0) || math.IsInf(y, 0) {
				continue
			}
			n++
			all[i] = append(all[i], [2]float64{x, y})
			if b := float64(s.TieBand); b >= 0 && !math.IsInf(b, 0) {
				bands = append(bands, b)
			}
		}
	}
	if n == 0 {
		if r.Logits == nil {
			return nil, nil
		}
		return &logits{LogitSummary: r.Logits}, nil
	}
	slices.Sort(bands)
	if len(bands) > 0 {
		p.Band = bands[len(bands)/2]
	}
	out := &logits{LogitSummary: r.Logits}
	room := maxPoints
	for i := len(classes) - 1; i >= 0; i-- { // the harmful ones first
		xy := all[i]
		slices.SortStableFunc(xy, func(a, b [2]float64) int { return compare(b[1], a[1]) })
		if i == 0 && len(xy) > room {
			slices.SortStableFunc(xy, func(a, b [2]float64) int { return compare(a[0], b[0]) })
			every := float64(len(xy)) / float64(max(room, 1))
			var some [][2]float64
			for k := 0.; int(k) < len(xy) && len(some) < room; k += every {
				some = append(some, xy[int(k)])
			}
			out.Left += len(xy) - len(some)
			xy = some
		} else if len(xy) > room {
			out.Left += len(xy) - room
			xy = xy[:room]
		}
		room -= len(xy)
		all[i] = xy
	}
	for i := range classes {
		p.Classes = append(p.Classes, plot.PointClass{Name: says[i], XY: all[i]})
	}
	svg, err := svgOf(func(w *strings.Builder) error { return plot.Scatter(w, plot.Inline, p) })
	if err != nil {
		return nil, err
	}
	out.drawing = drawing{SVG: svg, Title: "Regret against margin", Desc: fmt.Sprintf("%d output tokens. MATCH %d, TIE-FLIP %d, DRIFT %d, WRONG %d in the drawing.",
		n, len(all[0]), len(all[1]), len(all[2]), len(all[3]))}
	return out, nil
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// router is a line of the table of routers.
type router struct {
	Name, Router           string
	Match, Tie, Flip, Rest int
	Band                   string
}

// routes is what the section on routes shows.
type routes struct {
	Drawings []drawing
	Routers  []router
	Left     int
}

const maxRouters = 400

func routesOf(r *conformance.Report) (*routes, error) {
	if len(r.RouteMargins) == 0 {
		return nil, nil
	}
	out := &routes{}
	for _, m := range r.RouteMargins {
		sum := func(bins []int) int {
			n := 0
			for _, b := range bins {
				n += b
			}
			return n
		}
		row := router{name(m.Name), name(m.Router), sum(m.Match), sum(m.Tie), sum(m.Flip), m.Unjudged, figure(m.Band)}
		if m.Router == "*" {
			row.Router = "all routers"
		}
		if len(out.Routers) == maxRouters {
			out.Left++
		} else {
			out.Routers = append(out.Routers, row)
		}
		if m.Router != "*" || len(out.Drawings) == 6 || len(m.Edges) < 2 {
			continue
		}
		d, err := routeDrawing(m, row)
		if err != nil {
			return nil, err
		}
		out.Drawings = append(out.Drawings, d)
	}
	return out, nil
}

func routeDrawing(m conformance.RouteMargins, row router) (drawing, error) {
	h := plot.Histogram{X: "route margin, lower end of the bin", Series: []plot.Series{{Name: "MATCH", Counts: m.Match}, {Name: "TIE", Counts: m.Tie}, {Name: "FLIP", Counts: m.Flip}}}
	for i := range len(m.Edges) - 1 {
		h.Labels = append(h.Labels, fmt.Sprintf("%.2g", float64(m.Edges[i])))
	}
	if band := float64(m.Band); band > 0 && !math.IsInf(band, 0) {
		h.Mark, h.MarkName = binAt(m.Edges, band), "tie band, median over the rows: "+number(band)
	}
	svg, err := svgOf(func(w *strings.Builder) error { return plot.Bars(w, plot.Inline, h) })
	if err != nil {
		return drawing{}, err
	}
	return drawing{svg, "Route margins of " + row.Name, fmt.Sprintf("%d rows chose the same experts, %d another set within the tie band, %d another set beyond it; %d rows lie behind another choice.",
		row.Match, row.Tie, row.Flip, row.Rest)}, nil
}

// binAt is a value's place in bins, in bins from the first one's lower end; beyond
// them it is at the end.
func binAt(edges []conformance.Number, x float64) float64 {
	last := len(edges) - 1
	for i := range last {
		low, high := float64(edges[i]), float64(edges[i+1])
		if x < low {
			return float64(i)
		}
		if x < high {
			return float64(i) + math.Log(x/low)/math.Log(high/low)
		}
	}
	return float64(last)
}
