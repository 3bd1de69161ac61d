package mutant

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
)

// ofHybrids reports whether a model without linear layers, latent attention and
// experts can't have the fault.
func ofHybrids(m Mutant) bool {
	return slices.ContainsFunc(slices.Concat(hybridFaults(), routeFaults()), func(h Mutant) bool { return h.Name == m.Name })
}

// hybridArch has a layer with attention behind every two linear ones.
func hybridArch() engine.Arch {
	a := engine.Arch{Family: "qwen3_5", Layers: 6, Hidden: 4, KVHeads: 2, HeadDim: 8, DeltaNet: engine.DeltaNet{ValueHeads: 3}}
	for n := range a.Layers {
		a.PerLayer = append(a.PerLayer, engine.LayerParams{RopeTheta: 1e7, NormEps: 1e-6, Linear: n%3 != 2})
	}
	return a
}

// numbered are weights whose every tensor has the rows 1, 2 and 3 of two values.
type numbered struct{ shaped }

func (numbered) Tensor(string) (engine.Tensor, error) {
	return engine.Tensor{Shape: []int{3, 2}, Data: []float32{1, 1, 2, 2, 3, 3}}, nil
}

func TestHybridFaults(t *testing.T) {
	plant := func(name string, at int) (engine.Weights, error) {
		m, err := Lookup(name)
		require.NoError(t, err)
		return m.Weights(numbered{shaped{hybridArch()}}, at)
	}
	for _, c := range []struct {
		name   string
		at     int
		change func(a *engine.Arch)
	}{
		{"recurrent-state-stale", 3, func(a *engine.Arch) {
			a.Fault = engine.Fault{StaleCache: true, StaleLayer: 3, StalePosition: -1, StaleOnward: true}
		}},
		{"conv-state-off-by-one", 4, func(a *engine.Arch) { a.Fault = engine.Fault{ConvLate: true, ConvLayer: 4} }},
		{"conv-state-off-by-one", -1, func(a *engine.Arch) { a.Fault = engine.Fault{ConvLate: true, ConvLayer: -1} }},
		{"attention-gate-missing", 5, func(a *engine.Arch) { a.PerLayer[5].GateMissing = true }},
		{"attention-gate-missing", -1, func(a *engine.Arch) { a.PerLayer[2].GateMissing, a.PerLayer[5].GateMissing = true, true }},
		// Faults of other models, in the layers that can have them.
		{"rope-base", -1, func(a *engine.Arch) { a.PerLayer[2].RopeTheta, a.PerLayer[5].RopeTheta = 1e4, 1e4 }},
		{"q-position-off-by-one", -1, func(a *engine.Arch) { a.PerLayer[2].QueryOffset, a.PerLayer[5].QueryOffset = 1, 1 }},
		{"stale-cache-row", 0, func(a *engine.Arch) { a.Fault = engine.Fault{StaleCache: true, StalePosition: -1} }},
		{"final-norm-skipped", 0, func(a *engine.Arch) { a.FinalNormEps = 0x1p40 }},
	} {
		w, err := plant(c.name, c.at)
		require.NoError(t, err, c.name)
		want := hybridArch()
		c.change(&want)
		assert.Equal(t, want, w.Arch(), c.name)
	}

	const clean = "as it was"
	for _, c := range []struct {
		name   string
		at     int
		values map[string]any // by tensor; the others are the clean ones
	}{
		{"beta-wrong-row", 1, map[string]any{
			"model.layers.1.linear_attn.in_proj_b.weight": []float32{2, 2, 3, 3, 1, 1}, "model.layers.0.linear_attn.in_proj_b.weight": clean,
			"model.layers.1.linear_attn.in_proj_a.weight": clean,
		}},
		{"beta-wrong-row", -1, map[string]any{
			"model.layers.0.linear_attn.in_proj_b.weight": []float32{2, 2, 3, 3, 1, 1}, "model.layers.4.linear_attn.in_proj_b.weight": []float32{2, 2, 3, 3, 1, 1},
		}},
		{"norm-gain-ones", 1, map[string]any{"model.layers.1.input_layernorm.weight": make([]float32, 6)}},
		{"final-norm-ones", 0, map[string]any{"model.norm.weight": make([]float32, 6)}},
		{"final-norm-skipped", 0, map[string]any{"model.norm.weight": []float32{0xfffff, 0xfffff, 0xfffff, 0xfffff, 0xfffff, 0xfffff}}},
		{"layer-skipped", 1, map[string]any{"model.layers.1.linear_attn.out_proj.weight": make([]float32, 6), "model.layers.2.self_attn.o_proj.weight": clean}},
		{"layer-skipped", 2, map[string]any{"model.layers.2.self_attn.o_proj.weight": make([]float32, 6)}},
		{"kv-heads-swapped", -1, map[string]any{"model.layers.2.self_attn.k_proj.weight": []float32{2, 3, 3, 1, 1, 2}, "model.layers.1.self_attn.k_proj.weight": clean}},
	} {
		w, err := plant(c.name, c.at)
		require.NoError(t, err, c.name)
		for tensor, want := range c.values {
			if want == clean {
				want = []float32{1, 1, 2, 2, 3, 3}
			}
			got, err := w.Tensor(tensor)
			require.NoError(t, err)
			assert.Equal(t, want, got.Data, "%s: %s", c.name, tensor)
		}
	}

	for name, at := range map[string]int{
		"recurrent-state-stale": 2, "conv-state-off-by-one": 5, "attention-gate-missing": 0, "beta-wrong-row": 2,
		"rope-base": 0, "q-position-off-by-one": 1, "kv-heads-swapped": 3,
	} {
		_, err := plant(name, at)
		var unsupported *engine.UnsupportedError
		assert.ErrorAs(t, err, &unsupported, name)
	}
	for _, m := range hybridFaults() {
		_, err := m.Weights(weights(t), 3)
		var unsupported *engine.UnsupportedError
		assert.ErrorAs(t, err, &unsupported, m.Name)
	}
}
