package conformance

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/plumbline-go/plumbline/engine"
)

// forcedRoutes holds everything but the routers to what a trusted engine recorded.
func forcedRoutes() *Check {
	on := func(name string, layer int, part engine.Part) Control {
		return Control{Mutant: name, Side: SideReference, Layer: layer, Part: part, Floor: 10}
	}
	return &Check{
		ID: "ForcedRoutes",
		Rule: "with the recorded experts and weights forced on it, the reference has the recorded rows, places inside layers and logits " +
			"within a small multiple of what they stray from float64: no flip of a route is left that another fault could hide behind",
		Catches: []string{"a fault behind a flipped route", "experts in another order than the router's rows", "a softmax scale without mscale", "rotary frequencies without YaRN",
			"a latent row that never reaches the cache", "padding that is attended to"},
		Level:  Extended,
		Sides:  []Side{SideReference},
		Needs:  NeedForcedRoutes,
		Bounds: []string{"Golden"},
		Controls: []Control{
			on("fault-beside-a-flip", 13, engine.PartSharedOut),
			on("shared-experts-dropped", 13, engine.PartSharedOut),
			on("experts-permuted", 13, engine.PartMLPOut),
			on("mscale-missing", 13, engine.PartAttnOut),
			on("yarn-off", 13, engine.PartQRope),
			on("latent-row-stale", 13, engine.PartAttnOut),
			on("trace-padding-unmasked", 0, engine.PartResidPost),
		},
		Across: acrossForcedRoutes,
	}
}

func acrossForcedRoutes(run *RunEvidence) *Outcome {
	ev := run.Routes
	if ev == nil {
		return nil
	}
	var fs []Finding
	for i := range ev.Runs {
		r := &ev.Runs[i]
		if r.Refused != nil {
			o := fail(KindFormat, Finding{Metric: "forced routes", Exact: true, Got: 1, Limit: Limit{0, "the recorded routes fit the model"}, At: Nowhere, Detail: r.Name + ": " + r.Refused.Error()})
			return &o
		}
		fs = append(fs, forcedRows(run.Budgets, r)...)
	}
	if len(fs) == 0 {
		o := skip("no recorded place could be compared")
		return &o
	}
	o := bounded(fs)
	return &o
}

// forcedRows compares each place of a case, in the order of computation. The worst
// row of a place stands for it.
func forcedRows(b Budgets, r *RoutedRun) []Finding {
	var fs []Finding
	broken := math.MaxInt // the first position with a place that is out of its bound
	for _, p := range inOrder(r.Golden.Tensors) {
		floor := math.Max(r.Floors[string(p)], roundingOf("float32"))
		worst, first, bad, rows := Finding{Got: Number(math.Inf(-1))}, math.MaxInt, 0, 0
		for i, want := range r.Golden.Tensors[string(p)] {
			got, position, ok := r.at(r.Forced, p, i)
			if !ok {
				continue
			}
			rows++
			f := Finding{Probe: p, Metric: "relative L2", Got: Number(apart(wide(got), wide(want))),
				Limit: Limit{Number(b.Golden.Value * floor), b.Golden.Describe()}, At: atPlace(p, position)}
			if over(float64(f.Got), float64(f.Limit.Value)) {
				bad, first = bad+1, min(first, position)
			}
			if !(f.Got <= worst.Got) {
				worst = f
			}
		}
		if rows == 0 {
			continue
		}
		worst.Detail = r.Name
		if bad > 0 {
			worst.Detail = fmt.Sprintf("%s: %d of %d rows, the first at position %d", r.Name, bad, rows, first)
			worst.follows = first >= broken
			broken = min(broken, first)
		}
		fs = append(fs, worst)
	}
	return fs
}

// inOrder are the recorded places in the order of computation, without the routers':
// those are what is forced.
func inOrder(tensors map[string][][]float32) []engine.Probe {
	var out []engine.Probe
	for name := range tensors {
		if _, part, ok := engine.Probe(name).Block(); !ok || !part.Routed() {
			out = append(out, engine.Probe(name))
		}
	}
	rank := func(p engine.Probe) int {
		_, part, ok := p.Block()
		switch {
		case ok:
			return slices.Index(engine.Parts(), part)
		case p == engine.ProbeLogits:
			return 1
		}
		return 0
	}
	slices.SortFunc(out, func(a, b engine.Probe) int {
		return cmp.Or(cmp.Compare(depthInRun(a), depthInRun(b)), cmp.Compare(rank(a), rank(b)))
	})
	return out
}

// depthInRun is the layer of a place, -1 before the first and beyond all behind the
// last.
func depthInRun(p engine.Probe) int {
	if n, _, ok := p.Block(); ok {
		return n
	}
	if p == engine.ProbeEmbed {
		return -1
	}
	return math.MaxInt
}

// atPlace are the coordinates of a place at a position.
func atPlace(p engine.Probe, position int) At {
	at := At{Row: -1, Channel: -1, Position: &position}
	if d := depthInRun(p); d < math.MaxInt {
		at.Row = d + 1
	}
	return at
}
