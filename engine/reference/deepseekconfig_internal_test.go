package reference

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
)

// liteConfig has the keys and values of the config.json that the makers of
// DeepSeek-V2-Lite-Chat published.
const liteConfig = `{"architectures":["DeepseekV2ForCausalLM"],"attention_bias":false,"attention_dropout":0.0,
"auto_map":{"AutoConfig":"configuration_deepseek.DeepseekV2Config","AutoModelForCausalLM":"modeling_deepseek.DeepseekV2ForCausalLM"},
"aux_loss_alpha":0.001,"bos_token_id":100000,"eos_token_id":100001,"first_k_dense_replace":1,"hidden_act":"silu","hidden_size":2048,
"initializer_range":0.02,"intermediate_size":10944,"kv_lora_rank":512,"max_position_embeddings":163840,"model_type":"deepseek_v2",
"moe_intermediate_size":1408,"moe_layer_freq":1,"n_group":1,"n_routed_experts":64,"n_shared_experts":2,"norm_topk_prob":false,
"num_attention_heads":16,"num_experts_per_tok":6,"num_hidden_layers":27,"num_key_value_heads":16,"pretraining_tp":1,"q_lora_rank":null,
"qk_nope_head_dim":128,"qk_rope_head_dim":64,"rms_norm_eps":1e-06,
"rope_scaling":{"beta_fast":32,"beta_slow":1,"factor":40,"mscale":0.707,"mscale_all_dim":0.707,"original_max_position_embeddings":4096,"type":"yarn"},
"rope_theta":10000,"routed_scaling_factor":1.0,"scoring_func":"softmax","seq_aux":true,"tie_word_embeddings":false,"topk_group":1,
"topk_method":"greedy","torch_dtype":"bfloat16","transformers_version":"4.33.1","use_cache":true,"v_head_dim":128,"vocab_size":102400}`

// liteWith changes keys of liteConfig; a key with the value "-" is left out.
func liteWith(keys string) string {
	var base, more map[string]json.RawMessage
	for text, to := range map[string]*map[string]json.RawMessage{liteConfig: &base, "{" + keys + "}": &more} {
		if err := json.Unmarshal([]byte(text), to); err != nil {
			panic(err)
		}
	}
	for k, v := range more {
		if base[k] = v; string(v) == `"-"` {
			delete(base, k)
		}
	}
	out, err := json.Marshal(base)
	if err != nil {
		panic(err)
	}
	return string(out)
}

func liteArch(t *testing.T, keys string) engine.Arch {
	t.Helper()
	c, err := readConfig("config.json", []byte(liteWith(keys)))
	require.NoError(t, err, keys)
	require.Empty(t, c.unused, keys)
	return c.arch
}

func TestDeepseekConfig(t *testing.T) {
	a := liteArch(t, "")
	require.Equal(t, engine.Latent{KVRank: 512, RopeDim: 64, ValueDim: 128}, a.Latent)
	a.PerLayer, a.Latent = nil, engine.Latent{}
	require.Equal(t, engine.Arch{Family: "deepseek_v2", Layers: 27, Hidden: 2048, Intermediate: 10944, Heads: 16, KVHeads: 16, HeadDim: 192,
		Vocab: 102400, MaxPositions: 163840, FinalNormEps: 1e-6}, a)
	dense := liteArch(t, "").PerLayer[0]
	// mscale(40, 0.707) = 0.0707*ln(40) + 1 = 1.2608038 and its square 1.5896261; of the tables' factor both parts are the same.
	require.InDelta(t, 1.58962608, dense.ScoreFactor, 1e-7)
	dense.ScoreFactor = 0
	require.Equal(t, engine.LayerParams{RopeTheta: 1e4, NormEps: 1e-6, Yarn: engine.Yarn{Factor: 40, BetaFast: 32, BetaSlow: 1, Original: 4096}}, dense)
	lite := engine.Experts{Count: 64, PerToken: 6, Shared: 2, Intermediate: 1408, Gate: engine.Gate{Scoring: engine.ScoringSoftmax, Scale: 1}}
	for n, l := range liteArch(t, "").PerLayer {
		if require.Equal(t, n > 0, l.Experts.Count > 0, n); n > 0 {
			require.Equal(t, lite, l.Experts, n)
		}
	}

	// What transformers 5 writes, and null for what a file needn't say.
	for _, keys := range []string{
		`"rope_theta":"-","rope_scaling":"-","head_dim":64,"qk_head_dim":192,"mlp_bias":false,"pad_token_id":null,"rope_parameters":{"beta_fast":32.0,"beta_slow":1.0,
"factor":40.0,"mscale":0.707,"mscale_all_dim":0.707,"original_max_position_embeddings":4096,"rope_theta":10000.0,"rope_type":"yarn"}`,
		`"ep_size":1,"moe_layer_freq":"-","scoring_func":"-","topk_method":"-","norm_topk_prob":null,"routed_scaling_factor":"-","n_group":null,
"topk_group":null,"num_key_value_heads":null,"rope_interleave":true,"first_k_dense_replace":1.0`,
		`"rope_parameters":{"type":"yarn","factor":40,"mscale":0.707,"mscale_all_dim":0.707,"original_max_position_embeddings":4096,"rope_theta":10000}`,
	} {
		require.Equal(t, liteArch(t, ""), liteArch(t, keys), keys)
	}
}

func TestDeepseekConfigVariants(t *testing.T) {
	require.Equal(t, 1536, liteArch(t, `"q_lora_rank":1536`).Latent.QRank)

	// Every second layer from the third on.
	for n, l := range liteArch(t, `"first_k_dense_replace":3,"moe_layer_freq":2`).PerLayer {
		require.Equal(t, n >= 3 && n%2 == 0, l.Experts.Count > 0, n)
	}
	for _, l := range liteArch(t, `"first_k_dense_replace":0`).PerLayer {
		require.Equal(t, 64, l.Experts.Count)
	}
	for _, l := range liteArch(t, `"n_routed_experts":null`).PerLayer {
		require.Zero(t, l.Experts)
	}
	require.Zero(t, liteArch(t, `"n_shared_experts":null`).PerLayer[1].Experts.Shared)

	// DeepSeek-V2's and DeepSeek-V3's gates.
	require.Equal(t, engine.Gate{Scoring: engine.ScoringSoftmax, Groups: 8, TopGroups: 3, Scale: 16},
		liteArch(t, `"topk_method":"group_limited_greedy","n_group":8,"topk_group":3,"routed_scaling_factor":16.0`).PerLayer[1].Experts.Gate)
	require.Equal(t, engine.Gate{Scoring: engine.ScoringSigmoid, Groups: 8, TopGroups: 4, Normalise: true, Scale: 2.5},
		liteArch(t, `"topk_method":"noaux_tc","scoring_func":"sigmoid","n_group":8,"topk_group":4,"routed_scaling_factor":2.5,"norm_topk_prob":true`).PerLayer[1].Experts.Gate)

	plain := liteArch(t, `"rope_scaling":null`).PerLayer[1]
	require.Zero(t, plain.Yarn)
	require.Zero(t, plain.ScoreFactor)
	require.Equal(t, plain, liteArch(t, `"rope_scaling":{"type":"default"}`).PerLayer[1])

	// Without mscale_all_dim the softmax scale has no factor, and the tables have the whole of it.
	none := liteArch(t, `"rope_scaling":{"type":"yarn","factor":40,"original_max_position_embeddings":4096}`).PerLayer[1]
	require.Zero(t, none.ScoreFactor)
	require.InDelta(t, 0.1*math.Log(40)+1, none.Yarn.TableFactor, 1e-12)
	require.Equal(t, engine.Yarn{Factor: 40, BetaFast: 32, BetaSlow: 1, Original: 4096, TableFactor: none.Yarn.TableFactor}, none.Yarn)
	both := liteArch(t, `"rope_scaling":{"type":"yarn","factor":40,"original_max_position_embeddings":4096,"mscale":1.0,"mscale_all_dim":0.5,"beta_fast":16,"beta_slow":2}`).PerLayer[1]
	require.InDelta(t, (0.1*math.Log(40)+1)/(0.05*math.Log(40)+1), both.Yarn.TableFactor, 1e-12)
	require.InDelta(t, (0.05*math.Log(40)+1)*(0.05*math.Log(40)+1), both.ScoreFactor, 1e-12)
	require.Equal(t, []float64{16, 2}, []float64{both.Yarn.BetaFast, both.Yarn.BetaSlow})
}

func TestDeepseekConfigRefusals(t *testing.T) {
	const yarn = `"type":"yarn","factor":40,"original_max_position_embeddings":4096`
	for keys, want := range map[string]string{
		`"model_type":"deepseek_v3"`:                          `model_type "deepseek_v3" not supported`,
		`"architectures":["DeepseekV3ForCausalLM"]`:           "has DeepseekV2ForCausalLM only",
		`"attention_bias":true`:                               "attention_bias true not supported: it must be false",
		`"mlp_bias":true`:                                     "mlp_bias true",
		`"num_nextn_predict_layers":1`:                        "num_nextn_predict_layers 1",
		`"quantization_config":{"quant_method":"fp8"}`:        "quantization_config",
		`"rope_interleave":false`:                             "rope_interleave false",
		`"pretraining_tp":2`:                                  "pretraining_tp 2",
		`"hidden_act":"gelu"`:                                 `hidden_act "gelu" not supported`,
		`"num_key_value_heads":8`:                             "num_key_value_heads 8 not supported: latent attention has keys and values for all 16 heads",
		`"head_dim":192`:                                      "head_dim: got 192, want 64, which is qk_rope_head_dim",
		`"qk_head_dim":128`:                                   "qk_head_dim: got 128, want 192",
		`"qk_rope_head_dim":63,"head_dim":"-"`:                "latent attention: got 63 of 191 dimensions rotate, want an even number",
		`"kv_lora_rank":"-"`:                                  "kv_lora_rank: got nothing",
		`"v_head_dim":0`:                                      "v_head_dim: got 0",
		`"q_lora_rank":"-"`:                                   "q_lora_rank: got nothing, want a whole number of at least 1, or null",
		`"q_lora_rank":-3`:                                    "q_lora_rank: got -3",
		`"n_routed_experts":"-"`:                              "n_routed_experts: got nothing",
		`"n_shared_experts":"-"`:                              "n_shared_experts: got nothing",
		`"num_experts_per_tok":null`:                          "num_experts_per_tok: got nothing",
		`"num_experts_per_tok":65`:                            "experts: got 65 per token, want 1 to the 64 that can be chosen",
		`"moe_intermediate_size":null`:                        "moe_intermediate_size: got nothing",
		`"first_k_dense_replace":-1`:                          "first_k_dense_replace: got -1",
		`"moe_layer_freq":0`:                                  "moe_layer_freq: got 0",
		`"topk_method":"gready"`:                              `topk_method "gready" with scoring_func "softmax" not supported`,
		`"scoring_func":"sigmoid"`:                            `topk_method "greedy" with scoring_func "sigmoid" not supported`,
		`"topk_method":"noaux_tc"`:                            `topk_method "noaux_tc" with scoring_func "softmax" not supported`,
		`"topk_method":"group_limited_greedy","n_group":null`: "n_group, topk_group: got 0 and 1, want at least 1 of both with topk_method group_limited_greedy",
		`"topk_method":"group_limited_greedy","n_group":7`:    "got the best 1 of 7 groups of 64 experts",
		`"topk_method":"group_limited_greedy","n_group":32`:   "experts: got 6 per token, want 1 to the 2 that can be chosen",
		`"routed_scaling_factor":0`:                           "routed_scaling_factor: got 0, want a number above 0",
		`"norm_topk_prob":1`:                                  "norm_topk_prob: got 1",
		`"rope_theta":null`:                                   "rope_theta: got nothing",
		`"rope_theta":1`:                                      "rope_theta: got 1, want a rotary base above 1",
		`"rope_parameters":{"rope_theta":5000,` + yarn + `}`:  "rope_parameters.rope_theta: got 5000, want 10000, which the file says elsewhere",
		`"rope_parameters":{"rope_type":"default"}`:           "rope_scaling: got yarn, want what rope_parameters says",
		`"rope_scaling":{"type":"linear","factor":2}`:         `rope_scaling.type "linear" not supported: only default and yarn are implemented`,
		`"rope_scaling":{"type":"default","factor":2}`:        "rope_scaling.factor 2 not supported",
		`"rope_scaling":{"type":"yarn","original_max_position_embeddings":4096}`: "rope_scaling.factor: got nothing, want a number above 0",
		`"rope_scaling":{"type":"yarn","factor":40}`:                             "rope_scaling.original_max_position_embeddings: got nothing",
		`"rope_scaling":{` + yarn + `,"beta_fast":0}`:                            "rope_scaling.beta_fast: got 0",
		`"rope_scaling":{` + yarn + `,"mscale":-1}`:                              "rope_scaling.mscale: got -1, want a number of at least 0",
		`"rope_scaling":{` + yarn + `,"attention_factor":2}`:                     "rope_scaling.attention_factor 2 not supported",
		`"rope_scaling":{` + yarn + `,"truncate":false}`:                         "rope_scaling.truncate false not supported",
		`"rope_scaling":{` + yarn + `,"rope_type":"default"}`:                    "rope_scaling.type: got yarn, want default, the value of rope_type",
		`"rope_scaling":{` + yarn + `,"partial_rotary_factor":0.5}`:              "rope_scaling.partial_rotary_factor 0.5 not supported",
		`"num_experts":64`: "num_experts 64 not supported",
		`"sliding_window":512,"use_sliding_window":true`: "use_sliding_window true not supported",
	} {
		_, err := readConfig("config.json", []byte(liteWith(keys)))
		assert.ErrorContains(t, err, want, keys)
	}
	c, err := readConfig("config.json", []byte(liteWith(`"use_linear":true,"rope_scaling":{`+yarn+`,"extra":1}`)))
	require.NoError(t, err)
	require.Equal(t, []string{"rope_scaling.extra", "use_linear"}, c.unused)
}
