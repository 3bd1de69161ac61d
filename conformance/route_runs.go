package conformance

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden/metric"
	"github.com/plumbline-go/plumbline/golden/trace"
)

// CandidateRun is a case of a candidate with routed experts, beside the reference with
// the candidate's experts forced on it, and its weights where it has them: each row has
// the same choices before it.
type CandidateRun struct {
	// Name is SET/CASE of CANDIDATE.
	Name    string
	Arch    engine.Arch
	Routing trace.DType
	// Refused says why the candidate's routes fit no run of the model, None why there
	// are none.
	Refused *engine.RouteError
	None    string
	// Chosen are the candidate's route_ids and, where it has them, route_weights.
	// Reference and Yard are the routers' places with those forced.
	Chosen          map[engine.Probe]engine.Matrix
	Reference, Yard map[engine.Probe]engine.Matrix
	// YardChosen are the yardstick's own choices, YardReference the reference with
	// those forced: how often a sound engine's near ties fall otherwise.
	YardChosen, YardReference map[engine.Probe]engine.Matrix
}

// candidate adds the runs of a candidate on a batch.
func (m *RoutedModel) candidate(ctx context.Context, b routedBatch, ev *RouteEvidence) error {
	c := m.Candidate
	runs := make([]CandidateRun, len(b.cases))
	routes := make([]engine.Routes, len(b.cases))
	out := false // there is nothing to force
	for i, name := range b.names {
		runs[i] = CandidateRun{Name: m.Golden.Manifest.Set + "/" + name + " of " + c.Name, Arch: m.Arch, Routing: c.Routing}
		src, err := c.Places(ctx, name, b.cases[i])
		if err != nil {
			return fmt.Errorf("candidate: %w", err)
		}
		runs[i].Chosen, routes[i], err = chosenBy(src, m.Arch)
		if errors.As(err, &runs[i].Refused) {
			err = nil
		}
		if len(runs[i].Chosen) == 0 {
			runs[i].None = "the candidate has no route_ids of any layer with a router"
		}
		if err := errors.Join(err, src.Close()); err != nil {
			return fmt.Errorf("candidate: %w", err)
		}
		out = out || runs[i].Refused != nil || runs[i].None != ""
	}
	if out {
		ev.Candidates = append(ev.Candidates, runs...)
		return nil
	}
	both := func(routes []engine.Routes, model engine.Routed) ([]map[engine.Probe]engine.Matrix, error) {
		forced, err := model.WithRoutes(routes...)
		if err != nil {
			return nil, err
		}
		return m.places(ctx, forced, b, m.choices())
	}
	want, err := both(routes, m.Reference)
	if err != nil {
		return err
	}
	yard, err := both(routes, c.Yardstick)
	if err != nil {
		return fmt.Errorf("yardstick: %w", err)
	}
	free, err := m.places(ctx, c.Yardstick, b, m.choices())
	if err != nil {
		return fmt.Errorf("yardstick: %w", err)
	}
	own := make([]engine.Routes, len(free))
	for i := range free {
		if own[i], err = engine.RoutesOf(engine.ProbeValues(free[i]), m.Arch, true); err != nil {
			return fmt.Errorf("yardstick: %w", err)
		}
	}
	again, err := both(own, m.Reference)
	if err != nil {
		return err
	}
	for i := range runs {
		runs[i].Reference, runs[i].Yard, runs[i].YardChosen, runs[i].YardReference = want[i], yard[i], free[i], again[i]
	}
	ev.Candidates = append(ev.Candidates, runs...)
	return nil
}

// chosenBy reads a candidate's choices. Routes that fit no run are a
// [*engine.RouteError].
func chosenBy(src engine.ProbeSource, a engine.Arch) (map[engine.Probe]engine.Matrix, engine.Routes, error) {
	out := map[engine.Probe]engine.Matrix{}
	for _, n := range routersOf(a) {
		for _, part := range []engine.Part{engine.PartRouteIDs, engine.PartRouteWeights} {
			p := engine.Block(n, part)
			if positions, _ := src.Shape(p); positions == 0 {
				continue
			}
			m, err := src.Matrix(p)
			if err != nil {
				return nil, nil, err
			}
			out[p] = m
		}
	}
	if !slices.ContainsFunc(routersOf(a), func(n int) bool { return out[engine.Block(n, engine.PartRouteIDs)].Rows > 0 }) {
		return nil, nil, nil
	}
	routes, err := engine.RoutesOf(engine.ProbeValues(out), a, true)
	if err != nil {
		return out, nil, err
	}
	return out, routes, routes.Check(a)
}

// routerAt is what a run's router has at a position of a layer: logits, or selection
// scores.
func routerAt(run map[engine.Probe]engine.Matrix, layer int, part engine.Part, position int) []float64 {
	return wide(run[engine.Block(layer, part)].Row(position))
}

func scoresAt(run map[engine.Probe]engine.Matrix, layer, position int) []float64 {
	return routerAt(run, layer, engine.PartRouterScores, position)
}

// pairErrors are how far the yardstick has differences of logits off, of each expert
// that the reference would choose from each that it wouldn't.
func pairErrors(scores, want, yard []float64, k int) []float64 {
	top := metric.TopN(scores, k)
	if len(yard) != len(want) || !allFinite(want) || !allFinite(yard) {
		return nil
	}
	var out []float64
	for j := range want {
		if slices.Contains(top, j) || math.IsInf(scores[j], -1) { // no choice of its own
			continue
		}
		for _, i := range top {
			out = append(out, math.Abs((yard[i]-yard[j])-(want[i]-want[j])))
		}
	}
	return out
}
