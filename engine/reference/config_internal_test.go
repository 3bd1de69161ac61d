package reference

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
)

const minimalConfig = `{"model_type":"qwen2","hidden_size":64,"intermediate_size":176,"num_hidden_layers":2,
"num_attention_heads":4,"vocab_size":100,"rms_norm_eps":1e-06,"rope_theta":1e6}`

// with adds keys to minimalConfig, or replaces its own.
func with(keys string) string {
	var base map[string]json.RawMessage
	for _, text := range []string{minimalConfig, "{" + keys + "}"} {
		if err := json.Unmarshal([]byte(text), &base); err != nil {
			panic(err)
		}
	}
	out, err := json.Marshal(base)
	if err != nil {
		panic(err)
	}
	return string(out)
}

func TestConfigDefaults(t *testing.T) {
	c, err := readConfig("config.json", []byte(minimalConfig))
	require.NoError(t, err)
	require.Equal(t, engine.Arch{
		Family: "qwen2", Layers: 2, Hidden: 64, Intermediate: 176, Heads: 4, KVHeads: 4, HeadDim: 16, Vocab: 100,
		FinalNormEps: 1e-6, PerLayer: []engine.LayerParams{{RopeTheta: 1e6, NormEps: 1e-6}, {RopeTheta: 1e6, NormEps: 1e-6}},
	}, c.arch)
	require.Empty(t, c.dtype)
}

func TestConfigAcceptsAgreement(t *testing.T) {
	for _, keys := range []string{
		`"rope_parameters":{"rope_theta":1000000,"rope_type":"default"}`,
		`"rope_scaling":{"type":"default"}`,
		`"rope_scaling":null,"rope_parameters":null`,
		`"dtype":"float16","torch_dtype":"torch.float16"`,
		`"head_dim":null,"num_key_value_heads":null`,
		`"hidden_size":64.0`,
		`"attention_bias":true,"mlp_bias":false,"partial_rotary_factor":1,"text_config":null,"use_mrope":false,"logit_scale":1.0`,
		`"rope_scaling":{},"quantization_config":null,"rms_norm_eps":1e-5,"is_encoder_decoder":false`,
		`"rope_theta":null,"rope_parameters":{"rope_theta":1e6}`,
	} {
		c, err := readConfig("config.json", []byte(with(keys)))
		require.NoError(t, err, keys)
		require.Equal(t, 1e6, c.arch.PerLayer[1].RopeTheta, keys)
		require.Empty(t, c.unused, keys)
	}
}

// TestLlamaConfigs: what a llama's config may say beyond a qwen2's, and may not.
func TestLlamaConfigs(t *testing.T) {
	for keys, bias := range map[string]bool{
		``:                       false,
		`"attention_bias":null`:  false,
		`"attention_bias":false`: false,
		`"attention_bias":true`:  true,
		`"rope_theta":null,"rope_parameters":{"rope_theta":1e6,"rope_type":"linear","factor":1.0}`: false,
		`"rope_scaling":{"type":"linear","factor":1}`:                                              false,
		// config.json of HuggingFaceTB/SmolLM2-135M-Instruct
		`"pretraining_tp":1,"rope_interleaved":false,"is_llama_config":true,"mlp_bias":false,"attention_dropout":0.0,
"transformers.js_config":{"kv_cache_dtype":{"q4f16":"float16"}},"architectures":["LlamaForCausalLM"],"initializer_range":0.04`: false,
	} {
		if keys != "" {
			keys = "," + keys
		}
		c, err := readConfig("config.json", []byte(with(`"model_type":"llama"`+keys)))
		require.NoError(t, err, keys)
		require.Equal(t, engine.Arch{
			Family: "llama", Layers: 2, Hidden: 64, Intermediate: 176, Heads: 4, KVHeads: 4, HeadDim: 16, Vocab: 100, AttentionBias: bias,
			FinalNormEps: 1e-6, PerLayer: []engine.LayerParams{{RopeTheta: 1e6, NormEps: 1e-6}, {RopeTheta: 1e6, NormEps: 1e-6}},
		}, c.arch, keys)
		require.Empty(t, c.unused, keys)
	}
	for keys, want := range map[string]string{
		`"mlp_bias":true`:                              "mlp_bias true not supported",
		`"qkv_bias":true`:                              "qkv_bias true not supported",
		`"pretraining_tp":2`:                           "pretraining_tp 2 not supported",
		`"rope_interleaved":true`:                      "rope_interleaved true not supported",
		`"architectures":["Qwen2ForCausalLM"]`:         `of model_type llama the engine has LlamaForCausalLM only`,
		`"rope_scaling":{"rope_type":"linear"}`:        `rope_scaling.rope_type "linear" not supported`,
		`"rope_scaling":{"type":"dynamic","factor":1}`: `rope_scaling.type "dynamic" not supported`,
		`"rope_scaling":{"rope_type":"llama3","factor":32.0,"low_freq_factor":1.0,"high_freq_factor":4.0,"original_max_position_embeddings":8192}`: `rope_scaling.rope_type "llama3" not supported`,
	} {
		_, err := readConfig("config.json", []byte(with(`"model_type":"llama",`+keys)))
		var unsupported *engine.UnsupportedError
		require.ErrorAs(t, err, &unsupported, keys)
		require.ErrorContains(t, err, want)
	}
	_, err := readConfig("config.json", []byte(with(`"model_type":"llama","attention_bias":1`)))
	var bad *engine.ConfigError
	require.ErrorAs(t, err, &bad)
	require.ErrorContains(t, err, "attention_bias: got 1")
}

func TestConfigRefusals(t *testing.T) {
	for _, c := range []struct {
		name, config string
		unsupported  bool // else an *engine.ConfigError
		text         string
	}{
		{"not JSON", `{"model_type":`, false, "JSON"},
		{"not an object", `[1]`, false, "JSON"},
		{"null", `null`, false, "want an object"},
		{"two documents", minimalConfig + "{}", false, "JSON: after the JSON value at byte"},
		{"a key twice", `{"hidden_size":32,` + minimalConfig[1:], false, `got key "hidden_size" twice, want each key once`},
		{"a nested key twice", with(`"id2label":{"0":"a","0":"b"}`), false, `JSON: id2label at byte`},
		{"a key twice, once escaped", `{"\u0068idden_size":32,` + minimalConfig[1:], false, `got key "hidden_size" twice`},
		{"no model type", strings.Replace(minimalConfig, "model_type", "kind", 1), false, "model_type: got nothing"},
		{"unknown model type", with(`"model_type":"mamba"`), true, `model_type "mamba"`},
		{"unknown architecture", with(`"architectures":["Qwen2ForSequenceClassification"]`), true, "Qwen2ForSequenceClassification"},
		{"no hidden size", strings.Replace(minimalConfig, "hidden_size", "hiddensize", 1), false, "hidden_size: got nothing"},
		{"fractional size", with(`"hidden_size":64.5`), false, "hidden_size: got 64.5"},
		{"size in a string", with(`"hidden_size":"64"`), false, `hidden_size: got "64"`},
		{"huge size", with(`"vocab_size":1e30`), false, "vocab_size: got 1e30"},
		{"negative size", with(`"num_hidden_layers":-1`), false, "num_hidden_layers: got -1"},
		{"too many layers", with(`"num_hidden_layers":100000`), false, "layer parameters"},
		{"indivisible heads", with(`"num_attention_heads":3`), false, "head_dim: got nothing, and 64 / 3"},
		{"indivisible heads, null", with(`"num_attention_heads":3,"head_dim":null`), false, "head_dim: got nothing, and 64 / 3"},
		{"indivisible key-value heads", with(`"num_key_value_heads":3`), false, "attention heads: got 4"},
		{"no eps", strings.Replace(minimalConfig, "rms_norm_eps", "layer_norm_eps", 1), false, "rms_norm_eps: got nothing"},
		{"zero eps", with(`"rms_norm_eps":0`), false, "rms_norm_eps: got 0"},
		{"eps of 1", with(`"rms_norm_eps":1`), false, "rms_norm_eps: got 1, want a number between 0 and 1"},
		{"no rope_theta", strings.Replace(minimalConfig, "rope_theta", "theta", 1), false, "rope_theta: got nothing"},
		{"negative rope_theta", with(`"rope_theta":-1`), false, "rope_theta: got -1"},
		{"contradicting rope_theta", with(`"rope_parameters":{"rope_theta":10000.0,"rope_type":"default"}`), false,
			"rope_parameters.rope_theta: got 10000, want 1e+06"},
		{"contradicting dtype", with(`"dtype":"float32","torch_dtype":"bfloat16"`), false, "torch_dtype: got bfloat16, want float32"},
		{"strange dtype", with(`"dtype":"float8_e4m3fn"`), true, "float8_e4m3fn"},
		{"rope type", with(`"rope_parameters":{"rope_type":"yarn","factor":4}`), true, `rope_parameters.rope_type "yarn"`},
		{"rope scaling", with(`"rope_scaling":{"type":"linear","factor":4}`), true, `rope_scaling.type "linear"`},
		{"rope scaling without a type", with(`"rope_scaling":{"original_max_position_embeddings":4}`), true, `rope_scaling without a type`},
		{"rope factor", with(`"rope_parameters":{"factor":4}`), true, `rope_parameters.factor 4`},
		{"partial rotation at the top", with(`"partial_rotary_factor":0.5`), true, "partial_rotary_factor 0.5 not supported: it must be 1"},
		{"partial rotation in a string", with(`"partial_rotary_factor":"1"`), true, `partial_rotary_factor "1"`},
		{"feed-forward biases", with(`"mlp_bias":true`), true, "mlp_bias true not supported: it must be false"},
		{"no attention biases", with(`"attention_bias":false`), true, "attention_bias false not supported: it must be true"},
		{"nested model", with(`"text_config":{"hidden_size":64}`), true, `text_config {"hidden_size":64} not supported: it must not be there`},
		{"capped logits", with(`"final_logit_softcapping":30.0`), true, "final_logit_softcapping 30.0"},
		{"capped scores", with(`"attn_logit_softcapping":50`), true, "attn_logit_softcapping 50"},
		{"scaled embedding", with(`"embedding_multiplier":12`), true, "embedding_multiplier 12"},
		{"experts", with(`"num_experts":60`), true, "num_experts 60"},
		{"partial rotation", with(`"rope_parameters":{"partial_rotary_factor":0.5}`), true, "partial_rotary_factor 0.5"},
		{"activation", with(`"hidden_act":"gelu"`), true, `hidden_act "gelu"`},
		{"sliding window", with(`"use_sliding_window":true`), true, "use_sliding_window"},
		{"layer type", with(`"layer_types":["full_attention","sliding_attention"]`), true, `layer_types[1] "sliding_attention"`},
		{"layer type count", with(`"layer_types":["full_attention"]`), false, "layer_types: got 1 entries"},
		{"quantised", with(`"quantization_config":{"quant_method":"gptq"}`), true, "quantization_config"},
		{"flag in a string", with(`"use_sliding_window":"no"`), false, `use_sliding_window: got "no"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := readConfig("config.json", []byte(c.config))
			if c.unsupported {
				var unsupported *engine.UnsupportedError
				require.ErrorAs(t, err, &unsupported)
			} else {
				var bad *engine.ConfigError
				require.ErrorAs(t, err, &bad)
			}
			require.ErrorContains(t, err, c.text)
		})
	}
}

// FuzzReadConfig: whatever is accepted can be computed as it stands.
func FuzzReadConfig(f *testing.F) {
	f.Add([]byte(minimalConfig))
	f.Add([]byte(with(`"rope_parameters":{"rope_theta":1e6,"rope_type":"default"},"dtype":"bfloat16"`)))
	f.Add([]byte(with(`"model_type":"llama","attention_bias":true,"rope_scaling":{"type":"linear","factor":1}`)))
	f.Add([]byte(with(`"layer_types":["full_attention"],"head_dim":null,"architectures":[]`)))
	f.Add([]byte(`{"model_type":"qwen2","rope_parameters":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := readConfig("config.json", data)
		if err != nil {
			return
		}
		if err := checkArch(c.arch); err != nil {
			t.Fatalf("accepted, but %v", err)
		}
		if len(c.arch.PerLayer) != c.arch.Layers || c.arch.Heads%c.arch.KVHeads != 0 {
			t.Fatalf("accepted %+v", c.arch)
		}
	})
}
