package quant

import (
	"fmt"

	"github.com/plumbline-go/plumbline/engine"
)

// layer is a decoder layer ready to run.
type layer struct {
	inputNorm, postNorm        []float64 // gains, [hidden]
	q, k, v, o, gate, up, down linear
}

// linear is x*mᵀ + bias; a nil bias adds nothing.
type linear struct {
	m    *matrix
	bias []float64
}

// loader collects the first error of a series of look-ups.
type loader struct {
	w   engine.Weights
	opt options
	err error
}

func (l *loader) tensor(name string, shape ...int) engine.Tensor {
	if l.err != nil {
		return engine.Tensor{}
	}
	t, err := l.w.Tensor(name)
	if err != nil {
		l.err = fmt.Errorf("quant: %w", err)
		return engine.Tensor{}
	}
	size := 1
	for _, d := range shape {
		size *= d
	}
	if fmt.Sprint(t.Shape) != fmt.Sprint(shape) || len(t.Data) != size {
		l.fail(name, fmt.Sprintf("shape %v", shape), fmt.Sprintf("shape %v with %d values", t.Shape, len(t.Data)))
		return engine.Tensor{}
	}
	return t
}

func (l *loader) fail(what, want, got string) {
	if l.err == nil {
		l.err = &engine.ConfigError{File: "weights", What: what, Want: want, Got: got}
	}
}

func (l *loader) vector(name string, n int) []float64 {
	t := l.tensor(name, n)
	out := make([]float64, len(t.Data))
	for i, v := range t.Data {
		out[i] = float64(v)
	}
	return out
}

func (l *loader) linear(prefix string, rows, cols int, bias bool) linear {
	name := prefix + ".weight"
	t := l.tensor(name, rows, cols)
	if l.err != nil {
		return linear{}
	}
	m, err := l.matrix(t)
	if err != nil {
		l.fail(name, "finite values", err.Error())
		return linear{}
	}
	out := linear{m: m}
	if bias {
		out.bias = l.vector(prefix+".bias", rows)
	}
	return out
}

func (l *loader) matrix(t engine.Tensor) (*matrix, error) {
	if l.opt.floatWeights {
		return floatMatrix(t.Data, t.Shape[0], t.Shape[1])
	}
	return l.opt.cache.matrix(t, l.opt.weightsPerTensor, l.opt.ties)
}

// loadLayer prepares layer n.
func loadLayer(w engine.Weights, a engine.Arch, n int, opt options) (*layer, error) {
	l := &loader{w: w, opt: opt}
	p := fmt.Sprintf("model.layers.%d.", n)
	qWidth, kvWidth := a.Heads*a.HeadDim, a.KVHeads*a.HeadDim
	out := &layer{
		inputNorm: l.vector(p+"input_layernorm.weight", a.Hidden),
		postNorm:  l.vector(p+"post_attention_layernorm.weight", a.Hidden),
		q:         l.linear(p+"self_attn.q_proj", qWidth, a.Hidden, a.QKVBias()),
		k:         l.linear(p+"self_attn.k_proj", kvWidth, a.Hidden, a.QKVBias()),
		v:         l.linear(p+"self_attn.v_proj", kvWidth, a.Hidden, a.QKVBias()),
		o:         l.linear(p+"self_attn.o_proj", a.Hidden, qWidth, a.OutputBias()),
		gate:      l.linear(p+"mlp.gate_proj", a.Intermediate, a.Hidden, false),
		up:        l.linear(p+"mlp.up_proj", a.Intermediate, a.Hidden, false),
		down:      l.linear(p+"mlp.down_proj", a.Hidden, a.Intermediate, false),
	}
	if l.err != nil {
		return nil, l.err
	}
	return out, nil
}

// checkArch says whether the emulation can run an architecture.
func checkArch(a engine.Arch) error {
	bad := func(what, want string, got any) error {
		return &engine.ConfigError{File: "architecture", What: what, Want: want, Got: fmt.Sprint(got)}
	}
	if a.Family != "qwen2" && a.Family != "llama" {
		return &engine.UnsupportedError{What: fmt.Sprintf("model family %q", a.Family), Why: "the int8 emulation knows qwen2 and llama"}
	}
	for _, d := range []struct {
		what string
		got  int
	}{
		{"layers", a.Layers}, {"hidden size", a.Hidden}, {"intermediate size", a.Intermediate}, {"heads", a.Heads},
		{"key/value heads", a.KVHeads}, {"head dimension", a.HeadDim}, {"vocabulary", a.Vocab},
	} {
		if d.got < 1 {
			return bad(d.what, "at least 1", d.got)
		}
	}
	switch {
	case a.HeadDim%2 != 0:
		return bad("head dimension", "an even number", a.HeadDim)
	case a.Heads%a.KVHeads != 0:
		return bad("heads", fmt.Sprintf("a multiple of %d key/value heads", a.KVHeads), a.Heads)
	case len(a.PerLayer) != a.Layers:
		return bad("per-layer constants", fmt.Sprint(a.Layers), len(a.PerLayer))
	case !(a.FinalNormEps >= 0):
		return bad("final norm", "eps >= 0", a.FinalNormEps)
	case a.Fault.StaleCache && (a.Fault.StaleLayer < 0 || a.Fault.StaleLayer >= a.Layers):
		return bad("fault: stale layer", fmt.Sprintf("0 to %d", a.Layers-1), a.Fault.StaleLayer)
	}
	for n, c := range a.PerLayer {
		if !(c.RopeTheta > 0) || !(c.NormEps >= 0) {
			return bad(fmt.Sprintf("layer %d", n), "rope_theta > 0, eps >= 0", fmt.Sprintf("rope_theta %v, eps %v", c.RopeTheta, c.NormEps))
		}
	}
	return nil
}
