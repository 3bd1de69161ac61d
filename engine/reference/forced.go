package reference

import (
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/plumbline-go/plumbline/engine"
)

// Forced returns an engine of the same model, on the same weights and graphs, whose
// runs use given experts where the routes have some, and leave the others to the
// routers: with the experts of another engine, what is still different is no flip
// of a route. Runs of one sequence take the first routes, a batch one for each
// sequence. Positions count the sequence's tokens from 0 on, new ones behind the
// prompt's, padding not at all; those of LayerAll are the rows.
//
// Where experts are given without weights the router weighs them as if it had
// chosen them. Its probes stay what they are without, but for route_ids and
// route_weights. Float64 and Float32 keep the routes. Routes that don't fit the
// model are an [*engine.RouteError].
func (e *Engine) Forced(routes ...engine.Routes) (*Engine, error) {
	for i, r := range routes {
		if err := r.Check(e.arch); err != nil {
			return nil, fmt.Errorf("reference: routes %d of %d: %w", i, len(routes), err)
		}
	}
	base := e
	if e.base != nil {
		base = e.base
	}
	view := &Engine{
		weights: base.weights, arch: base.arch, set: base.set, dev: base.dev, kv: base.kv, embed: base.embed,
		graphs: base.graphs, layers: base.layers, experts: base.experts, eps: base.eps, finalNorm: base.finalNorm, finalEps: base.finalEps,
		norm: base.norm, logits: base.logits, quantiser: base.quantiser,
		base: base, forced: routes,
	}
	// Alone the graph of the whole step has the routes as inputs.
	return view, view.prepare([]namedGraph{{&view.whole, "whole step with routes", view.wholeStepGraph}})
}

// forcedIn is the receiver, which has forced routes, in another arithmetic.
func (e *Engine) forcedIn(d DType) (*Engine, error) {
	other := e.base.Float32
	if d == Float64 {
		other = e.base.Float64
	}
	base, err := other()
	if err != nil {
		return nil, err
	}
	return base.(*Engine).Forced(e.forced...)
}

// checkForced refuses a batch that the routes don't fit.
func (e *Engine) checkForced(sequences int) error {
	if e.forced != nil && len(e.forced) != sequences {
		return fmt.Errorf("reference: batch: got routes of %d sequences, want as many as prompts, %d", len(e.forced), sequences)
	}
	return nil
}

// forceInGraph is force inside one graph, on one row: ids [1, k], negative where
// the router chooses, the weights given [1, k], and where those hold, [1, k] of 0
// and 1.
func (g *layerGraphs) forceInGraph(l *layerNodes, ids, weights, given *graph.Node) {
	r := l.routing
	r.ids = graph.Where(graph.GreaterOrEqual(ids, graph.ZerosLike(ids)), ids, r.ids)
	r.weights = graph.Where(graph.GreaterThan(given, graph.ZerosLike(given)), weights, expertWeights(g.experts, r.logits, r.ids))
}

// forcedArgs are the inputs of forceInGraph for layer n at a position.
func (e *Engine) forcedArgs(n, position int) ([]any, error) {
	k := e.graphs[n].experts.PerToken
	var ids []int
	var weights []float64
	if len(e.forced) > 0 {
		ids, weights = e.forced[0][n].At(position)
	}
	given := slices.Repeat([]int{0}, k)
	if ids == nil {
		ids = slices.Repeat([]int{-1}, k)
	}
	if weights != nil {
		given = slices.Repeat([]int{1}, k)
	} else {
		weights = make([]float64, k)
	}
	idsAt, err := e.dev.index(ids, 1, k)
	if err != nil {
		return nil, err
	}
	weightsAt, err := upload(e.dev, weights, 1, k)
	if err != nil {
		return nil, err
	}
	givenAt, err := e.dev.index(given, 1, k)
	return []any{idsAt, weightsAt, givenAt}, err
}
