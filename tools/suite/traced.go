package suite

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/golden/trace"
)

// tracedSources are two short sources for the embedded DeepSeek-V2, which has no
// tokenizer. A token of the first crosses the edge of its text.
var tracedSources = []struct {
	id       string
	content  []int
	crossing int
}{{"suite/first", []int{301, 44, 415, 77}, 1}, {"suite/second", []int{118, 492, 250}, 0}}

// boundaryIDs are the tokens that inputs start with.
var boundaryIDs = map[string]int{"eos": 2, "bos": 1, "x": 87, "period": 13}

// variantsOf puts a source before the model under every condition of a plan.
func variantsOf(p trace.Plan, content []int, crossing int) []trace.Variant {
	var out []trace.Variant
	for _, c := range p.Conditions {
		ids := []int{boundaryIDs[c.Boundary]}
		if c.System {
			ids = append(ids, 201, 202, 203)
		}
		ids = append(ids, 204)
		v := trace.Variant{BoundaryCrossing: crossing}
		for i := range content {
			v.ContentPositions = append(v.ContentPositions, len(ids)+i)
		}
		ids = slices.Concat(ids, content, slices.Repeat([]int{205}, crossing), []int{206})
		v.TokenIDs = ids
		out = append(out, v)
	}
	return out
}

// shapeOf is what of a model is traced.
func shapeOf(a engine.Arch) trace.Shape {
	s := trace.Shape{Layers: a.Layers, Hidden: a.Hidden}
	for n, l := range a.PerLayer {
		if a.RoutedAt(n) {
			s.Gates, s.Experts, s.TopK = append(s.Gates, n), l.Experts.Count, l.Experts.PerToken
		}
	}
	return s
}

// keptTensors are a source's tensors under all conditions.
type keptTensors struct {
	variants []trace.Variant
	hidden   [][]trace.Hidden // by stage and condition
	routes   [][]trace.Routes // by gate and condition
}

// positions are those of a scope.
func (k *keptTensors) positions(condition, scope int) []int {
	v := k.variants[condition]
	if trace.Scopes()[scope] == trace.TargetContent {
		return v.ContentPositions
	}
	all := make([]int, len(v.TokenIDs))
	for i := range all {
		all[i] = i
	}
	return all
}

func (k *keptTensors) Hidden(stage, condition, scope int) (trace.Hidden, bool) {
	return k.hidden[stage][condition].At(k.positions(condition, scope)), true
}

func (k *keptTensors) Routes(gate, condition, scope int) (trace.Routes, bool) {
	return k.routes[gate][condition].At(k.positions(condition, scope)), true
}

// embeddedTrace is a trace of the embedded DeepSeek-V2 by the reference in float32,
// under the eight conditions of the standard plan. It is run once.
func embeddedTrace() (*conformance.Trace, error) {
	w, err := deepseek.weights()
	if err != nil {
		return nil, err
	}
	return &conformance.Trace{Plan: trace.Standard(), Shape: shapeOf(w.Arch()), Open: func(context.Context) (*conformance.Traced, error) { return tracedOnce() }}, nil
}

var tracedOnce = sync.OnceValues(func() (*conformance.Traced, error) {
	w, err := deepseek.weights()
	if err != nil {
		return nil, err
	}
	e, err := reference.New(w)
	if err != nil {
		return nil, err
	}
	p, s := trace.Standard(), shapeOf(w.Arch())
	acc, err := trace.NewAccumulator(p, s, trace.Float32)
	if err != nil {
		return nil, err
	}
	out := &conformance.Traced{Document: &trace.Document{Head: trace.Head{CapturedAt: "none", Tokenizer: trace.TokenizerContract{Conditions: p.Conditions},
		Sources: trace.SourceContract{Domains: []string{"suite"}, PerDomain: len(tracedSources), Sources: len(tracedSources)}, Trace: trace.NewContract(p, s, trace.Float32)}}}
	sum := trace.NewSummariser(p, s)
	for _, x := range tracedSources {
		kept := &keptTensors{variants: variantsOf(p, x.content, x.crossing)}
		if err := acc.Start(trace.Source{ID: x.id, Domain: "suite", Text: fmt.Sprint(x.content)}, kept.variants, boundaryIDs); err != nil {
			return nil, err
		}
		if err := kept.fill(e, acc, s); err != nil {
			return nil, err
		}
		t, err := acc.Finish(0, nil)
		if err != nil {
			return nil, err
		}
		sum.Add(t)
		out.Document.Traced = append(out.Document.Traced, *t)
		out.Sources = append(out.Sources, conformance.TracedSource{Variants: kept.variants, Boundary: boundaryIDs, Recorded: kept})
	}
	out.Document.Summary, err = sum.Summary()
	return out, err
})

// fill runs the variants as one batch, and gives each place to the accumulator.
func (k *keptTensors) fill(e *reference.Engine, acc *trace.Accumulator, s trace.Shape) error {
	var prompts [][]int
	longest := 0
	for _, v := range k.variants {
		prompts, longest = append(prompts, v.TokenIDs), max(longest, len(v.TokenIDs))
	}
	return e.TraceBatch(context.Background(), prompts, boundaryIDs["eos"], func(at engine.Stage) error {
		stage, _ := s.StageOfProbe(string(at.Probe))
		k.hidden = append(k.hidden, nil)
		if at.Routing != nil {
			k.routes = append(k.routes, nil)
		}
		for c, v := range k.variants {
			h, r := trace.Hidden{DType: trace.Float32}, trace.Routes{DType: trace.Float32}
			for row := (c+1)*longest - len(v.TokenIDs); row < (c+1)*longest; row++ {
				h.Rows = append(h.Rows, at.Rows.Row(row))
				if at.Routing != nil {
					r.IDs, r.Weights = append(r.IDs, at.Routing.IDs[row]), append(r.Weights, single(at.Routing.Weights[row]))
				}
			}
			k.hidden[stage] = append(k.hidden[stage], h)
			if err := acc.Hidden(stage, c, h.Rows); err != nil {
				return err
			}
			if at.Routing == nil {
				continue
			}
			k.routes[len(k.routes)-1] = append(k.routes[len(k.routes)-1], r)
			if err := acc.Routes(stage-1, c, r); err != nil {
				return err
			}
		}
		return nil
	})
}

func single(row []float64) []float32 {
	out := make([]float32, len(row))
	for i, v := range row {
		out[i] = float32(v)
	}
	return out
}
