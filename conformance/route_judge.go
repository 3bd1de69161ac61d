package conformance

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden"
	"github.com/plumbline-go/plumbline/golden/metric"
	"github.com/plumbline-go/plumbline/golden/trace"
)

// routeJudge judges the routers of one case.
type routeJudge struct {
	name   string
	budget golden.Budget
	floors map[string]float64
	tally  routeTally
	worst  map[worstKey]*worstRow
	order  []worstKey
	// seen, if set, is told of every row.
	seen func(layer int, v trace.RouteVerdict)
}

// tell counts a verdict.
func (j *routeJudge) tell(layer int, v trace.RouteVerdict) {
	j.tally.Add(v)
	if j.seen != nil {
		j.seen(layer, v)
	}
}

// worstKey names what is worst of: rows of a place, by metric.
type worstKey struct {
	probe  engine.Probe
	metric string
}

// worstRow is the row of a place that is nearest to its bound or furthest above it.
type worstRow struct {
	Finding
	ratio      float64
	over, rows int
}

func (j *routeJudge) findings() []Finding {
	var out []Finding
	for _, k := range j.order {
		w := j.worst[k]
		f := w.Finding
		switch {
		case w.over > 1:
			f.Detail = strings.TrimPrefix(fmt.Sprintf("%s; %d of %d rows", f.Detail, w.over, w.rows), "; ")
		case f.Exact && w.over == 0:
			continue // nothing but what is wrong is worth a line
		}
		f.Detail = strings.TrimSuffix(j.name+": "+f.Detail, ": ")
		out = append(out, f)
	}
	return out
}

// note keeps a finding if it is the worst of its kind.
func (j *routeJudge) note(f Finding) {
	k := worstKey{f.Probe, f.Metric}
	if j.worst == nil {
		j.worst = map[worstKey]*worstRow{}
	}
	w := j.worst[k]
	if w == nil {
		w = &worstRow{ratio: math.Inf(-1)}
		j.worst[k], j.order = w, append(j.order, k)
	}
	w.rows++
	bad := over(float64(f.Got), float64(f.Limit.Value))
	ratio := excess(f)
	if f.Exact {
		bad = f.Got != f.Limit.Value
		ratio = 0
	}
	if bad {
		w.over++
	}
	if math.IsNaN(ratio) {
		ratio = 0
		if bad {
			ratio = math.Inf(1)
		}
	}
	if ratio > w.ratio || f.Exact && bad && w.over == 1 {
		w.ratio, w.Finding = ratio, f
	}
}

func newRouteJudge(b Budgets, r *RoutedRun) *routeRun {
	return &routeRun{routeJudge: routeJudge{name: r.Name, budget: b.Golden, floors: r.Floors}, run: r}
}

// routeRun judges the free run of a model.
type routeRun struct {
	routeJudge
	run *RoutedRun
}

func (j *routeRun) judge() {
	r := j.run
	var front *trace.Front
	for _, n := range routersOf(r.Arch) {
		part := func(p engine.Part) string { return string(engine.Block(n, p)) }
		logits := r.Golden.Tensors[part(engine.PartRouterLogits)]
		if front == nil {
			front = trace.NewFront(len(logits))
		}
		for t, want := range logits {
			if !front.JudgesRoute(n, t) {
				j.tally.behind++
				if j.seen != nil {
					j.seen(n, trace.RouteVerdict{Class: trace.RouteUnjudged})
				}
				continue
			}
			row := routedRow{layer: n, position: t, experts: r.Arch.PerLayer[n].Experts, bias: r.Bias[n], floors: [2]float64{j.floors[part(engine.PartRouterLogits)], j.floors[part(engine.PartRouteWeights)]}}
			row.want = routeOf{logits: want, ids: r.Golden.Tensors[part(engine.PartRouteIDs)][t], weights: r.Golden.Tensors[part(engine.PartRouteWeights)][t]}
			row.got = r.route(r.Free, n, t)
			if j.row(row) != trace.RouteMatch {
				front.Mismatch(n, t)
			}
		}
	}
}

// route is what a run's router made of a position.
func (r *RoutedRun) route(got map[engine.Probe]engine.Matrix, layer, position int) routeOf {
	row := func(p engine.Part) []float32 {
		at, _, _ := r.at(got, engine.Block(layer, p), position)
		return at
	}
	return routeOf{row(engine.PartRouterLogits), row(engine.PartRouterScores), row(engine.PartRouteIDs), row(engine.PartRouteWeights)}
}

// routeOf is what a router made of one row.
type routeOf struct{ logits, scores, ids, weights []float32 }

// routedRow is a row of a router, and what it is held to. floors are those of logits
// and of weights.
type routedRow struct {
	layer, position int
	file            string
	experts         engine.Experts
	bias            []float64
	floors          [2]float64
	want, got       routeOf
}

func (r routedRow) finding(part engine.Part, metric string, got, limit float64, source string) Finding {
	f := Finding{Metric: metric, Got: Number(got), Limit: Limit{Number(limit), source}, At: At{Row: -1, Channel: -1, Position: &r.position, File: r.file}}
	if r.layer >= 0 {
		f.Probe, f.At.Row = engine.Block(r.layer, part), r.layer+1
	}
	return f
}

// row judges one row, and says how its route compares to the recorded one.
func (j *routeJudge) row(r routedRow) trace.RouteClass {
	logits, want := wide(r.want.logits), r.want
	spread := j.budget.Value * math.Max(r.floors[0], roundingOf("float32"))
	j.note(r.finding(engine.PartRouterLogits, logitError, apart(wide(r.got.logits), logits), spread, j.budget.Describe()))

	wantIDs, ok := wholeIDs(want.ids)
	gotIDs, whole := wholeIDs(r.got.ids)
	v := trace.RouteVerdict{Class: trace.RouteUnjudged}
	if ok && whole {
		c := choiceOf(r.experts, logits, r.bias, spread*metric.L2(logits), trace.Float32, "what logits may be off by, "+j.budget.Describe())
		v = c.judge(wantIDs, gotIDs)
	}
	j.tell(r.layer, v)
	switch v.Class {
	case trace.RouteUnjudged:
		f := r.finding(engine.PartRouteIDs, recordWrong, 1, 0, "the recorded logits explain the recorded route, and experts are those of the model")
		f.Exact, f.Detail = true, fmt.Sprintf("recorded %v, chosen %v", want.ids, r.got.ids)
		j.note(f)
		return v.Class
	case trace.RouteFlip, trace.RouteTie:
		f := r.finding(engine.PartRouteIDs, routeGap, v.Gap, v.Band, "the tie band")
		f.Detail = fmt.Sprintf("%s: lacks %v, has %v, at a margin of %.2g", v.Class, v.Missing, v.Extra, v.Margin)
		j.note(f)
	default:
		got, want := byExpert(wantIDs, gotIDs, r.got.weights, want.weights)
		j.note(r.finding(engine.PartRouteWeights, weightError, apart(got, want),
			j.budget.Value*math.Max(r.floors[1], roundingOf("float32")), j.budget.Describe()))
	}
	j.ownOrder(r, gotIDs)
	return v.Class
}

// ownOrder wants the choice to be the top of the engine's own scores, in order.
func (j *routeJudge) ownOrder(r routedRow, ids []int) {
	top := metric.TopN(wide(r.got.scores), r.experts.PerToken)
	f := r.finding(engine.PartRouteIDs, ownOrder, 0, 0, "the top of the scores, the lowest of equal ids first")
	f.Exact = true
	if !slices.Equal(top, ids) {
		f.Got, f.Detail = 1, fmt.Sprintf("chosen %v of scores whose top are %v", ids, top)
	}
	j.note(f)
}

// apart is the relative L2 of two rows; NaN where they differ in length.
func apart(got, want []float64) float64 {
	if len(got) != len(want) {
		return math.NaN()
	}
	return metric.RelativeL2(got, want)
}

// byExpert are two routes' weights in one order of experts; both have the same set.
func byExpert(want, got []int, gotWeights, wantWeights []float32) (a, b []float64) {
	if len(gotWeights) != len(got) || len(wantWeights) != len(want) {
		return []float64{math.NaN()}, []float64{1}
	}
	for i, id := range want {
		a, b = append(a, float64(gotWeights[slices.Index(got, id)])), append(b, float64(wantWeights[i]))
	}
	return a, b
}

// gateJudge judges a gate alone, and tells seen, if set, of every row.
func gateJudge(b Budgets, g *GateRun, seen func(layer int, v trace.RouteVerdict)) *routeJudge {
	j := &routeJudge{name: g.Name, budget: b.Golden, floors: g.Floors, seen: seen}
	at := func(rows [][]float64, i int) []float32 {
		if i >= len(rows) {
			return nil
		}
		return matrixOf(rows[i : i+1]).Data
	}
	ids := floats(g.Got.IDs)
	for t, want := range g.Golden.Tensors[string(engine.PartRouterLogits)] {
		j.row(routedRow{layer: -1, position: t, file: g.Name, experts: g.Experts, bias: g.Bias,
			floors: [2]float64{g.Floors[string(engine.PartRouterLogits)], g.Floors[string(engine.PartRouteWeights)]},
			want:   routeOf{logits: want, ids: g.Golden.Tensors[string(engine.PartRouteIDs)][t], weights: g.Golden.Tensors[string(engine.PartRouteWeights)][t]},
			got:    routeOf{at(g.Got.Logits, t), at(g.Got.Scores, t), at(ids, t), at(g.Got.Weights, t)}})
	}
	return j
}
