package suite

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"sync"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/fixtures"
	"github.com/plumbline-go/plumbline/golden"
	"github.com/plumbline-go/plumbline/golden/trace"
)

// routed is an embedded DeepSeek-V2 checkpoint.
type routed struct {
	files   func() fs.FS
	golden  func() (*golden.TensorSet, error)
	weights func() (engine.Weights, error)
}

func newRouted(files func() fs.FS, set func() (*golden.TensorSet, error)) routed {
	return routed{files, set, sync.OnceValues(func() (engine.Weights, error) {
		w, err := reference.LoadFS(files(), ".")
		if err != nil {
			return nil, err
		}
		return engine.Resident(w), nil
	})}
}

// The first has 27 layers, the second groups of experts.
var (
	deepseek = newRouted(fixtures.DeepSeek2Model, golden.DeepSeek2)
	grouped  = newRouted(fixtures.DeepSeek2GroupedModel, golden.DeepSeek2Grouped)
)

// Routes are the embedded DeepSeek-V2 checkpoints and gates, with what transformers
// recorded of them. The candidate is transformers itself in bfloat16, as it was
// recorded, beside the reference in bfloat16.
func Routes() (*conformance.Routes, error) {
	r := &conformance.Routes{}
	for _, m := range []routed{deepseek, grouped} {
		model, err := m.model()
		if err != nil {
			return nil, err
		}
		r.Models = append(r.Models, model)
	}
	var err error
	if r.Gates, err = gates(); err != nil {
		return nil, err
	}
	r.Models[0].Candidate, err = transformersBFloat16()
	return r, err
}

func (m routed) model() (conformance.RoutedModel, error) {
	set, err := m.golden()
	if err != nil {
		return conformance.RoutedModel{}, err
	}
	w, err := m.weights()
	if err != nil {
		return conformance.RoutedModel{}, err
	}
	e, err := reference.New(w)
	return conformance.RoutedModel{Golden: set, Checkpoint: m.files(), Arch: w.Arch(), Reference: e}, err
}

// transformersBFloat16 is what transformers chose in bfloat16, with a router that
// scores in float32.
func transformersBFloat16() (*conformance.RoutedCandidate, error) {
	set, err := golden.DeepSeek2BFloat16()
	if err != nil {
		return nil, err
	}
	w, err := deepseek.weights()
	if err != nil {
		return nil, err
	}
	yard, err := reference.New(w, reference.WithDType(reference.BFloat16))
	if err != nil {
		return nil, err
	}
	return &conformance.RoutedCandidate{Name: "transformers in bfloat16", Routing: trace.Float32, Yardstick: yard,
		Places: func(_ context.Context, name string, _ golden.TensorCase) (engine.ProbeSource, error) {
			c, err := set.Case(name)
			if err != nil {
				return nil, err
			}
			return recordedPlaces(c), nil
		}}, nil
}

// recordedPlaces are what was recorded of the routers, at every position.
func recordedPlaces(c golden.TensorCase) engine.ProbeValues {
	out := engine.ProbeValues{}
	for name, rows := range c.Tensors {
		if _, part, ok := engine.Probe(name).Block(); ok && part.Routed() {
			m := engine.Matrix{Rows: len(rows), Width: len(rows[0])}
			for _, row := range rows {
				m.Data = append(m.Data, row...)
			}
			out[engine.Probe(name)] = m
		}
	}
	return out
}

// gateFile is the config of a gate alone.
type gateFile struct {
	Experts   int     `json:"n_routed_experts"`
	PerToken  int     `json:"num_experts_per_tok"`
	Groups    int     `json:"n_group"`
	TopGroups int     `json:"topk_group"`
	Normalise bool    `json:"norm_topk_prob"`
	Scale     float64 `json:"routed_scaling_factor"`
	Scoring   string  `json:"scoring_func"`
}

// gate is a gate alone: what makes a router of it.
type gate struct {
	experts    engine.Experts
	projection engine.Tensor
	bias       []float32
}

// openGate reads a gate of the embedded ones.
func openGate(name string) (gate, error) {
	files := fixtures.DeepSeekGates()
	data, err := fs.ReadFile(files, name+".json")
	if err != nil {
		return gate{}, err
	}
	c := gateFile{Scoring: string(engine.ScoringSoftmax)}
	if err := json.Unmarshal(data, &c); err != nil {
		return gate{}, fmt.Errorf("suite: %s.json: %w", name, err)
	}
	g := gate{experts: engine.Experts{Count: c.Experts, PerToken: c.PerToken, Gate: engine.Gate{
		Scoring: engine.Scoring(c.Scoring), Groups: c.Groups, TopGroups: c.TopGroups, Normalise: c.Normalise, Scale: c.Scale}}}
	if data, err = fs.ReadFile(files, name+".safetensors"); err != nil {
		return gate{}, err
	}
	file, err := dumpfmt.NewSafetensors(bytes.NewReader(data), int64(len(data)), name+".safetensors")
	if err != nil {
		return gate{}, err
	}
	for _, t := range file.Tensors() {
		values, err := file.Float32s(t.Name)
		if err != nil {
			return gate{}, err
		}
		all := make([]float32, t.Bytes/4)
		if _, err := values.ReadValues(all, 0); err != nil {
			return gate{}, err
		}
		if t.Name == "weight" {
			g.projection = engine.Tensor{Shape: t.Shape, Data: all}
		} else {
			g.bias = all
		}
	}
	return g, nil
}

// router is the gate with another fault than none.
func (g gate) router(x engine.Experts) (engine.GateRunner, error) {
	return reference.NewRouter(x, g.projection, g.bias)
}

func gates() ([]conformance.RoutedGate, error) {
	set, err := golden.DeepSeekGates()
	if err != nil {
		return nil, err
	}
	var out []conformance.RoutedGate
	for _, name := range set.Manifest.Cases {
		g, err := openGate(name)
		if err != nil {
			return nil, err
		}
		r, err := g.router(g.experts)
		if err != nil {
			return nil, err
		}
		of := conformance.RoutedGate{Name: name, Golden: set, Checkpoint: fixtures.DeepSeekGates(), Experts: g.experts, Reference: r}
		for _, v := range g.bias {
			of.Bias = append(of.Bias, float64(v))
		}
		out = append(out, of)
	}
	return out, nil
}
