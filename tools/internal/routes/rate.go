package routes

import (
	"fmt"
	"strings"

	"github.com/plumbline-go/plumbline/golden/metric"
	"github.com/plumbline-go/plumbline/golden/trace"
)

// Rate is how often near ties at one gate went to other experts. Each of them alone is
// explained by the band; a router that always takes another expert is all TIE where
// the band is wider than its margins, and only the rate of them tells.
type Rate struct {
	Layer int
	// Rows were judged, Above of them have a margin above the band: there another
	// choice is a FLIP.
	Rows, Above int
	// NearTies are the others, without exact ties, of which nobody can say who is
	// right; Mismatches are those with other experts.
	NearTies, Mismatches int
	// Calibration are the near ties on which the run with Row.Judged's scores would
	// choose otherwise: what the arithmetic alone does to the same rows.
	Calibration int
	// Probability is that of as many mismatches at the calibration's rate
	// ([trace.RouteTally.Excess]), Least what it has to be; NaN without near ties.
	Probability, Least float64
	// Blind says that no number of mismatches would be too many.
	Blind bool
}

// leastProbability is shared by all gates, so that a sound recording is refused once
// in a million however many there are.
const leastProbability = 1e-6

// fewAbove is the share of rows above the band below which flips say little.
const fewAbove = 0.1

// rate gathers a gate's near ties.
type rate struct {
	rows, above         int
	chosen, calibration trace.RouteTally
}

// add takes a row and what was made of its route.
func (g *rate) add(row Row, v trace.RouteVerdict, band trace.TieBand) {
	if v.Class == trace.RouteUnjudged || row.Judged == nil {
		return
	}
	g.rows++
	if !v.NearTie() {
		g.above++
	}
	if v.Margin == 0 {
		return
	}
	g.chosen.Add(v)
	k := len(row.Route)
	g.calibration.Add(trace.JudgeRoute(row.Reference, metric.TopN(row.Reference, k), metric.TopN(row.Judged, k), band))
}

// Rates are those of all gates that got rows.
func (r *Report) Rates() []Rate {
	var out []Rate
	for i := range r.rates {
		g := &r.rates[i]
		if g.rows == 0 {
			continue
		}
		x := Rate{
			Layer: r.shape.Gates[i], Rows: g.rows, Above: g.above, NearTies: g.chosen.NearTies, Mismatches: g.chosen.NearMismatches,
			Calibration: g.calibration.NearMismatches, Probability: g.chosen.Excess(g.calibration), Least: leastProbability / float64(len(r.shape.Gates)),
		}
		all := trace.RouteTally{NearTies: x.NearTies, NearMismatches: x.NearTies}
		x.Blind = x.NearTies > 0 && all.Excess(g.calibration) >= x.Least
		out = append(out, x)
	}
	return out
}

// Excessive reports whether near ties went to other experts more often than the
// arithmetic explains. Near ties that nothing could be held to are.
func (x *Rate) Excessive() bool { return x.NearTies > 0 && !(x.Probability >= x.Least) }

// FewAbove reports whether next to no row lies above the band.
func (x *Rate) FewAbove() bool { return float64(x.Above) < fewAbove*float64(x.Rows) }

// RatesText is a line for each gate, and which of them flips, or nothing, can't judge.
// judged and calibration are the names of the runs.
func RatesText(rates []Rate, judged, calibration string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Near ties with other experts, of %s and of %s; the probability of as many by chance is at least %.1g in a sound one.\n", judged, calibration, leastProbability)
	fmt.Fprintf(&b, "%5s  %6s  %10s  %9s  %6s  %11s  %11s\n", "layer", "rows", "above band", "near ties", "others", "calibration", "probability")
	var few, blind []string
	for i := range rates {
		x := &rates[i]
		name := fmt.Sprintf("%02d", x.Layer)
		fmt.Fprintf(&b, "%5s  %6d  %10d  %9d  %6d  %11d  %11.1e\n", name, x.Rows, x.Above, x.NearTies, x.Mismatches, x.Calibration, x.Probability)
		if x.FewAbove() {
			few = append(few, name)
		}
		if x.Blind {
			blind = append(blind, name)
		}
	}
	if len(few) > 0 {
		fmt.Fprintf(&b, "Next to no row lies above the band at layer %s: a FLIP can hardly come up there, the rate alone judges.\n", strings.Join(few, ", "))
	}
	if len(blind) > 0 {
		fmt.Fprintf(&b, "Too few near ties at layer %s, or too many that go either way, for any rate to be too high.\n", strings.Join(blind, ", "))
	}
	return b.String()
}
