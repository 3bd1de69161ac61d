package reference_test

import (
	"encoding/json"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/fixtures"
)

// gemma4Files is the fixture with its config changed: a nil value removes a key, a
// key "a.b" is in the object a.
func gemma4Files(t *testing.T, change map[string]any) files {
	t.Helper()
	f := files{}
	for _, name := range []string{"config.json", "model.safetensors"} {
		data, err := fs.ReadFile(fixtures.Gemma4Model(), name)
		require.NoError(t, err)
		f[name] = data
	}
	var config map[string]any
	require.NoError(t, json.Unmarshal(f["config.json"], &config))
	for key, v := range change {
		if v == nil {
			delete(config, key)
		} else {
			config[key] = v
		}
	}
	data, err := json.Marshal(config)
	require.NoError(t, err)
	f["config.json"] = data
	return f
}

func TestGemma4Config(t *testing.T) {
	c, err := reference.LoadFS(gemma4Files(t, nil).inMemory(), ".")
	require.NoError(t, err)
	require.Empty(t, c.UnusedKeys())
	require.Empty(t, c.UnusedTensors())
	a := c.Arch()
	require.Equal(t, "gemma4_text", a.Family)
	require.True(t, a.TiedHead)
	require.InDelta(t, 6.324555320336759, a.EmbedScale, 1e-15)
	require.InDelta(t, 4.0, a.LogitCap, 0)
	for n, l := range a.PerLayer {
		want := engine.LayerParams{RopeTheta: 1e4, RopePairs: 4, RopeFactor: 1, NormEps: 1e-6, Window: 8}
		if n%6 == 5 {
			want = engine.LayerParams{RopeTheta: 1e6, RopePairs: 2, RopeFactor: 1, NormEps: 1e-6, KVHeads: 1, HeadDim: 16, KeyIsValue: true}
		}
		require.Equal(t, want, l, n)
	}
	for probe, width := range map[engine.Probe]int{
		"blocks.4.q": 32, "blocks.4.k": 16, "blocks.4.v": 16, "blocks.4.attn_out": 32, "blocks.4.k_rope": 16,
		"blocks.5.q": 64, "blocks.5.k": 16, "blocks.5.v": 16, "blocks.5.attn_out": 64, "blocks.5.q_rope": 64, "blocks.5.resid_mid": 40,
	} {
		got, err := probe.Width(a)
		require.NoError(t, err)
		require.Equal(t, width, got, probe)
	}

	// tie_word_embeddings is true where it isn't said.
	c, err = reference.LoadFS(gemma4Files(t, map[string]any{"tie_word_embeddings": nil, "final_logit_softcapping": nil}).inMemory(), ".")
	require.NoError(t, err)
	require.True(t, c.Arch().TiedHead)
	require.Zero(t, c.Arch().LogitCap)
}

func TestGemma4ConfigRefusals(t *testing.T) {
	types := make([]string, 30)
	for i := range types {
		types[i] = "sliding_attention"
	}
	rope := func(kind string, change map[string]any) map[string]any {
		all := map[string]any{
			"full_attention":    map[string]any{"rope_type": "proportional", "rope_theta": 1e6, "partial_rotary_factor": 0.25},
			"sliding_attention": map[string]any{"rope_type": "default", "rope_theta": 1e4},
		}
		if change == nil {
			delete(all, kind)
			return all
		}
		for k, v := range change {
			all[kind].(map[string]any)[k] = v
		}
		return all
	}
	for _, c := range []struct {
		name        string
		change      map[string]any
		want        string
		unsupported bool
	}{
		{"experts", map[string]any{"enable_moe_block": true}, "enable_moe_block true not supported: it must be false: there is no mixture of experts", true},
		{"embeddings per layer", map[string]any{"hidden_size_per_layer_input": 256}, "hidden_size_per_layer_input 256 not supported: it must be 0", true},
		{"embeddings per layer by default", map[string]any{"hidden_size_per_layer_input": nil}, "hidden_size_per_layer_input nothing not supported", true},
		{"shared caches", map[string]any{"num_kv_shared_layers": 10}, "num_kv_shared_layers 10 not supported", true},
		{"wide MLP", map[string]any{"use_double_wide_mlp": true}, "use_double_wide_mlp true not supported", true},
		{"bidirectional", map[string]any{"use_bidirectional_attention": "all"}, `use_bidirectional_attention "all" not supported`, true},
		{"biases", map[string]any{"attention_bias": true}, "attention_bias true not supported", true},
		{"activation", map[string]any{"hidden_activation": "silu"}, `hidden_activation "silu" not supported`, true},
		{"no activation", map[string]any{"hidden_activation": nil}, `hidden_activation "" not supported`, true},
		{"class", map[string]any{"architectures": []string{"Gemma4ForConditionalGeneration"}}, "Gemma4ForCausalLM only", true},
		{"nested", map[string]any{"text_config": map[string]any{}}, "text_config {} not supported", true},
		{"whole model", map[string]any{"model_type": "gemma4"}, `model_type "gemma4" not supported`, true},
		{"capped scores", map[string]any{"attn_logit_softcapping": 50}, "attn_logit_softcapping 50 not supported", true},
		{"no layer types", map[string]any{"layer_types": nil}, "layer_types: got nothing", false},
		{"last layer", map[string]any{"layer_types": types}, "layer_types[29]: got sliding_attention, want full_attention in the last layer", false},
		{"too few", map[string]any{"layer_types": []string{"full_attention"}}, "layer_types: got 1 entries, want one per layer, 30", false},
		{"no window", map[string]any{"sliding_window": nil}, "sliding_window: got nothing", false},
		{"no global heads", map[string]any{"num_global_key_value_heads": nil}, "num_global_key_value_heads: got nothing, with attention_k_eq_v", false},
		{"no global dim", map[string]any{"global_head_dim": nil}, "global_head_dim: got nothing", false},
		{"cap", map[string]any{"final_logit_softcapping": -1}, "final_logit_softcapping: got -1, want a number above 0", false},
		{"no rope", map[string]any{"rope_parameters": nil}, "rope_parameters: got nothing", false},
		{"no global rope", map[string]any{"rope_parameters": rope("full_attention", nil)}, "rope_parameters.full_attention: got nothing", false},
		{"yarn", map[string]any{"rope_parameters": rope("full_attention", map[string]any{"rope_type": "yarn"})}, `rope_type "yarn" not supported`, true},
		{"default on a wider head", map[string]any{"rope_parameters": rope("full_attention", map[string]any{"rope_type": "default", "partial_rotary_factor": 1})}, "the type is proportional", true},
		{"partial default", map[string]any{"rope_parameters": rope("sliding_attention", map[string]any{"partial_rotary_factor": 0.5})}, "partial_rotary_factor 0.5 not supported", true},
		{"nothing turns", map[string]any{"rope_parameters": rope("full_attention", map[string]any{"partial_rotary_factor": 0.1})}, "a partial_rotary_factor of 0.1, want one by which a pair", false},
		{"other values", map[string]any{"attention_k_eq_v": false, "num_global_key_value_heads": nil}, "k_proj.weight: got shape [16 40], want shape [32 40]", false},
		{"another width", map[string]any{"global_head_dim": 8}, "shape", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := reference.LoadFS(gemma4Files(t, c.change).inMemory(), ".")
			require.ErrorContains(t, err, c.want)
			if c.unsupported {
				var unsupported *engine.UnsupportedError
				require.ErrorAs(t, err, &unsupported)
				return
			}
			var config *engine.ConfigError
			require.ErrorAs(t, err, &config)
		})
	}
}

// TestProportionalRope: transformers' proportional frequencies of a head of 16, of
// which a half turns, with the factor 2: 1e4^(-2i/16)/2 for i below 4, and 0.
func TestProportionalRope(t *testing.T) {
	for _, dtype := range []reference.DType{reference.Float32, reference.Float64} {
		t.Run(string(dtype), func(t *testing.T) {
			w := &altered{gemma4Engine(t).Weights(), gemma4Engine(t).Weights().Arch(), nil}
			w.arch.PerLayer[5].RopePairs, w.arch.PerLayer[5].RopeFactor, w.arch.PerLayer[5].RopeTheta = 4, 2, 1e4
			e, err := reference.New(w, reference.WithDType(dtype))
			require.NoError(t, err)
			run, err := e.CaptureProbes(t.Context(), []int{2, 9, 4, 77}, nil, []engine.Probe{"blocks.5.k", "blocks.5.k_rope"})
			require.NoError(t, err)
			const pos = 3
			k, turned := widened(run["blocks.5.k"].Row(pos)), widened(run["blocks.5.k_rope"].Row(pos))
			// cos and sin of 3 * 1e4^(-i/8) / 2 for i = 0, 1, 2, 3.
			cos := []float64{0.0707372016677029, 0.8895936180926167, 0.9887710779360422, 0.9988752109216803}
			sin := []float64{0.9974949866040544, 0.45675288137995096, 0.14943813247359924, 0.04741637909170887}
			for i := range 8 {
				a, b := k[i], k[i+8]
				if i < 4 {
					a, b = a*cos[i]-b*sin[i], b*cos[i]+a*sin[i]
				}
				require.InDelta(t, a, turned[i], 1e-6)
				require.InDelta(t, b, turned[i+8], 1e-6)
			}
		})
	}
}
