package conformance

import (
	"fmt"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden/trace"
)

// routeGolden holds the routers of the reference to what a trusted one recorded.
func routeGolden() *Check {
	on := func(name string, layer int, part engine.Part) Control {
		return Control{Mutant: name, Side: SideReference, Layer: layer, Part: part, Floor: 10}
	}
	return &Check{
		ID: "RouteGolden",
		Rule: "each token's set of experts is the recorded one wherever the route margin, the k-th score minus the next, is above what scores may be off by, " +
			"and another one below that is a tie; router logits and weights are the recorded ones within a small multiple of what they stray from float64; " +
			"and each choice is the top of the engine's own scores, the lowest id of equal ones first",
		Catches: []string{"a softmax on the wrong side of the top-k", "weights that aren't normalised, or scaled", "a router in bfloat16", "groups that are masked with 0",
			"experts cut off one too early", "an unstable sort of equal scores", "shared experts that are never added"},
		Level:  Extended,
		Sides:  []Side{SideReference},
		Needs:  NeedRoutes,
		Bounds: []string{"Golden"},
		Basis:  "exact: the order of the engine's own choices",
		Controls: []Control{
			on("softmax-after-top-k", 13, engine.PartRouteWeights),
			on("top-k-minus-one", 13, engine.PartRouteIDs),
			on("router-rows-rotated", 13, engine.PartRouteIDs),
			on("router-bfloat16", 13, engine.PartRouterLogits),
			on("mscale-missing", 13, engine.PartRouterLogits),
			on("yarn-off", 13, engine.PartRouterLogits),
			on("shared-experts-dropped", 13, ""),
			on("experts-permuted", 13, ""),
			// Which of two equal experts a record has says nothing: the order of the engine's own choice does.
			{Mutant: "route-ties-last-wins", Side: SideReference, Layer: 24, Part: engine.PartRouteIDs, Metric: ownOrder},
			{Mutant: "group-mask-zero", Side: SideReference, Layer: -1, Metric: routeGap, Floor: 10},
			{Mutant: "route-weights-unnormalised", Side: SideReference, Layer: -1, Metric: weightError, Floor: 10},
		},
		Across: acrossRouteGolden,
	}
}

// What findings on routes are about.
const (
	routeGap    = "route: scores would have to be off by"
	ownOrder    = "choices out of the order of the engine's own scores"
	logitError  = "relative L2 of the router's logits"
	weightError = "relative L2 of the weights, by expert"
	recordWrong = "routes that nothing can be held to"
)

func acrossRouteGolden(run *RunEvidence) *Outcome {
	ev := run.Routes
	if ev == nil {
		return nil
	}
	var fs []Finding
	var all routeTally
	for i := range ev.Runs {
		j := newRouteJudge(run.Budgets, &ev.Runs[i])
		j.judge()
		fs, all = append(fs, j.findings()...), all.plus(j.tally)
	}
	for i := range ev.Gates {
		j := gateJudge(run.Budgets, &ev.Gates[i], nil)
		fs, all = append(fs, j.findings()...), all.plus(j.tally)
	}
	if all.Judged() == 0 {
		o := skip("no route could be judged")
		return &o
	}
	o := bounded(append(fs, all.finding()))
	return &o
}

// routeTally counts routes.
type routeTally struct {
	trace.RouteTally
	// behind are those that were not judged: another set of experts came before them.
	behind int
}

func (t routeTally) plus(o routeTally) routeTally {
	t.Merge(o.RouteTally)
	t.behind += o.behind
	return t
}

// finding reports the ties. There is no bound on their number but that of all routes.
func (t routeTally) finding() Finding {
	f := Finding{Metric: "routes that are a TIE", Got: Number(t.Tie), Limit: Limit{Number(t.Judged()), "the routes that were judged"}, At: Nowhere}
	if t.behind > 0 {
		f.Detail = fmt.Sprintf("%d more were not judged: they are behind another set of experts", t.behind)
	}
	return f
}
