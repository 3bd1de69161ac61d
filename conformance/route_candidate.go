package conformance

import (
	"cmp"
	"fmt"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden/metric"
	"github.com/plumbline-go/plumbline/golden/trace"
)

// routeCandidate holds a candidate's routers to the reference's, on the candidate's own
// choices.
func routeCandidate() *Check {
	on := func(name string, layer int, part engine.Part, floor float64) Control {
		return Control{Mutant: name, Side: SideCandidate, Layer: layer, Part: part, Floor: floor}
	}
	return &Check{
		ID: "RouteCandidate",
		Rule: "with the candidate's experts forced on it, the reference would choose the same ones wherever its margin is above the tie band, " +
			"which follows what the candidate's arithmetic makes of scores and the type that it routes in; weights are within a multiple of the yardstick's error, " +
			"and near ties fall otherwise no more often than a sound engine's do, over all layers and in each of them",
		Catches: []string{"a router that is wrong in one layer", "weights that aren't normalised", "a comparison that prefers the smaller of two near scores", "experts in another order than the router's rows"},
		Level:   Extended,
		Sides:   []Side{SideCandidate},
		Needs:   NeedRouteCandidate,
		Bounds:  []string{"RouteBand", "RouteWeights", "RouteRate"},
		Controls: []Control{
			on("softmax-after-top-k", 13, engine.PartRouteWeights, 2),
			{Mutant: "top-k-minus-one", Side: SideCandidate, Layer: 13, Part: engine.PartRouteIDs, Kind: KindFormat},
			on("router-rows-rotated", 13, engine.PartRouteIDs, 2),
			{Mutant: "near-ties-reversed", Side: SideCandidate, Layer: -1, Metric: nearTies, Floor: 2},
			{Mutant: "near-ties-reversed-one-layer", Side: SideCandidate, Layer: 18, Part: engine.PartRouteIDs, Metric: nearTiesInLayer, Floor: 2},
		},
		Across: acrossRouteCandidate,
	}
}

const (
	nearTies        = "near ties that fall otherwise"
	nearTiesInLayer = "near ties of the layer that fall otherwise"
)

func acrossRouteCandidate(run *RunEvidence) *Outcome {
	ev := run.Routes
	if ev == nil {
		return nil
	}
	if len(ev.Candidates) == 0 {
		o := skip("the run has no candidate with routed experts")
		return &o
	}
	var fs []Finding
	for _, c := range ev.Candidates {
		if e := c.Refused; e != nil {
			p := engine.Block(e.Layer, engine.PartRouteIDs)
			f := Finding{Probe: p, Metric: "routes that fit the model", Exact: true, Got: 0, Limit: Limit{1, "the model's router"}, At: atPlace(p, e.Position), Detail: c.Name + ": " + e.Error()}
			if e.Position < 0 {
				f.At.Position = nil
			}
			fs = append(fs, f)
		}
	}
	if len(fs) > 0 {
		o := fail(KindFormat, fs...)
		return &o
	}
	j := &candidateJudge{budgets: run.Budgets}
	none := ""
	for _, c := range ev.Candidates {
		if none = cmp.Or(none, c.None); c.None == "" {
			j.runs = append(j.runs, c)
		}
	}
	if len(j.runs) == 0 {
		o := unsupported(none)
		return &o
	}
	fs = j.judge()
	if j.rows == 0 {
		o := skip("no route of the candidate could be judged")
		return &o
	}
	o := bounded(fs)
	return &o
}

// candidateJudge judges all cases of a candidate, layer by layer.
type candidateJudge struct {
	budgets   Budgets
	runs      []CandidateRun
	rows      int // that were judged
	own, yard trace.RouteTally
	// seen, if set, is told of every row of the candidate's.
	seen func(layer int, v trace.RouteVerdict)
}

func (j *candidateJudge) judge() []Finding {
	var fs []Finding
	routers := routersOf(j.runs[0].Arch)
	for _, n := range routers {
		own, yard := j.own, j.yard
		j.own, j.yard = trace.RouteTally{}, trace.RouteTally{}
		fs = append(fs, j.layer(n)...)
		if j.own.NearTies > 0 {
			fs = append(fs, j.layerRate(n, len(routers)))
		}
		j.own.Merge(own)
		j.yard.Merge(yard)
	}
	return append(fs, j.rate())
}

// eachRow calls f for every row of a layer that has a choice.
func (j *candidateJudge) eachRow(layer int, f func(c *CandidateRun, position int)) {
	for i := range j.runs {
		c := &j.runs[i]
		rows := min(c.Chosen[engine.Block(layer, engine.PartRouteIDs)].Rows, c.Reference[engine.Block(layer, engine.PartRouterScores)].Rows)
		for t := range rows {
			f(c, t)
		}
	}
}

// layer judges a layer's router over all cases.
func (j *candidateJudge) layer(n int) []Finding {
	x := j.runs[0].Arch.PerLayer[n].Experts
	k := x.PerToken
	var noise []float64
	j.eachRow(n, func(c *CandidateRun, t int) {
		noise = append(noise, pairErrors(scoresAt(c.Reference, n, t), routerAt(c.Reference, n, engine.PartRouterLogits, t), routerAt(c.Yard, n, engine.PartRouterLogits, t), k)...)
	})
	if len(noise) == 0 {
		return nil
	}
	b := j.budgets.RouteBand
	p99 := metric.P99(noise)
	verdict := func(scores []float64, got []int) trace.RouteVerdict {
		top := metric.TopN(scores, k)
		band := trace.TieBand{Routing: j.runs[0].Routing, Measured: b}
		if len(top) == k {
			band.Measured.Value = scoreNoise(x.Gate, scores[top[k-1]], b.Value*p99)
		}
		return trace.JudgeRoute(scores, top, got, band)
	}
	var worst *Finding
	var mine, theirs []float64
	flips, rows := 0, 0
	ids := engine.Block(n, engine.PartRouteIDs)
	j.eachRow(n, func(c *CandidateRun, t int) {
		scores := scoresAt(c.Reference, n, t)
		got, _ := wholeIDs(c.Chosen[ids].Row(t))
		v := verdict(scores, got)
		j.count(&j.own, v)
		if j.seen != nil {
			j.seen(n, v)
		}
		rows++
		if v.Class == trace.RouteFlip || v.Class == trace.RouteUnjudged {
			flips++
		}
		if f := (Finding{Probe: ids, Metric: routeGap, Got: Number(v.Gap), Limit: Limit{Number(v.Band), "the tie band: " + b.Describe()}, At: atPlace(ids, t),
			Detail: fmt.Sprintf("%s: %s: lacks %v, has %v, at a margin of %.2g", c.Name, v.Class, v.Missing, v.Extra, v.Margin)}); v.Class != trace.RouteMatch && (worst == nil || excess(f) > excess(*worst)) {
			worst = &f
		}
		if w := c.Chosen[engine.Block(n, engine.PartRouteWeights)]; t < w.Rows {
			want := expertWeights(x, routerAt(c.Reference, n, engine.PartRouterLogits, t), got)
			mine = append(mine, apart(wide(w.Row(t)), want))
			theirs = append(theirs, apart(expertWeights(x, routerAt(c.Yard, n, engine.PartRouterLogits, t), got), want))
		}
	})
	for i := range j.runs {
		c := &j.runs[i]
		own := c.YardChosen[ids]
		for t := range own.Rows {
			scores := scoresAt(c.YardReference, n, t)
			got, _ := wholeIDs(own.Row(t))
			j.count(&j.yard, verdict(scores, got))
		}
	}
	var fs []Finding
	if worst != nil {
		if flips > 1 {
			worst.Detail += fmt.Sprintf("; %d of %d rows", flips, rows)
		}
		fs = append(fs, *worst)
	}
	if len(mine) > 0 {
		p := engine.Block(n, engine.PartRouteWeights)
		b := j.budgets.RouteWeights
		fs = append(fs, Finding{Probe: p, Metric: "relative L2 of the weights, 99th percentile", Got: Number(metric.P99(mine)),
			Limit: Limit{Number(b.Value * metric.P99(theirs)), b.Describe()}, At: AtRow(n + 1)})
	}
	j.rows += rows
	return fs
}

// count leaves exact ties out: which of two equal scores is right nobody can say.
func (j *candidateJudge) count(t *trace.RouteTally, v trace.RouteVerdict) {
	if v.Margin != 0 {
		t.Add(v)
	}
}

// rate holds the share of near ties that fall otherwise to the yardstick's.
func (j *candidateJudge) rate() Finding {
	limit := mostMismatches(j.own.NearTies, j.yard, j.budgets.RouteRate.Value)
	return Finding{Metric: nearTies, Got: Number(j.own.NearMismatches), Limit: Limit{Number(limit), j.budgets.RouteRate.Describe()}, At: Nowhere,
		Detail: fmt.Sprintf("%d of %d; the yardstick's: %d of %d", j.own.NearMismatches, j.own.NearTies, j.yard.NearMismatches, j.yard.NearTies)}
}

// layerRate holds a layer's share to the yardstick's in that layer: among those of all
// layers a fault of one is lost. Of so many layers one is as unlikely by chance, so the
// probability is divided by their number.
func (j *candidateJudge) layerRate(layer, layers int) Finding {
	limit := mostMismatches(j.own.NearTies, j.yard, j.budgets.RouteRate.Value/float64(layers))
	return Finding{Probe: engine.Block(layer, engine.PartRouteIDs), Metric: nearTiesInLayer, Got: Number(j.own.NearMismatches),
		Limit: Limit{Number(limit), fmt.Sprintf("%s, shared by %d layers", j.budgets.RouteRate.Describe(), layers)}, At: AtRow(layer + 1),
		Detail: fmt.Sprintf("%d of %d; the yardstick's: %d of %d", j.own.NearMismatches, j.own.NearTies, j.yard.NearMismatches, j.yard.NearTies)}
}

// mostMismatches is the largest number of mismatches among so many near ties whose
// probability, at the calibration's rate, is not below least.
func mostMismatches(nearTies int, calibration trace.RouteTally, least float64) int {
	for x := nearTies; x > 0; x-- {
		t := trace.RouteTally{NearTies: nearTies, NearMismatches: x}
		if p := t.Excess(calibration); !(p < least) {
			return x
		}
	}
	return 0
}
