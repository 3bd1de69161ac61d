package reference

import (
	"fmt"
	"sync"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/plumbline-go/plumbline/engine"
)

// Engine runs one checkpoint in one arithmetic. It implements
// [engine.Reference] and is safe for concurrent use.
type Engine struct {
	weights engine.Weights
	arch    engine.Arch
	set     settings
	dev     device
	kv      KVQuant // what the cache is, faults included

	embed     []float32             // [vocab, hidden], shared with weights if it can be
	graphs    []*layerGraphs        // per layer, shared by those of a kind
	layers    [][]*tensors.Tensor   // per layer, in the order of its slots
	experts   [][][]*tensors.Tensor // per layer, per routed expert
	eps       []*tensors.Tensor     // per layer, [1, 1]
	finalNorm *tensors.Tensor       // [1, hidden]
	finalEps  *tensors.Tensor       // [1, 1]

	whole, norm, logits, quantiser *graph.Exec

	headOnce sync.Once
	head     []*tensors.Tensor // row blocks of [vocab, hidden]
	headErr  error

	left leftover

	float32s, float64s other

	// Of an engine with forced routes; base is the one without.
	base   *Engine
	forced []engine.Routes
}

var _ engine.Reference = (*Engine)(nil)

// Open loads the checkpoint at path, a Hugging Face folder or a hub cache
// folder with one snapshot, and makes an engine of it.
func Open(path string, opts ...Option) (*Engine, error) {
	c, err := Load(path)
	if err != nil {
		return nil, err
	}
	return New(c, opts...)
}

// New makes an engine that runs w. It uploads the layers' weights and keeps w.
// The constants in w's Arch().PerLayer hold for every run; the faults in
// Arch().Fault act where [engine.Fault] says: those of single sequences on
// Capture, CaptureWholeStep, LastHidden, and on what Decode runs token by token.
func New(w engine.Weights, opts ...Option) (*Engine, error) {
	set, err := newSettings(opts)
	if err != nil {
		return nil, err
	}
	backend, err := newBackend(set.backend)
	if err != nil {
		return nil, err
	}
	return build(w, set, device{backend, set.dtype})
}

func build(w engine.Weights, set settings, dev device) (*Engine, error) {
	e := &Engine{weights: w, arch: w.Arch().Clone(), set: set, dev: dev, kv: set.kv}
	if err := set.scale.apply(&e.arch); err != nil {
		return nil, err
	}
	if err := checkArch(e.arch); err != nil {
		return nil, err
	}
	if set.kv.quantised() && set.dtype == BFloat16 {
		return nil, &engine.UnsupportedError{What: "a quantised KV cache in bfloat16", Why: "no run of transformers says where it rounds"}
	}
	if err := set.kv.check(e.arch); err != nil {
		return nil, err
	}
	e.kv.Bits -= e.arch.Fault.CacheBitsLost
	table, err := dev.fetch(w, embedName, []int{e.arch.Vocab, e.arch.Hidden})
	if err != nil {
		return nil, err
	}
	e.embed = table.Data
	if err := e.makeGraphs(); err != nil {
		return nil, err
	}
	return e, e.uploadWeights()
}

func (e *Engine) uploadWeights() error {
	for n := range e.arch.Layers {
		ts, err := uploadSlots(e.dev, e.weights, layerPrefix(n), e.graphs[n].slots)
		if err != nil {
			return err
		}
		eps, err := upload(e.dev, []float64{e.arch.PerLayer[n].NormEps}, 1, 1)
		if err != nil {
			return err
		}
		experts, err := e.uploadExperts(n)
		if err != nil {
			return err
		}
		e.layers, e.eps, e.experts = append(e.layers, ts), append(e.eps, eps), append(e.experts, experts)
	}
	final, err := uploadSlots(e.dev, e.weights, "", []slot{{finalNormName, []int{e.arch.Hidden}}})
	if err != nil {
		return err
	}
	e.finalNorm = final[0]
	e.finalEps, err = upload(e.dev, []float64{e.arch.FinalNormEps}, 1, 1)
	return err
}

// makeGraphs prepares the graphs; layers of a kind share theirs.
func (e *Engine) makeGraphs() error {
	kinds := map[layerKind]*layerGraphs{}
	for n := range e.arch.Layers {
		kind := kindOf(e.arch, n)
		if kinds[kind] == nil {
			var err error
			if kinds[kind], err = e.newLayerGraphs(kind); err != nil {
				return err
			}
		}
		e.graphs = append(e.graphs, kinds[kind])
	}
	return e.prepare([]namedGraph{
		{&e.whole, "whole step", e.wholeStepGraph},
		{&e.norm, "final norm", e.normGraph},
		{&e.logits, "logits", e.logitsGraph},
		{&e.quantiser, "quantised cache", e.quantiseGraph},
	})
}

// call runs a compiled graph.
func call(x *graph.Exec, args []any) ([]*tensors.Tensor, error) {
	out, err := x.Call(args...)
	if err != nil {
		return nil, fmt.Errorf("reference: graph %s: %w", x.Name(), err)
	}
	return out, nil
}

func appendTensors(args []any, ts []*tensors.Tensor) []any {
	for _, t := range ts {
		args = append(args, t)
	}
	return args
}

// Weights returns the checkpoint that the engine runs.
func (e *Engine) Weights() engine.Weights { return e.weights }

// Float64 returns the same model, faults included, in float64. It is made by
// the first call and is the receiver if that is float64 already. The weights are
// the checkpoint's own, also where the receiver has them rounded to bfloat16.
func (e *Engine) Float64() (engine.Reference, error) { return e.in(Float64, &e.float64s) }

// Float32 is Float64 for float32.
func (e *Engine) Float32() (engine.Reference, error) { return e.in(Float32, &e.float32s) }

// other is the same model in another arithmetic, made by the first use.
type other struct {
	once   sync.Once
	engine *Engine
	err    error
}

func (e *Engine) in(d DType, o *other) (engine.Reference, error) {
	if e.set.dtype == d {
		return e, nil
	}
	o.once.Do(func() {
		if e.base != nil {
			o.engine, o.err = e.forcedIn(d)
			return
		}
		set := e.set
		set.dtype = d
		o.engine, o.err = build(e.weights, set, device{e.dev.backend, d})
	})
	if o.err != nil {
		return nil, o.err
	}
	return o.engine, nil
}
