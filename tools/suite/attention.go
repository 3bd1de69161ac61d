package suite

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"sync"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/mutant"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/fixtures"
	"github.com/plumbline-go/plumbline/golden"
	"github.com/plumbline-go/plumbline/golden/kernel"
)

// Attention is the embedded Gemma 4 checkpoint and the sequence that is run on it: a
// prompt that crosses the window of its local layers, and decode steps behind it.
type Attention struct {
	// Weights is the checkpoint, Inventory its attention tensors in the decode steps.
	Weights   engine.Weights
	Inventory *kernel.Inventory

	ids, forced []int
	mu          sync.Mutex
	clean       map[reference.KVQuant]kernel.Source
}

// OpenAttention opens it. Nothing is run yet.
func OpenAttention() (*Attention, error) {
	w, err := reference.LoadFS(fixtures.Gemma4Model(), ".")
	if err != nil {
		return nil, err
	}
	set, err := golden.Gemma4()
	if err != nil {
		return nil, err
	}
	c, err := set.Case("long")
	if err != nil {
		return nil, err
	}
	config, err := fs.ReadFile(fixtures.Gemma4Model(), "config.json")
	if err != nil {
		return nil, err
	}
	inv, err := kernel.FromConfig("gemma4-window", config)
	if err != nil {
		return nil, err
	}
	steps := make([]int, len(c.ForcedIDs)-1)
	for i := range steps {
		steps[i] = i + 1
	}
	a := &Attention{Weights: engine.Resident(w), ids: c.TokenIDs, forced: c.ForcedIDs, clean: map[reference.KVQuant]kernel.Source{}}
	a.Inventory, err = inv.WithPositions(kernel.Steps(len(c.TokenIDs), steps...))
	return a, err
}

// Steps is the number of decode steps that are compared.
func (a *Attention) Steps() int { return len(a.Inventory.Positions) }

// Run runs weights and keeps what the inventory names.
func (a *Attention) Run(w engine.Weights, opts ...reference.Option) (kernel.Source, error) {
	e, err := reference.New(w, opts...)
	if err != nil {
		return nil, err
	}
	parts := map[string]engine.Part{}
	for _, op := range engine.AttentionOps() {
		parts[op.Name] = op.Part
	}
	var probes []engine.Probe
	for n := range w.Arch().Layers {
		for _, op := range a.Inventory.Ops {
			probes = append(probes, engine.Block(n, parts[op.Name]))
		}
	}
	run, err := e.CaptureProbes(context.Background(), a.ids, a.forced, probes)
	if err != nil {
		return nil, err
	}
	return kernel.Func(func(k kernel.Key) []float32 {
		return run[engine.Block(k.Layer, parts[a.Inventory.Ops[k.Op].Name])].Row(a.Inventory.Positions[k.Position].Pos)
	}).Of(a.Inventory), nil
}

// Clean is the checkpoint with a KV cache; the zero value is the dense one. It is
// run once.
func (a *Attention) Clean(q reference.KVQuant) (kernel.Source, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s, ok := a.clean[q]; ok {
		return s, nil
	}
	var opts []reference.Option
	if q != (reference.KVQuant{}) {
		opts = append(opts, reference.WithKVCache(q))
	}
	s, err := a.Run(a.Weights, opts...)
	if err == nil {
		a.clean[q] = s
	}
	return s, err
}

// eightBits is the cache of the default candidate.
var eightBits = reference.KVQuant{Bits: 8}

var embeddedAttention = sync.OnceValues(OpenAttention)

// attention is the dense run beside that of an 8-bit cache.
func attention() (*conformance.Attention, error) {
	a, err := embeddedAttention()
	if err != nil {
		return nil, err
	}
	lazy := func(q reference.KVQuant) kernel.Source {
		return lazySource(sync.OnceValues(func() (kernel.Source, error) { return a.Clean(q) }))
	}
	return &conformance.Attention{Inventory: a.Inventory, Reference: lazy(reference.KVQuant{}), Candidate: lazy(eightBits)}, nil
}

// lazySource runs an engine when its first tensor is asked for.
type lazySource func() (kernel.Source, error)

func (s lazySource) Session() kernel.Session {
	of, err := s()
	if err != nil {
		return failed{err}
	}
	return of.Session()
}

type failed struct{ err error }

func (f failed) Tensor(kernel.Key) (kernel.Tensor, error) { return kernel.Tensor{}, f.err }
func (f failed) Close() error                             { return nil }

// Rewindowed is the checkpoint with another window in a layer.
func Rewindowed(w engine.Weights, layer, by int) engine.Weights { return rewindowed{w, layer, by} }

type rewindowed struct {
	engine.Weights
	layer, by int
}

func (w rewindowed) Arch() engine.Arch {
	a := w.Weights.Arch().Clone()
	a.PerLayer[w.layer].Window += w.by
	return a
}

// plantInAttention plants a fault in the attention of the candidate, or in its
// tensors. ok is false when the control is not one of these.
func plantInAttention(cfg conformance.Config, k conformance.Control) (_ conformance.Config, ok bool, err error) {
	switch k.Mutant {
	case "kv-four-bits-fewer", "kv-scale-wrong-layer", "window-off-by-one", "tensor-gone", "tensor-of-another-layer-type", "tensor-nan", "tensor-reference-zero":
	default:
		return cfg, false, nil
	}
	if cfg.Attention == nil {
		return cfg, true, fmt.Errorf("suite: %s: got no attention to plant it in", k.Mutant)
	}
	a, err := embeddedAttention()
	if err != nil {
		return cfg, true, err
	}
	planted := *cfg.Attention
	cfg.Attention = &planted
	switch k.Mutant {
	case "window-off-by-one":
		planted.Candidate, err = a.Run(Rewindowed(a.Weights, k.Layer, -1))
	case "tensor-gone":
		planted.Candidate = spoilt(a.Inventory, planted.Candidate, k.Layer, "k_normed", func([]float32) []float32 { return nil })
	case "tensor-of-another-layer-type":
		planted.Candidate = spoilt(a.Inventory, planted.Candidate, k.Layer, "sdpa_out", func(of []float32) []float32 { return append(of, of...) })
	case "tensor-nan":
		planted.Candidate = spoilt(a.Inventory, planted.Candidate, k.Layer, "q_normed", func(of []float32) []float32 {
			of[1] = float32(math.NaN())
			return of
		})
	case "tensor-reference-zero":
		planted.Reference = spoilt(a.Inventory, planted.Reference, k.Layer, "v_normed", func(of []float32) []float32 {
			clear(of)
			return of
		})
	default:
		var m mutant.Mutant
		if m, err = mutant.Lookup(k.Mutant); err != nil {
			return cfg, true, err
		}
		var w engine.Weights
		if w, err = m.Weights(a.Weights, max(k.Layer, 0)); err != nil {
			return cfg, true, err
		}
		planted.Candidate, err = a.Run(w, reference.WithKVCache(eightBits))
	}
	return cfg, true, err
}

// spoilt is a source one tensor of which is changed: that of a layer and op at the
// second position.
func spoilt(inv *kernel.Inventory, of kernel.Source, layer int, op string, change func(values []float32) []float32) kernel.Source {
	return kernel.Func(func(at kernel.Key) []float32 {
		s := of.Session()
		defer s.Close()
		t, err := s.Tensor(at)
		if err != nil {
			return nil
		}
		if at.Layer == layer && at.Position == 1 && inv.Ops[at.Op].Name == op {
			return change(slices.Clone(t.Values))
		}
		return t.Values
	}).Of(inv)
}
