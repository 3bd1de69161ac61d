package page

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// maxMapCases is how many cases a map has, those that fail first.
const maxMapCases = 200

// heatMaps are the errors of all cases by row of the model: a case is a line, a row of
// the model a column, so that a faulty layer is a stripe.
type heatMaps struct {
	Rows   int
	Bounds *conformance.DepthBounds
	Maps   []heatMap
	Cases  int
	Left   int
	bad    int
	// flags are the rows at fault: the first bad one and those of all sources.
	flags map[int]bool
}

type heatMap struct {
	ID, Title, Says string
	// Body are the lines, with a head and the medians.
	Head, Body template.HTML
	median     []float64
	worst      []float64
	// medianLimit is what the medians are held to, +Inf for nothing.
	medianLimit float64
}

// source is where the figures of a map come from, and the check that judges them.
type source struct {
	id, title, check string
	value            func(conformance.DepthRow) at
	share            func(conformance.DepthRow) (got, ratio float64, ok bool)
}

// at is one figure of a case: the ratio to the yardstick's, and whether it was measured.
type at struct {
	ratio    float64
	measured bool
}

func localAt(d conformance.DepthRow) at {
	if d.LocalRatio == nil {
		return at{}
	}
	return at{float64(*d.LocalRatio), true}
}

// accumulatedAt takes a row whose error and ratio are NaN for one that wasn't measured,
// unless the row itself says that something is wrong there.
func accumulatedAt(d conformance.DepthRow) at {
	a, r, n := float64(d.Accumulated), float64(d.AccumulatedRatio), float64(d.NormRatio)
	if math.IsNaN(a) && math.IsNaN(r) && !math.IsNaN(n) {
		return at{}
	}
	return at{r, true}
}

func heatMapsOf(r *conformance.Report, names []string) heatMaps {
	h := heatMaps{Bounds: r.DepthBounds, bad: -1, flags: map[int]bool{}}
	everywhere := kindOf(r) == conformance.KindAllLayers // no column stands out then
	if r.FirstBadRow != nil {
		h.bad = *r.FirstBadRow
		if !everywhere {
			h.flags[h.bad] = true
		}
	}
	for _, s := range r.Sources {
		if n, _, ok := s.Block(); ok && !everywhere {
			h.flags[n+1] = true
		}
	}
	var cases []string
	for _, n := range names {
		if d := r.Cases[n].Depth; len(d) > 0 {
			cases = append(cases, n)
			h.Rows = max(h.Rows, len(d))
		}
	}
	h.Cases = len(cases)
	if h.Rows == 0 {
		return h
	}
	h.Maps = []heatMap{
		h.draw(r, cases, source{"local", "Local error: what each layer itself introduces", "LocalError", localAt, localShare}),
		h.draw(r, cases, source{"accumulated", "Accumulated error: what each row inherits and adds", "ResidualCandidate", accumulatedAt, accumulatedShare}),
	}
	h.Maps[0].Says = "Each layer of the reference is fed with the candidate's own input of that layer. A layer that stands out here is where the fault is."
	h.Maps[1].Says = "The candidate's row beside the reference's. Rows behind a fault stay high, since they have a wrong input: the first one over the limit is where to look."
	for i, check := range []string{"LocalError", "ResidualCandidate"} {
		if l, usual := appliedToMedians(r, check), h.usualMedian(); l != nil && float64(l.Value) < usual {
			h.Maps[i].Says += fmt.Sprintf(" The medians were held to %s: %s.", figure(l.Value), sentence(l.Source))
		}
	}
	h.Left = max(0, len(cases)-maxMapCases)
	return h
}

// draw writes a map. It is built by hand: a page has thousands of cells.
func (h *heatMaps) draw(r *conformance.Report, cases []string, s source) heatMap {
	m, value := heatMap{ID: s.id, Title: s.title}, s.value
	columns := make([][]float64, h.Rows)
	for _, n := range cases {
		for i, d := range r.Cases[n].Depth {
			if v := value(d); v.measured {
				columns[i] = append(columns[i], v.ratio)
			}
		}
	}
	for _, c := range columns {
		med, top := math.NaN(), math.NaN()
		if len(c) > 0 {
			med, top = metric.Median(c), slices.Max(c)
			if slices.ContainsFunc(c, math.IsNaN) {
				med, top = math.Inf(1), math.Inf(1) // not a number is no small error
			}
		}
		m.median, m.worst = append(m.median, med), append(m.worst, top)
	}
	var head strings.Builder
	head.WriteString(`<tr><th scope="col">case</th>`)
	for i := range h.Rows {
		class := ""
		if h.flags[i] {
			class = ` class="flag"`
		}
		fmt.Fprintf(&head, `<th scope="col"%s title="row %d: %s">%s</th>`, class, i, engine.RowProbe(i), columnName(i))
	}
	head.WriteString("</tr>")
	var b strings.Builder
	medianLimit, oneLimit := h.limits()
	if l := appliedToMedians(r, s.check); l != nil {
		medianLimit = min(medianLimit, float64(l.Value))
	}
	m.medianLimit = medianLimit
	applied := appliedToCases(r, s.check, s.share)
	b.WriteString(`<tr class="med"><th scope="row">median</th>`)
	for i, x := range m.median {
		h.cell(&b, i, at{x, len(columns[i]) > 0}, medianLimit, h.flags[i], false)
	}
	b.WriteString("</tr>")
	for k, n := range cases {
		if k == maxMapCases {
			break
		}
		v, limit := r.Cases[n], oneLimit
		if l, ok := applied[n]; ok {
			limit = min(limit, l)
		}
		fmt.Fprintf(&b, `<tr><th scope="row">%s</th>`, isolated(visible(n, 60)))
		for i := range h.Rows {
			var x at
			if i < len(v.Depth) {
				x = value(v.Depth[i])
			}
			h.cell(&b, i, x, limit, h.flags[i], v.FirstBadRow != nil && *v.FirstBadRow == i)
		}
		b.WriteString("</tr>")
	}
	m.Head, m.Body = template.HTML(head.String()), template.HTML(b.String())
	return m
}

// columnName heads a column: the layer that wrote the row, E for the embedding.
func columnName(row int) string {
	if row == 0 {
		return "E"
	}
	return fmt.Sprint(row - 1)
}

// usualMedian is what medians are held to unless a check says less.
func (h *heatMaps) usualMedian() float64 {
	median, _ := h.limits()
	return median
}

// limits are those of a median and of one case; +Inf where there are none.
func (h *heatMaps) limits() (median, one float64) {
	if h.Bounds == nil {
		return math.Inf(1), math.Inf(1)
	}
	median, one = float64(h.Bounds.Median.Value), float64(h.Bounds.Single.Value)
	if h.Cases < h.Bounds.Cases {
		median = one // too few for a median of its own
	}
	return median, one
}

func (h *heatMaps) cell(b *strings.Builder, row int, x at, limit float64, flagged, first bool) {
	class := "n"
	text := "·"
	if x.measured {
		class, text = heatClass(x.ratio, limit), ratioText(x.ratio)
	}
	if flagged {
		class += " f"
	}
	if first {
		class += " w"
	}
	b.WriteString(`<td class="`)
	b.WriteString(class)
	b.WriteString(`">`)
	b.WriteString(text)
	b.WriteString("</td>")
}

// heatClass is the colour of a ratio: a to c within the limit, x to z over it.
func heatClass(ratio, limit float64) string {
	switch {
	case !(ratio <= limit): // NaN is over
		switch {
		case ratio <= 2*limit:
			return "x"
		case ratio <= 5*limit:
			return "y"
		}
		return "z"
	case math.IsInf(limit, 1): // nothing to hold it against
		switch {
		case ratio <= 1:
			return "a"
		case ratio <= 3:
			return "b"
		}
		return "c"
	case ratio <= 0.5*limit:
		return "a"
	case ratio <= 0.8*limit:
		return "b"
	}
	return "c"
}
