package reference_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
)

// memWeights is a checkpoint in memory.
type memWeights struct {
	arch    engine.Arch
	tensors map[string]engine.Tensor
}

func (w *memWeights) Arch() engine.Arch { return w.arch.Clone() }

func (w *memWeights) Tensor(name string) (engine.Tensor, error) {
	t, ok := w.tensors[name]
	if !ok {
		return engine.Tensor{}, &engine.ConfigError{File: "memory", What: "tensor " + name, Got: "none", Want: "one"}
	}
	return t, nil
}

// smallArch is a model small enough for the naive loops. Heads*HeadDim differs
// from Hidden on purpose, and the constants differ between layers.
func smallArch() engine.Arch {
	a := engine.Arch{
		Family: "qwen2", Layers: 3, Hidden: 24, Intermediate: 40, Heads: 4, KVHeads: 2, HeadDim: 8, Vocab: 50,
		TiedHead: true, MaxPositions: 128, FinalNormEps: 1e-5,
	}
	for n := range a.Layers {
		a.PerLayer = append(a.PerLayer, engine.LayerParams{RopeTheta: 1e4 * float64(n+1), NormEps: 1e-6 * float64(n+1)})
	}
	return a
}

// randomWeights fills an architecture with seeded values of the size that
// trained checkpoints have: norm weights near 1, the rest scaled by 1/sqrt(in).
func randomWeights(a engine.Arch, seed uint64) *memWeights {
	rng := rand.New(rand.NewPCG(seed, 1))
	w := &memWeights{arch: a, tensors: map[string]engine.Tensor{}}
	add := func(name string, mean, sd float64, shape ...int) {
		n := 1
		for _, d := range shape {
			n *= d
		}
		data := make([]float32, n)
		for i := range data {
			data[i] = float32(mean + sd*rng.NormFloat64())
		}
		w.tensors[name] = engine.Tensor{Shape: shape, Data: data}
	}
	matrix := func(name string, out, in int) { add(name, 0, 1/math.Sqrt(float64(in)), out, in) }
	add("model.embed_tokens.weight", 0, 1, a.Vocab, a.Hidden)
	add("model.norm.weight", 1, 0.2, a.Hidden)
	matrix("lm_head.weight", a.Vocab, a.Hidden)
	q, kv := a.Heads*a.HeadDim, a.KVHeads*a.HeadDim
	for n := range a.Layers {
		p := fmt.Sprintf("model.layers.%d.", n)
		add(p+"input_layernorm.weight", 1, 0.2, a.Hidden)
		add(p+"post_attention_layernorm.weight", 1, 0.2, a.Hidden)
		matrix(p+"self_attn.q_proj.weight", q, a.Hidden)
		matrix(p+"self_attn.k_proj.weight", kv, a.Hidden)
		matrix(p+"self_attn.v_proj.weight", kv, a.Hidden)
		matrix(p+"self_attn.o_proj.weight", a.Hidden, q)
		if a.Family == "qwen2" || a.AttentionBias {
			add(p+"self_attn.q_proj.bias", 0, 0.5, q)
			add(p+"self_attn.k_proj.bias", 0, 0.5, kv)
			add(p+"self_attn.v_proj.bias", 0, 0.5, kv)
		}
		if a.AttentionBias {
			add(p+"self_attn.o_proj.bias", 0, 0.5, a.Hidden)
		}
		matrix(p+"mlp.gate_proj.weight", a.Intermediate, a.Hidden)
		matrix(p+"mlp.up_proj.weight", a.Intermediate, a.Hidden)
		matrix(p+"mlp.down_proj.weight", a.Hidden, a.Intermediate)
	}
	return w
}

func prompt(n, vocab int) []int {
	rng := rand.New(rand.NewPCG(uint64(n), 2))
	ids := make([]int, n)
	for i := range ids {
		ids[i] = rng.IntN(vocab)
	}
	return ids
}

func mustNew(t testing.TB, w engine.Weights, opts ...reference.Option) *reference.Engine {
	t.Helper()
	e, err := reference.New(w, opts...)
	require.NoError(t, err)
	return e
}

// small is the clean small model, shared by the tests that only read it.
var small = sync.OnceValue(func() *reference.Engine {
	e, err := reference.New(randomWeights(smallArch(), 1))
	if err != nil {
		panic(err)
	}
	return e
})

// relL2 is |got - want| / |want|. NaN stays NaN: compare with !(x <= bound).
func relL2(got, want []float64) float64 {
	if len(got) != len(want) {
		return math.NaN()
	}
	var d, n float64
	for i := range want {
		d += (got[i] - want[i]) * (got[i] - want[i])
		n += want[i] * want[i]
	}
	return math.Sqrt(d / n)
}

// requireClose demands relative L2 <= bound of every row, and as many rows.
func requireClose(t *testing.T, got, want [][]float64, bound float64) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		if err := relL2(got[i], want[i]); !(err <= bound) {
			t.Errorf("row %d: relative L2 %.3g, want at most %.3g", i, err, bound)
		}
	}
}

// sameBits reports whether all rows are equal value by value; a NaN is unequal.
func sameBits(a, b [][]float64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if len(a[i]) != len(b[i]) {
			return false
		}
		for j := range a[i] {
			if !(a[i][j] == b[i][j]) {
				return false
			}
		}
	}
	return true
}

func errorsAs[T error](err error, target *T) bool { return errors.As(err, target) }
