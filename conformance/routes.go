package conformance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden"
	"github.com/plumbline-go/plumbline/golden/trace"
)

// Routes are models with routed experts, and gates alone, beside what was recorded of
// them.
type Routes struct {
	Models []RoutedModel
	Gates  []RoutedGate
}

// RoutedModel is a model with routed experts.
type RoutedModel struct {
	// Golden is what a trusted reference recorded in float32: routes, rows of the
	// stream, places inside layers, logits. Checkpoint is what it was recorded from; if
	// given, the goldens are held to their manifest.
	Golden     *golden.TensorSet
	Checkpoint fs.FS
	// Cases are those of Golden that are run; nil for all. A batch is run as a whole.
	Cases []string
	// Arch is the checkpoint's, whatever the engines run. Bias has the biases of its
	// sigmoid gates, by layer.
	Arch engine.Arch
	Bias map[int][]float64
	// Reference runs the model in float32, and is held to Golden.
	Reference engine.Routed
	// Pad is the id that a batch is padded with.
	Pad int
	// Candidate is whose routes are held to the reference's; nil for none.
	Candidate *RoutedCandidate
}

// RoutedCandidate is an engine that ran the golden's cases, along their forced tokens.
type RoutedCandidate struct {
	// Name is what it calls itself.
	Name string
	// Routing is the type that its routers score in.
	Routing trace.DType
	// Places are what it had at every position of a case: route_ids of each layer with
	// a router, and route_weights where it has them.
	Places func(ctx context.Context, name string, c golden.TensorCase) (engine.ProbeSource, error)
	// Yardstick is a sound engine in the candidate's arithmetic. It measures what that
	// makes of scores, and how often near ties fall otherwise.
	Yardstick engine.Routed
}

// RoutedGate is a gate without a model: a case of Golden whose rows "hidden" it is
// given.
type RoutedGate struct {
	// Name is the case.
	Name       string
	Golden     *golden.TensorSet
	Checkpoint fs.FS
	// Experts and Bias are the checkpoint's, whatever Reference runs.
	Experts   engine.Experts
	Bias      []float64
	Reference engine.GateRunner
}

// RouteEvidence is what the runs of the models and gates gave.
type RouteEvidence struct {
	Runs       []RoutedRun
	Gates      []GateRun
	Candidates []CandidateRun
}

// RoutedRun is a case of a model, run by its own routes and by the recorded ones.
type RoutedRun struct {
	// Name is SET/CASE.
	Name   string
	Arch   engine.Arch
	Bias   map[int][]float64
	Golden golden.TensorCase
	// Floors are the goldens' own errors from float64, by tensor.
	Floors map[string]float64
	// Free and Forced are the places of the two runs, at the case's own positions; nil
	// for a run that no check asked for. Refused says why the recorded routes can't be
	// forced on the reference.
	Free, Forced map[engine.Probe]engine.Matrix
	Refused      error
}

// GateRun is what a gate made of the recorded rows.
type GateRun struct {
	Name    string
	Experts engine.Experts
	Bias    []float64
	Golden  golden.TensorCase
	Floors  map[string]float64
	Got     engine.Routing
}

// routeEvidence runs what checks ask for.
func routeEvidence(ctx context.Context, cfg *Config, checks []*Check) (*RouteEvidence, error) {
	var needs Need
	for _, c := range checks {
		needs |= c.Needs & (NeedRoutes | NeedForcedRoutes | NeedRouteCandidate)
	}
	if cfg.Routes == nil || needs == 0 {
		return nil, nil
	}
	ev := &RouteEvidence{}
	for i := range cfg.Routes.Models {
		m := &cfg.Routes.Models[i]
		if err := m.validate(); err != nil {
			return nil, fmt.Errorf("conformance: Config.Routes.Models[%d]: %w", i, err)
		}
		if err := m.run(ctx, needs, ev); err != nil {
			return nil, fmt.Errorf("conformance: routes: %s: %w", m.Golden.Manifest.Set, err)
		}
	}
	if needs&NeedRoutes == 0 {
		return ev, nil
	}
	for i := range cfg.Routes.Gates {
		g := &cfg.Routes.Gates[i]
		switch {
		case g.Golden == nil || g.Reference == nil:
			return nil, fmt.Errorf("conformance: Config.Routes.Gates[%d]: got no Golden or no Reference, want both", i)
		case g.Experts.Gate.Scoring == engine.ScoringSigmoid && len(g.Bias) != g.Experts.Count:
			return nil, fmt.Errorf("conformance: Config.Routes.Gates[%d]: Bias: got %d values, want %d, those of a sigmoid gate", i, len(g.Bias), g.Experts.Count)
		}
		run, err := g.run(ctx)
		if err != nil {
			return nil, fmt.Errorf("conformance: routes: gate %s: %w", g.Name, err)
		}
		ev.Gates = append(ev.Gates, run)
	}
	return ev, nil
}

func (m *RoutedModel) validate() error {
	switch {
	case m.Golden == nil || m.Reference == nil:
		return errors.New("got no Golden or no Reference, want both")
	case len(m.routers()) == 0:
		return errors.New("Arch has no layer with a router")
	case m.Candidate != nil && (m.Candidate.Places == nil || m.Candidate.Yardstick == nil):
		return errors.New("got a Candidate without Places or Yardstick, want both")
	}
	for _, n := range m.routers() {
		x := m.Arch.PerLayer[n].Experts
		if x.Gate.Scoring == engine.ScoringSigmoid && len(m.Bias[n]) != x.Count {
			return fmt.Errorf("layer %d: Bias: got %d values, want %d, those of its sigmoid gate", n, len(m.Bias[n]), x.Count)
		}
	}
	return nil
}

// routers are the layers that have one.
func (m *RoutedModel) routers() []int { return routersOf(m.Arch) }

func routersOf(a engine.Arch) []int {
	var out []int
	for n := range a.PerLayer {
		if a.RoutedAt(n) {
			out = append(out, n)
		}
	}
	return out
}

// run adds the runs of all cases, batch by batch.
func (m *RoutedModel) run(ctx context.Context, needs Need, ev *RouteEvidence) error {
	batches, err := m.batches()
	if err != nil {
		return err
	}
	for _, b := range batches {
		if err := m.runBatch(ctx, needs, b, ev); err != nil {
			return fmt.Errorf("%s: %w", b.name(), err)
		}
	}
	return nil
}

func (m *RoutedModel) runBatch(ctx context.Context, needs Need, b routedBatch, ev *RouteEvidence) error {
	runs := make([]RoutedRun, len(b.cases))
	recorded := make([]engine.Routes, len(b.cases))
	for i, c := range b.cases {
		runs[i] = RoutedRun{Name: m.Golden.Manifest.Set + "/" + b.names[i], Arch: m.Arch, Bias: m.Bias, Golden: c,
			Floors: m.Golden.Manifest.Precision.Cases[b.names[i]]}
		var err error
		if recorded[i], err = m.recorded(c); err != nil {
			return fmt.Errorf("golden: %w", err)
		}
	}
	if needs&NeedRoutes != 0 {
		got, err := m.places(ctx, m.Reference, b, m.choices())
		if err != nil {
			return err
		}
		for i := range runs {
			runs[i].Free = got[i]
		}
	}
	if needs&NeedForcedRoutes != 0 {
		forced, err := m.Reference.WithRoutes(recorded...)
		var refused *engine.RouteError
		switch {
		case errors.As(err, &refused):
			for i := range runs {
				runs[i].Refused = err
			}
		case err != nil:
			return err
		default:
			got, err := m.places(ctx, forced, b, b.tensors())
			if err != nil {
				return err
			}
			for i := range runs {
				runs[i].Forced = got[i]
			}
		}
	}
	ev.Runs = append(ev.Runs, runs...)
	if needs&NeedRouteCandidate == 0 || m.Candidate == nil {
		return nil
	}
	return m.candidate(ctx, b, ev)
}

// recorded are the routes of a case, held to the model.
func (m *RoutedModel) recorded(c golden.TensorCase) (engine.Routes, error) {
	for _, n := range m.routers() {
		x := m.Arch.PerLayer[n].Experts
		for _, t := range []struct {
			part  engine.Part
			width int
		}{{engine.PartRouterLogits, x.Count}, {engine.PartRouteIDs, x.PerToken}, {engine.PartRouteWeights, x.PerToken}} {
			name := string(engine.Block(n, t.part))
			rows := c.Tensors[name]
			if len(rows) == 0 || len(rows[0]) != t.width {
				return nil, fmt.Errorf("tensor %s: got no rows, or another width, want rows of %d", name, t.width)
			}
		}
	}
	routes, err := engine.RoutesOf(valuesOf(c), m.Arch, true)
	if err != nil {
		return nil, err
	}
	return routes, routes.Check(m.Arch)
}

// choices are the places of all routers.
func (m *RoutedModel) choices() []engine.Probe {
	var out []engine.Probe
	for _, n := range m.routers() {
		for _, part := range []engine.Part{engine.PartRouterLogits, engine.PartRouterScores, engine.PartRouteIDs, engine.PartRouteWeights} {
			out = append(out, engine.Block(n, part))
		}
	}
	return out
}

func (g *RoutedGate) run(ctx context.Context) (GateRun, error) {
	c, err := g.Golden.Case(g.Name)
	if err != nil {
		return GateRun{}, err
	}
	run := GateRun{Name: g.Golden.Manifest.Set + "/" + g.Name, Experts: g.Experts, Bias: g.Bias, Golden: c, Floors: g.Golden.Manifest.Precision.Cases[g.Name]}
	for _, name := range []string{"hidden", string(engine.PartRouterLogits), string(engine.PartRouteIDs), string(engine.PartRouteWeights)} {
		rows, width := c.Tensors[name], map[string]int{string(engine.PartRouterLogits): g.Experts.Count, string(engine.PartRouteIDs): g.Experts.PerToken, string(engine.PartRouteWeights): g.Experts.PerToken}[name]
		if len(rows) == 0 || len(rows) != len(c.Tensors["hidden"]) || width > 0 && len(rows[0]) != width {
			return run, fmt.Errorf("golden: tensor %s: got %d rows, or another width, want one of %d per row of hidden", name, len(rows), width)
		}
	}
	var rows [][]float64
	for _, row := range c.Tensors["hidden"] {
		rows = append(rows, wide(row))
	}
	run.Got, err = g.Reference.Route(ctx, rows)
	return run, err
}

// verify holds each set of goldens to its manifest, once; has is set where there is one.
func (r *Routes) verify(has *bool) []golden.Problem {
	var out []golden.Problem
	seen := map[*golden.TensorSet]bool{}
	one := func(set *golden.TensorSet, checkpoint fs.FS) {
		if set == nil || checkpoint == nil || seen[set] {
			return
		}
		seen[set], *has = true, true
		out = append(out, set.Verify(checkpoint)...)
	}
	for _, m := range r.Models {
		one(m.Golden, m.Checkpoint)
	}
	for _, g := range r.Gates {
		one(g.Golden, g.Checkpoint)
	}
	return out
}

// wholeIDs are expert ids of a row of float32 values; ok is false where one is none.
func wholeIDs(row []float32) (ids []int, ok bool) {
	for _, v := range row {
		id := int(v)
		if float32(id) != v {
			return nil, false
		}
		ids = append(ids, id)
	}
	return ids, true
}

// valuesOf are the recorded places of a case that have a row for each position run.
func valuesOf(c golden.TensorCase) engine.ProbeValues {
	out := engine.ProbeValues{}
	for name, rows := range c.Tensors {
		if _, part, ok := engine.Probe(name).Block(); ok && part.Routed() {
			out[engine.Probe(name)] = engine.Matrix{Rows: len(rows), Width: len(rows[0]), Data: slices.Concat(rows...)}
		}
	}
	return out
}
