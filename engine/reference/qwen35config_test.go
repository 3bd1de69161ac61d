package reference_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
)

// hybridFileArch is hybridArch as far as a file can say it: one rotary base and one
// eps for all layers.
func hybridFileArch() engine.Arch {
	a := hybridArch()
	for n := range a.PerLayer {
		a.PerLayer[n].RopeTheta, a.PerLayer[n].NormEps = 20000, 1e-5
	}
	return a
}

// hybridText is the config of hybridFileArch's text model, with the keys that
// published files have.
func hybridText() map[string]any {
	var kinds []string
	for _, l := range hybridArch().PerLayer {
		kinds = append(kinds, map[bool]string{true: "linear_attention", false: "full_attention"}[l.Linear])
	}
	return map[string]any{
		"attention_bias": false, "attention_dropout": 0.0, "attn_output_gate": true, "bos_token_id": nil, "dtype": "bfloat16",
		"eos_token_id": 7, "full_attention_interval": 3, "head_dim": 8, "hidden_act": "silu", "hidden_size": 24, "initializer_range": 0.02,
		"intermediate_size": 40, "layer_types": kinds, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 6, "linear_num_key_heads": 2,
		"linear_num_value_heads": 4, "linear_value_head_dim": 10, "mamba_ssm_dtype": "float32", "max_position_embeddings": 512,
		"mlp_only_layers": []any{}, "model_type": "qwen3_5_text", "mtp_num_hidden_layers": 1, "mtp_use_dedicated_embeddings": false,
		"num_attention_heads": 4, "num_experts": 0, "num_hidden_layers": 7, "num_key_value_heads": 2, "partial_rotary_factor": 0.5,
		"rms_norm_eps": 1e-5, "tie_word_embeddings": false, "use_cache": true, "vocab_size": 50,
		"rope_parameters": map[string]any{"mrope_interleaved": true, "mrope_section": []int{1, 1, 0}, "partial_rotary_factor": 0.5,
			"rope_theta": 20000.0, "rope_type": "default"},
	}
}

// hybridFiles is a checkpoint of the whole model, or of the text model alone, with
// its config changed: a nil value removes a key, "a.b" is the key b in the object a.
// more are tensors beside the text model's.
func hybridFiles(t *testing.T, whole bool, change map[string]any, more ...string) files {
	t.Helper()
	config, prefix := hybridText(), "model."
	config["architectures"] = []string{"Qwen3_5ForCausalLM"}
	if whole {
		text := hybridText()
		prefix = "model.language_model."
		config = map[string]any{
			"architectures": []string{"Qwen3_5ForConditionalGeneration"}, "dtype": "bfloat16", "model_type": "qwen3_5", "image_token_id": 40,
			"video_token_id": 41, "vision_start_token_id": 42, "vision_end_token_id": 43, "tie_word_embeddings": false,
			"text_config": text, "transformers_version": "5.13.1", "vision_config": map[string]any{"depth": 1, "model_type": "qwen3_5_vision"},
		}
	}
	for key, v := range change {
		in := config
		parts := strings.Split(key, ".")
		for _, p := range parts[:len(parts)-1] {
			in = in[p].(map[string]any)
		}
		if last := parts[len(parts)-1]; v == nil {
			delete(in, last)
		} else {
			in[last] = v
		}
	}
	tensors := map[string]engine.Tensor{}
	for name, tensor := range randomHybrid(hybridFileArch(), 1).tensors {
		if rest, ok := strings.CutPrefix(name, "model."); ok {
			name = prefix + rest
		}
		tensors[name] = tensor
	}
	for _, name := range more {
		tensors[name] = engine.Tensor{Shape: []int{1}, Data: []float32{1}}
	}
	data, err := json.Marshal(config)
	require.NoError(t, err)
	return files{"config.json": data, "model.safetensors": safetensorsFile(t, "F32", tensors)}
}

// TestHybridConfig: the whole model and the text model alone are the same one, under
// the same names.
func TestHybridConfig(t *testing.T) {
	want := randomHybrid(hybridFileArch(), 1)
	for _, whole := range []bool{true, false} {
		f := hybridFiles(t, whole, nil, "model.visual.patch_embed.proj.weight", "model.visual.pos_embed.weight", "mtp.fc.weight", "another")
		for _, c := range loadBoth(t, f) {
			require.Equal(t, hybridFileArch(), c.Arch())
			require.Equal(t, "bfloat16", c.DType())
			require.Empty(t, c.UnusedKeys())
			require.Equal(t, []string{"another"}, c.UnusedTensors())
			require.Equal(t, []string{
				"model.visual.*, 2 tensors: the vision tower, with vision_config, is left alone: prompts are text",
				"mtp.*, 1 tensors: the heads that predict further tokens are not run",
			}, c.Notes())
			requireTensors(t, c, want.tensors)
			ids := prompt(5, 50)
			require.True(t, sameBits(capture(t, mustNew(t, c), ids).Rows(), capture(t, mustNew(t, want), ids).Rows()))
		}
	}
	// The whole model's names in a file of the text model, which transformers takes.
	f := hybridFiles(t, true, nil)
	f["config.json"] = hybridFiles(t, false, nil)["config.json"]
	c, err := reference.LoadFS(f.inMemory(), ".")
	require.NoError(t, err)
	requireTensors(t, c, want.tensors)
	require.Empty(t, c.Notes())
}

// TestHybridConfigDefaults: what transformers takes where nothing is said.
func TestHybridConfigDefaults(t *testing.T) {
	load := func(change map[string]any) engine.Arch {
		c, err := reference.LoadFS(hybridFiles(t, true, change).inMemory(), ".")
		require.NoError(t, err)
		require.Empty(t, c.UnusedKeys())
		return c.Arch()
	}
	for name, change := range map[string]map[string]any{
		"interval":          {"text_config.layer_types": nil},
		"no interval":       {"text_config.full_attention_interval": nil},
		"old rotary style":  {"text_config.rope_parameters": nil, "text_config.rope_theta": 20000},
		"factor at the top": {"text_config.rope_parameters.partial_rotary_factor": nil},
		"factor nested":     {"text_config.partial_rotary_factor": nil},
		"no sections":       {"text_config.rope_parameters.mrope_section": nil, "text_config.rope_parameters.mrope_interleaved": nil},
		"other sections":    {"text_config.rope_parameters.mrope_section": []int{0, 1, 1}, "text_config.rope_parameters.mrope_interleaved": false},
		"head said once":    {"text_config.tie_word_embeddings": nil},
		"head by default":   {"text_config.tie_word_embeddings": nil, "tie_word_embeddings": nil},
		"no nested type":    {"text_config.model_type": nil},
		"dtype said once":   {"dtype": nil},
		"no vision":         {"vision_config": nil},
		"said outside too": {"rope_theta": 2e4, "rms_norm_eps": 1e-5, "hidden_size": 24, "num_hidden_layers": 7.0, "vocab_size": 50, "hidden_act": "silu",
			"partial_rotary_factor": 0.5, "layer_types": hybridText()["layer_types"], "rope_parameters": map[string]any{"rope_theta": 20000, "rope_type": "default"}},
		"biases, gates unsaid": {"text_config.attention_bias": nil, "text_config.attn_output_gate": nil, "text_config.hidden_act": nil},
	} {
		require.Equal(t, hybridFileArch(), load(change), name)
	}
	a := load(map[string]any{"text_config.partial_rotary_factor": 1, "text_config.rope_parameters.partial_rotary_factor": 1.0})
	require.Zero(t, a.PerLayer[2].RotaryDim, "the whole head")
	a = load(map[string]any{"text_config.partial_rotary_factor": nil, "text_config.rope_parameters.partial_rotary_factor": nil})
	require.Equal(t, 2, a.PerLayer[2].RotaryDim, "a quarter")
	require.True(t, load(map[string]any{"text_config.tie_word_embeddings": true, "tie_word_embeddings": true}).TiedHead)

	// Every fourth layer, of nine.
	c, err := reference.LoadFS(hybridFiles(t, true, map[string]any{"text_config.layer_types": nil, "text_config.full_attention_interval": nil}).inMemory(), ".")
	require.Nil(t, c)
	requireConfigError(t, err, "tensor model.language_model.layers.2.linear_attn.in_proj_qkv.weight: got nothing, want shape [64 24]")
}

func TestHybridConfigRefusals(t *testing.T) {
	kinds := hybridText()["layer_types"].([]string)
	with := func(n int, kind string) []string {
		out := slices.Clone(kinds)
		out[n] = kind
		return out
	}
	for _, c := range []struct {
		name        string
		change      map[string]any
		want        string
		unsupported bool
	}{
		{"experts", map[string]any{"model_type": "qwen3_5_moe"}, `model_type "qwen3_5_moe" not supported`, true},
		{"experts inside", map[string]any{"text_config.num_experts": 8}, "text_config.num_experts 8 not supported: it must be 0: there is no mixture of experts", true},
		{"layers without experts", map[string]any{"text_config.mlp_only_layers": []int{1}}, "text_config.mlp_only_layers [1] not supported", true},
		{"a model of experts inside", map[string]any{"text_config.model_type": "qwen3_5_moe_text"}, `text_config.model_type "qwen3_5_moe_text" not supported`, true},
		{"no gate", map[string]any{"text_config.attn_output_gate": false}, "text_config.attn_output_gate false not supported: it must be true", true},
		{"another state", map[string]any{"text_config.mamba_ssm_dtype": "bfloat16"}, `text_config.mamba_ssm_dtype "bfloat16" not supported`, true},
		{"class", map[string]any{"architectures": []string{"Qwen3_5ForCausalLM"}}, "of model_type qwen3_5 the engine has Qwen3_5ForConditionalGeneration only", true},
		{"activation", map[string]any{"text_config.hidden_act": "gelu"}, `text_config.hidden_act "gelu" not supported`, true},
		{"quantised", map[string]any{"text_config.quantization_config": map[string]any{}}, "text_config.quantization_config {} not supported", true},
		{"capped", map[string]any{"text_config.final_logit_softcapping": 3}, "text_config.final_logit_softcapping 3 not supported", true},
		{"nested twice", map[string]any{"text_config.text_config": map[string]any{}}, "text_config.text_config {} not supported: a text model has no model in it", true},
		{"vision inside", map[string]any{"text_config.vision_config": map[string]any{}}, "text_config.vision_config {} not supported: a text model has no model in it", true},
		{"kind", map[string]any{"text_config.layer_types": with(1, "sliding_attention")}, `text_config.layer_types[1] "sliding_attention" not supported`, true},
		{"rope", map[string]any{"text_config.rope_parameters.rope_type": "yarn"}, `text_config.rope_parameters.rope_type "yarn" not supported`, true},
		{"rope factor", map[string]any{"text_config.rope_parameters.factor": 2}, "text_config.rope_parameters.factor 2 not supported", true},
		{"no text", map[string]any{"text_config": nil}, "text_config: got nothing, want the config of the text model", false},
		{"text is a list", map[string]any{"text_config": []int{1}}, "text_config: got [1], want an object", false},
		{"too few kinds", map[string]any{"text_config.layer_types": kinds[:3]}, "text_config.layer_types: got 3 entries, want one per layer, 7", false},
		{"another interval", map[string]any{"text_config.full_attention_interval": 4}, "text_config.full_attention_interval: got 4, want the interval of layer_types, or none", false},
		{"no interval", map[string]any{"text_config.full_attention_interval": 0}, "text_config.full_attention_interval: got 0, want a whole number of at least 1", false},
		{"no heads", map[string]any{"text_config.linear_num_key_heads": nil}, "text_config.linear_num_key_heads: got nothing", false},
		{"no kernel", map[string]any{"text_config.linear_conv_kernel_dim": 0}, "text_config.linear_conv_kernel_dim: got 0", false},
		{"heads", map[string]any{"text_config.linear_num_value_heads": 3}, "linear layers: got 2 key heads of 6, 3 value heads of 10", false},
		{"two factors", map[string]any{"text_config.partial_rotary_factor": 0.25}, "text_config.rope_parameters.partial_rotary_factor: got 0.5, want 0.25, which the file says elsewhere", false},
		{"odd part", map[string]any{"text_config.partial_rotary_factor": nil, "text_config.rope_parameters.partial_rotary_factor": 0.4}, "partial_rotary_factor: got 0.4 of 8 channels, want an even number of channels, at least 2", false},
		{"no part", map[string]any{"text_config.partial_rotary_factor": 0, "text_config.rope_parameters.partial_rotary_factor": 0}, "partial_rotary_factor: got 0 of 8 channels", false},
		{"more than a head", map[string]any{"text_config.partial_rotary_factor": 2, "text_config.rope_parameters.partial_rotary_factor": 2}, "partial_rotary_factor: got 2 of 8 channels", false},
		{"two sections", map[string]any{"text_config.rope_parameters.mrope_section": []int{1, 1}}, "text_config.rope_parameters.mrope_section: got [1 1], want three whole numbers", false},
		{"a negative section", map[string]any{"text_config.rope_parameters.mrope_section": []int{1, -1, 2}}, "mrope_section: got [1 -1 2]", false},
		{"half a section", map[string]any{"text_config.rope_parameters.mrope_section": []float64{0.5, 1, 2}}, "mrope_section: got [0.5,1,2]", false},
		{"no rotary base", map[string]any{"text_config.rope_parameters.rope_theta": nil}, "text_config.rope_theta: got nothing", false},
		{"two rotary bases", map[string]any{"text_config.rope_theta": 1e4}, "text_config.rope_parameters.rope_theta: got 20000, want 10000", false},
		{"two heads", map[string]any{"text_config.tie_word_embeddings": true}, "text_config.tie_word_embeddings: got true, want false, as the model's own says, or its default", false},
		{"two heads by default", map[string]any{"text_config.tie_word_embeddings": true, "tie_word_embeddings": nil}, "text_config.tie_word_embeddings: got true, want false", false},
		{"two dtypes", map[string]any{"text_config.dtype": "float32"}, "text_config.dtype: got float32, want bfloat16", false},
		{"outer base", map[string]any{"rope_theta": 1e4}, "rope_theta: got 10000, want 20000, the value of text_config.rope_parameters.rope_theta", false},
		{"outer nested base", map[string]any{"rope_parameters": map[string]any{"rope_theta": 1e4}}, "rope_parameters.rope_theta: got 10000, want 20000, the value of text_config.rope_parameters.rope_theta", false},
		{"outer nested base, flat inside", map[string]any{"rope_parameters": map[string]any{"rope_theta": 1e4}, "text_config.rope_parameters": nil, "text_config.rope_theta": 20000}, "rope_parameters.rope_theta: got 10000, want 20000, the value of text_config.rope_theta", false},
		{"outer eps", map[string]any{"rms_norm_eps": 1e-6}, "rms_norm_eps: got 0.000001, want 0.00001, the value of text_config.rms_norm_eps", false},
		{"outer width", map[string]any{"hidden_size": 32}, "hidden_size: got 32, want 24, the value of text_config.hidden_size", false},
		{"outer layers", map[string]any{"num_hidden_layers": 8}, "num_hidden_layers: got 8, want 7, the value of text_config.num_hidden_layers", false},
		{"outer vocabulary", map[string]any{"vocab_size": 51}, "vocab_size: got 51, want 50, the value of text_config.vocab_size", false},
		{"outer activation", map[string]any{"hidden_act": "gelu"}, `hidden_act: got "gelu", want "silu", the value of text_config.hidden_act`, false},
		{"outer part", map[string]any{"partial_rotary_factor": 0.25}, "partial_rotary_factor: got 0.25, want 0.5, the value of text_config.partial_rotary_factor", false},
		{"outer part, nested inside", map[string]any{"partial_rotary_factor": 0.25, "text_config.partial_rotary_factor": nil}, "partial_rotary_factor: got 0.25, want 0.5, the value of text_config.rope_parameters.partial_rotary_factor", false},
		{"outer kinds", map[string]any{"layer_types": with(0, "full_attention")}, `layer_types: got ["full_attention",`, false},
		{"no head dimension", map[string]any{"text_config.head_dim": nil}, "text_config.head_dim: got nothing", false},
		{"no eps", map[string]any{"text_config.rms_norm_eps": nil}, "text_config.rms_norm_eps: got nothing", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := reference.LoadFS(hybridFiles(t, true, c.change).inMemory(), ".")
			require.ErrorContains(t, err, c.want)
			var unsupported *engine.UnsupportedError
			var config *engine.ConfigError
			require.Equal(t, c.unsupported, errorsAs(err, &unsupported), err)
			require.Equal(t, !c.unsupported, errorsAs(err, &config), err)
		})
	}
	for name, change := range map[string]map[string]any{
		"vision in a text model":       {"vision_config": map[string]any{}},
		"a text model in a text model": {"text_config": map[string]any{}},
	} {
		_, err := reference.LoadFS(hybridFiles(t, false, change).inMemory(), ".")
		var unsupported *engine.UnsupportedError
		require.ErrorAs(t, err, &unsupported, name)
	}
	_, err := reference.LoadFS(hybridFiles(t, false, map[string]any{"a_new_key": 1}).inMemory(), ".")
	require.NoError(t, err)
	c, err := reference.LoadFS(hybridFiles(t, true, map[string]any{"text_config.a_new_key": 1, "another": 2}).inMemory(), ".")
	require.NoError(t, err)
	require.Equal(t, []string{"another", "text_config.a_new_key"}, c.UnusedKeys())
}

// TestHybridTensorsAreDemanded: by the names that the file has.
func TestHybridTensorsAreDemanded(t *testing.T) {
	for _, c := range []struct{ tensor, want string }{
		{"model.language_model.layers.0.linear_attn.A_log", "tensor model.language_model.layers.0.linear_attn.A_log: got nothing, want shape [4]"},
		{"model.language_model.layers.0.linear_attn.conv1d.weight", "tensor model.language_model.layers.0.linear_attn.conv1d.weight: got nothing, want shape [64 1 4]"},
		{"model.language_model.layers.2.self_attn.q_proj.weight", "tensor model.language_model.layers.2.self_attn.q_proj.weight: got nothing, want shape [64 24]"},
		{"model.language_model.norm.weight", "tensor model.language_model.norm.weight: got nothing, want shape [24]"},
		{"lm_head.weight", "tensor lm_head.weight: got nothing, want shape [50 24]"},
	} {
		tensors := map[string]engine.Tensor{}
		for name, tensor := range randomHybrid(hybridFileArch(), 1).tensors {
			if rest, ok := strings.CutPrefix(name, "model."); ok {
				name = "model.language_model." + rest
			}
			tensors[name] = tensor
		}
		require.Contains(t, slices.Collect(maps.Keys(tensors)), c.tensor)
		delete(tensors, c.tensor)
		f := hybridFiles(t, true, nil)
		f["model.safetensors"] = safetensorsFile(t, "F32", tensors)
		_, err := reference.LoadFS(f.inMemory(), ".")
		requireConfigError(t, err, c.want)

		tensors[c.tensor] = engine.Tensor{Shape: []int{2, 1}, Data: []float32{1, 2}}
		f["model.safetensors"] = safetensorsFile(t, "F32", tensors)
		_, err = reference.LoadFS(f.inMemory(), ".")
		requireConfigError(t, err, "tensor "+c.tensor+": got shape [2 1]")
	}
	_, err := reference.LoadFS(hybridFiles(t, true, nil, "model.norm.weight").inMemory(), ".")
	requireConfigError(t, err, "tensor model.norm.weight: got a second one")
	_, err = reference.LoadFS(hybridFiles(t, true, nil, "model.language_model.layers.7.mlp.up_proj.weight").inMemory(), ".")
	requireConfigError(t, err, "tensor model.language_model.layers.7.mlp.up_proj.weight: got one of layer 7, want layers below 7")
}
