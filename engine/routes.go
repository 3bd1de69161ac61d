package engine

import (
	"fmt"
	"math"
	"slices"
)

// Routing is what a router makes of rows, one entry per row.
type Routing struct {
	// Logits and Scores have one value per expert; the scores are what the experts
	// are chosen by: see PartRouterScores.
	Logits, Scores [][]float64
	// IDs are the chosen experts, the best score first and of equal ones the
	// lowest id, and Weights what their outputs are multiplied by.
	IDs     [][]int
	Weights [][]float64
}

// Margins are by how much the last score that was high enough lies above the next
// one, per row, for as many experts as were chosen: what a deviation must exceed
// before another set is chosen. It is +Inf where no other expert can be chosen, and
// says nothing of experts that were given to the router.
func (r Routing) Margins() []float64 {
	out := make([]float64, len(r.Scores))
	for i, scores := range r.Scores {
		sorted := slices.Sorted(slices.Values(scores))
		slices.Reverse(sorted)
		k := len(r.IDs[i])
		if out[i] = math.Inf(1); k < len(sorted) && !math.IsInf(sorted[k], -1) {
			out[i] = sorted[k-1] - sorted[k]
		}
	}
	return out
}

// Routes are experts that a run is to use in place of those that its routers
// choose, by decoder layer. What isn't in them is left to the routers.
type Routes map[int]LayerRoutes

// LayerRoutes are those of one layer, by position from 0 on.
type LayerRoutes struct {
	// IDs are a position's experts, as many as the layer takes; none leaves them
	// to the router, as do positions behind the last.
	IDs [][]int
	// Weights are those of the position's experts, in the order of IDs; none, and
	// positions behind the last, has the router weigh the experts given.
	Weights [][]float64
}

// At are a position's experts and weights; nil where the router is left to choose.
func (r LayerRoutes) At(position int) (ids []int, weights []float64) {
	if position < 0 || position >= len(r.IDs) || len(r.IDs[position]) == 0 {
		return nil, nil
	}
	if position < len(r.Weights) && len(r.Weights[position]) > 0 {
		weights = r.Weights[position]
	}
	return r.IDs[position], weights
}

// RouteError says that routes don't fit a model.
type RouteError struct {
	Layer int
	// Position is -1 for the layer as a whole.
	Position  int
	Got, Want string
}

func (e *RouteError) Error() string {
	if e.Position < 0 {
		return fmt.Sprintf("engine: routes: layer %d: got %s, want %s", e.Layer, e.Got, e.Want)
	}
	return fmt.Sprintf("engine: routes: layer %d: position %d: got %s, want %s", e.Layer, e.Position, e.Got, e.Want)
}

// Check holds routes to a model: layers with a router, the layer's number of
// experts, each once, and finite weights. The error is a [*RouteError].
func (r Routes) Check(a Arch) error {
	for layer, l := range r {
		if layer < 0 || layer >= a.Layers || layer >= len(a.PerLayer) || !a.RoutedAt(layer) {
			return &RouteError{layer, -1, "routes", "none: the model has no router there"}
		}
		if len(l.Weights) > len(l.IDs) {
			return &RouteError{layer, -1, fmt.Sprintf("weights of %d positions and ids of %d", len(l.Weights), len(l.IDs)), "no weights without ids"}
		}
		for pos, ids := range l.IDs {
			var weights []float64
			if pos < len(l.Weights) {
				weights = l.Weights[pos]
			}
			if got, want := a.PerLayer[layer].Experts.checkRoute(ids, weights); got != "" {
				return &RouteError{layer, pos, got, want}
			}
		}
	}
	return nil
}

// checkRoute says what is wrong with a position's experts; nothing is.
func (e Experts) checkRoute(ids []int, weights []float64) (got, want string) {
	switch {
	case len(ids) == 0 && len(weights) == 0:
		return "", ""
	case len(ids) != e.PerToken:
		return fmt.Sprintf("%d experts", len(ids)), fmt.Sprint(e.PerToken)
	case len(weights) != 0 && len(weights) != len(ids):
		return fmt.Sprintf("%d weights", len(weights)), fmt.Sprintf("one per expert, %d, or none", len(ids))
	}
	for i, id := range ids {
		if id < 0 || id >= e.Count {
			return fmt.Sprintf("expert %d", id), fmt.Sprintf("0 to %d", e.Count-1)
		}
		if slices.Contains(ids[:i], id) {
			return fmt.Sprintf("expert %d twice", id), "each once"
		}
	}
	for _, w := range weights {
		if math.IsNaN(w) || math.IsInf(w, 0) {
			return fmt.Sprintf("weight %v", w), "a finite value"
		}
	}
	return "", ""
}

// RoutesOf takes the experts, and where it has them and they are wanted the
// weights, of all layers with a router from the probes of a run. It is an error
// where there are no ids at all, or ids that are no whole numbers; [Routes.Check]
// does the rest.
func RoutesOf(src ProbeSource, a Arch, weights bool) (Routes, error) {
	r, have := Routes{}, src.Probes()
	for layer := range a.Layers {
		if !a.RoutedAt(layer) || !slices.Contains(have, Block(layer, PartRouteIDs)) {
			continue
		}
		m, err := src.Matrix(Block(layer, PartRouteIDs))
		if err != nil {
			return nil, err
		}
		var l LayerRoutes
		for pos := range m.Rows {
			ids := make([]int, m.Width)
			for i, v := range m.Row(pos) {
				if ids[i] = int(v); float32(ids[i]) != v {
					return nil, &RouteError{layer, pos, fmt.Sprintf("expert %v", v), "a whole number"}
				}
			}
			l.IDs = append(l.IDs, ids)
		}
		if weights && slices.Contains(have, Block(layer, PartRouteWeights)) {
			w, err := src.Matrix(Block(layer, PartRouteWeights))
			if err != nil {
				return nil, err
			}
			if w.Rows != m.Rows || w.Width != m.Width {
				return nil, &RouteError{layer, -1, fmt.Sprintf("weights of %d positions of %d", w.Rows, w.Width), fmt.Sprintf("%d of %d, as the ids", m.Rows, m.Width)}
			}
			for pos := range w.Rows {
				row := make([]float64, w.Width)
				for i, v := range w.Row(pos) {
					row[i] = float64(v)
				}
				l.Weights = append(l.Weights, row)
			}
		}
		r[layer] = l
	}
	if len(r) == 0 {
		return nil, fmt.Errorf("engine: routes: got no %s of a layer with a router, want those of at least 1", PartRouteIDs)
	}
	return r, nil
}

// Stage is one place of a model that a batch of prompts runs through: what a trace
// sees of it.
type Stage struct {
	// Probe is ProbeEmbed, the residual stream behind a layer, or ProbeFinalNorm.
	Probe Probe
	// Rows has one row for each slot of each prompt, prompt by prompt, the padding
	// included.
	Rows Matrix
	// Routing is that of the layer, where it has a router, with as many rows.
	Routing *Routing
}
