package conformance

import (
	"math"
	"slices"
	"strings"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden/metric"
	"github.com/plumbline-go/plumbline/golden/trace"
)

// Bins are powers of two; a margin below the least of them says no more than that.
const leastMarginExp, mostMarginExp = -40, 8

// allRouters is the Router of all routers of a set together.
const allRouters = "*"

// marginRow is what became of one choice of a router.
type marginRow struct {
	margin, band float64
	class        trace.RouteClass
}

// marginSet are the rows of one set of cases, by router, in the order of their judging.
type marginSet struct {
	name    string
	routers []string
	rows    map[string][]marginRow
}

func (s *marginSet) add(router string, v trace.RouteVerdict) {
	if s.rows == nil {
		s.rows = map[string][]marginRow{}
	}
	if _, ok := s.rows[router]; !ok {
		s.routers = append(s.routers, router)
	}
	s.rows[router] = append(s.rows[router], marginRow{v.Margin, v.Band, v.Class})
}

// routeMargins judges the routers again, and keeps each row's margin where the checks
// keep the worst.
func routeMargins(run *RunEvidence) []RouteMargins {
	if run.Routes == nil {
		return nil
	}
	var sets []*marginSet
	named := func(name string) *marginSet {
		for _, s := range sets {
			if s.name == name {
				return s
			}
		}
		sets = append(sets, &marginSet{name: name})
		return sets[len(sets)-1]
	}
	for i := range run.Routes.Runs {
		if r := &run.Routes.Runs[i]; r.Free != nil {
			set, _, _ := strings.Cut(r.Name, "/")
			s, j := named(set), newRouteJudge(run.Budgets, r)
			j.seen = func(layer int, v trace.RouteVerdict) { s.add(routerName(layer), v) }
			j.judge()
		}
	}
	for i := range run.Routes.Gates {
		g := &run.Routes.Gates[i]
		set, gate, _ := strings.Cut(g.Name, "/")
		s := named(set)
		gateJudge(run.Budgets, g, func(_ int, v trace.RouteVerdict) { s.add(gate, v) })
	}
	j := &candidateJudge{budgets: run.Budgets}
	for _, c := range run.Routes.Candidates {
		if c.Refused != nil {
			j.runs = nil // the check judges none either
			break
		}
		if c.None == "" {
			j.runs = append(j.runs, c)
		}
	}
	if len(j.runs) > 0 {
		set, rest, _ := strings.Cut(j.runs[0].Name, "/")
		_, candidate, _ := strings.Cut(rest, " of ")
		s := named(set + ", " + candidate)
		j.seen = func(layer int, v trace.RouteVerdict) { s.add(routerName(layer), v) }
		j.judge()
	}
	return marginsOf(sets)
}

func routerName(layer int) string { return string(engine.Block(layer, engine.PartRouteIDs)) }

// marginsOf counts: all routers of each set first, then each router.
func marginsOf(sets []*marginSet) []RouteMargins {
	var all, each []RouteMargins
	for _, s := range sets {
		var rows []marginRow
		for _, router := range s.routers {
			rows = append(rows, s.rows[router]...)
		}
		all = append(all, countMargins(s.name, allRouters, rows))
		for _, router := range s.routers {
			each = append(each, countMargins(s.name, router, s.rows[router]))
		}
	}
	return append(all, each...)
}

func countMargins(name, router string, rows []marginRow) RouteMargins {
	low, high := marginRange(rows)
	out := RouteMargins{Name: name, Router: router, Match: make([]int, high-low), Tie: make([]int, high-low), Flip: make([]int, high-low)}
	for e := low; e <= high; e++ {
		out.Edges = append(out.Edges, Number(math.Ldexp(1, e)))
	}
	var bands []float64
	for _, r := range rows {
		if !r.judged() {
			out.Unjudged++
			continue
		}
		bands = append(bands, r.band)
		bin := min(max(marginExp(r.margin)-low, 0), high-low-1)
		switch r.class {
		case trace.RouteMatch:
			out.Match[bin]++
		case trace.RouteTie:
			out.Tie[bin]++
		default:
			out.Flip[bin]++
		}
	}
	out.Band = Number(metric.Median(bands))
	return out
}

func (r marginRow) judged() bool {
	return r.class == trace.RouteMatch || r.class == trace.RouteTie || r.class == trace.RouteFlip
}

// marginRange are the exponents of the first and the last edge: at least one bin.
func marginRange(rows []marginRow) (low, high int) {
	var exps []int
	for _, r := range rows {
		if r.judged() && r.margin > 0 && !math.IsInf(r.margin, 1) {
			exps = append(exps, min(max(marginExp(r.margin), leastMarginExp), mostMarginExp))
		}
	}
	if len(exps) == 0 {
		return 0, 1
	}
	return slices.Min(exps), slices.Max(exps) + 1
}

// marginExp is the e of 2^e <= margin < 2^(e+1); far out for an exact tie, and for a
// row with no other expert to choose.
func marginExp(margin float64) int {
	switch {
	case margin <= 0:
		return math.MinInt32
	case math.IsInf(margin, 1):
		return math.MaxInt32
	}
	_, e := math.Frexp(margin) // margin = f * 2^e, f in [0.5, 1)
	return e - 1
}
