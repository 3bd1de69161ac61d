package suite

import (
	"context"
	"fmt"
	"io/fs"
	"slices"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/mutant"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/golden"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// routeFault is a fault of a model with routed experts.
type routeFault struct {
	// mutants are planted one after the other, at so many layers before the control's.
	mutants []plantedAt
	// cases are those of the golden that show it.
	cases []string
}

type plantedAt struct {
	name   string
	before int
}

// modelFaults are planted in the weights of the embedded DeepSeek-V2. Some have another
// name than their mutant, which is planted in other models too.
var modelFaults = map[string]routeFault{
	"softmax-after-top-k":    simple("softmax-after-top-k"),
	"top-k-minus-one":        simple("top-k-minus-one"),
	"router-rows-rotated":    simple("router-rows-rotated"),
	"router-bfloat16":        simple("router-bfloat16"),
	"mscale-missing":         simple("mscale-missing"),
	"yarn-off":               simple("yarn-off"),
	"shared-experts-dropped": simple("shared-experts-dropped"),
	"experts-permuted":       simple("experts-permuted"),
	"latent-row-stale":       simple("stale-cache-row"),
	"route-ties-last-wins":   {[]plantedAt{{"route-ties-last-wins", 0}}, []string{"ties"}},
	"trace-padding-unmasked": {[]plantedAt{{"padding-unmasked", 0}}, []string{"batch_short"}},
	// The layer before flips its routes.
	"fault-beside-a-flip": {[]plantedAt{{"router-rows-rotated", 1}, {"mlp-gain", 0}}, []string{"clear"}},
}

func simple(name string) routeFault {
	return routeFault{[]plantedAt{{name, 0}}, []string{"clear"}}
}

// gateFaults are planted in the gate v3.
var gateFaults = []string{"group-mask-zero", "route-weights-unnormalised"}

// candidateFaults are planted in what a candidate chooses.
var candidateFaults = []string{"near-ties-reversed", "near-ties-reversed-one-layer"}

// plantInRoutes plants a fault in a routed model, in its candidate, in a gate or in what
// was recorded. ok is false when the control is not one of these.
func plantInRoutes(cfg conformance.Config, k conformance.Control) (_ conformance.Config, ok bool, err error) {
	model, inModel := modelFaults[k.Mutant]
	inGate := slices.Contains(gateFaults, k.Mutant)
	if !inModel && !inGate && !slices.Contains(candidateFaults, k.Mutant) && k.Mutant != "recorded-routes-bit-flipped" {
		return cfg, false, nil
	}
	if cfg.Routes == nil || len(cfg.Routes.Models) == 0 || len(cfg.Routes.Gates) == 0 {
		return cfg, true, fmt.Errorf("suite: %s: got no routed models or no gates to plant it in", k.Mutant)
	}
	// One model, or one gate: the others are clean.
	planted := conformance.Routes{Models: slices.Clone(cfg.Routes.Models[:1])}
	cfg.Routes = &planted
	m := &planted.Models[0]
	switch {
	case k.Mutant == "recorded-routes-bit-flipped":
		m.Golden, err = m.Golden.Replaced(flippedRoute)
	case inGate:
		planted.Models = nil
		planted.Gates, err = brokenGate(k.Mutant)
	case k.Mutant == "near-ties-reversed":
		c := *m.Candidate
		m.Candidate, c.Places = &c, reversed(c.Places, m.Arch)
	case k.Mutant == "near-ties-reversed-one-layer":
		c := *m.Candidate
		m.Candidate = &c
		var e *reference.Engine
		if e, err = (routeFault{}).engine(k.Layer, reference.WithDType(reference.BFloat16)); err == nil {
			c.Name, c.Places = k.Mutant, reversedIn(k.Layer, e, m.Arch)
		}
	case k.Side == conformance.SideCandidate:
		c := *m.Candidate
		m.Cases, m.Candidate = model.cases, &c
		var e *reference.Engine
		if e, err = model.engine(k.Layer, reference.WithDType(reference.BFloat16)); err == nil {
			c.Name, c.Places = k.Mutant, choicesOf(e, m.Arch)
		}
	default:
		m.Cases, m.Candidate = model.cases, nil
		m.Reference, err = model.engine(k.Layer)
	}
	return cfg, true, err
}

// engine runs the embedded DeepSeek-V2 with the fault.
func (f routeFault) engine(layer int, opts ...reference.Option) (*reference.Engine, error) {
	w, err := deepseek.weights()
	if err != nil {
		return nil, err
	}
	for _, p := range f.mutants {
		m, err := mutant.Lookup(p.name)
		if err != nil {
			return nil, err
		}
		if w, err = m.Weights(w, layer-p.before); err != nil {
			return nil, err
		}
	}
	return reference.New(w, opts...)
}

// choicesOf are what the routers of an engine choose.
func choicesOf(e *reference.Engine, a engine.Arch) func(context.Context, string, golden.TensorCase) (engine.ProbeSource, error) {
	var places []engine.Probe
	for n := range a.PerLayer {
		if a.RoutedAt(n) {
			places = append(places, engine.Block(n, engine.PartRouteIDs), engine.Block(n, engine.PartRouteWeights))
		}
	}
	return func(ctx context.Context, _ string, c golden.TensorCase) (engine.ProbeSource, error) {
		got, err := e.CaptureProbes(ctx, c.TokenIDs, c.ForcedIDs, places)
		return engine.ProbeValues(got), err
	}
}

// closeLogits is how near two logits are that a router takes the wrong one of.
const closeLogits = 0.03

// reversed are places whose routers take the next expert in the place of the last,
// where the two are near each other: each for itself may be a tie.
func reversed(of func(context.Context, string, golden.TensorCase) (engine.ProbeSource, error), a engine.Arch) func(context.Context, string, golden.TensorCase) (engine.ProbeSource, error) {
	return func(ctx context.Context, name string, c golden.TensorCase) (engine.ProbeSource, error) {
		src, err := of(ctx, name, c)
		if err != nil {
			return nil, err
		}
		out := engine.ProbeValues{}
		for n := range a.PerLayer {
			if !a.RoutedAt(n) {
				continue
			}
			ids, err := src.Matrix(engine.Block(n, engine.PartRouteIDs))
			if err != nil {
				return nil, err
			}
			logits, err := src.Matrix(engine.Block(n, engine.PartRouterLogits))
			if err != nil {
				return nil, err
			}
			ids.Data = slices.Clone(ids.Data)
			for t := range ids.Rows {
				takeNext(ids.Row(t), logits.Row(t))
			}
			out[engine.Block(n, engine.PartRouteIDs)] = ids
		}
		return out, src.Close()
	}
}

// reversedIn are the choices of an engine whose router does so in one layer: what follows
// has the outputs of the experts that it took.
func reversedIn(layer int, e *reference.Engine, a engine.Arch) func(context.Context, string, golden.TensorCase) (engine.ProbeSource, error) {
	own, logits := engine.Block(layer, engine.PartRouteIDs), engine.Block(layer, engine.PartRouterLogits)
	return func(ctx context.Context, name string, c golden.TensorCase) (engine.ProbeSource, error) {
		got, err := e.CaptureProbes(ctx, c.TokenIDs, c.ForcedIDs, []engine.Probe{own, logits})
		if err != nil {
			return nil, err
		}
		var taken [][]int
		for t := range got[own].Rows {
			row := slices.Clone(got[own].Row(t))
			takeNext(row, got[logits].Row(t))
			ids := make([]int, len(row))
			for i, v := range row {
				ids[i] = int(v)
			}
			taken = append(taken, ids)
		}
		faulty, err := e.Forced(engine.Routes{layer: {IDs: taken}})
		if err != nil {
			return nil, err
		}
		return choicesOf(faulty, a)(ctx, name, c)
	}
}

// takeNext replaces the last expert of a route by the next, if they are near and not
// equal.
func takeNext(ids, logits []float32) {
	row := make([]float64, len(logits))
	for i, v := range logits {
		row[i] = float64(v)
	}
	top := metric.TopN(row, len(ids)+1)
	last, next := top[len(ids)-1], top[len(ids)]
	if d := row[last] - row[next]; d == 0 || d > closeLogits {
		return
	}
	if i := slices.Index(ids, float32(last)); i >= 0 {
		ids[i] = float32(next)
	}
}

// brokenGate is the gate v3 with a fault.
func brokenGate(name string) ([]conformance.RoutedGate, error) {
	all, err := gates()
	if err != nil {
		return nil, err
	}
	m, err := mutant.Lookup(name)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Name != "v3" {
			continue
		}
		g, err := openGate(all[i].Name)
		if err != nil {
			return nil, err
		}
		w, err := m.Weights(gateAlone{g.experts}, 0)
		if err != nil {
			return nil, err
		}
		all[i].Reference, err = g.router(w.Arch().PerLayer[0].Experts)
		return all[i : i+1], err
	}
	return nil, fmt.Errorf("suite: %s: got no gate v3 to plant it in", name)
}

// gateAlone has a gate as the only layer of a model without tensors.
type gateAlone struct{ experts engine.Experts }

func (g gateAlone) Arch() engine.Arch {
	return engine.Arch{Family: "deepseek_v3", Layers: 1, PerLayer: []engine.LayerParams{{Experts: g.experts}}}
}

func (g gateAlone) Tensor(name string) (engine.Tensor, error) {
	return engine.Tensor{}, &engine.ConfigError{File: "gate", What: "tensor " + name, Got: "a gate alone", Want: "a model"}
}

// flippedRoute flips a bit of a recorded case.
func flippedRoute(f fs.FS) (fs.FS, error) { return mutant.FlipBit(f, "clear.safetensors", 8*100_000) }
