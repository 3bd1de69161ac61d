package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// A DeepSeek-V2 of three layers, the first of them dense, with a tokenizer of single
// bytes: small enough for many runs.
const (
	moeLayers, moeHidden, moeExperts, moeTopK, moeVocab = 3, 16, 8, 2, 272
	moeBOS, moeEOS                                      = 257, 258
	// moeCross is a token of a space and a d: a text that begins with a d crosses the
	// boundary with it.
	moeCross = 256
)

const moeConfig = `{
 "architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2", "dtype": "bfloat16",
 "attention_bias": false, "first_k_dense_replace": 1, "hidden_act": "silu", "hidden_size": 16, "intermediate_size": 24,
 "kv_lora_rank": 8, "max_position_embeddings": 160, "moe_intermediate_size": 6, "n_group": 1, "n_routed_experts": 8,
 "n_shared_experts": 1, "norm_topk_prob": false, "num_attention_heads": 2, "num_experts_per_tok": 2,
 "num_hidden_layers": 3, "num_key_value_heads": 2, "q_lora_rank": null, "qk_nope_head_dim": 6, "qk_rope_head_dim": 4,
 "rms_norm_eps": 1e-06, "rope_parameters": {"rope_theta": 10000.0, "rope_type": "yarn", "factor": 40.0, "beta_fast": 32.0,
 "beta_slow": 1.0, "mscale": 0.707, "mscale_all_dim": 0.707, "original_max_position_embeddings": 32},
 "routed_scaling_factor": 1.0, "tie_word_embeddings": false, "topk_group": 1, "topk_method": "greedy", "v_head_dim": 8,
 "vocab_size": 272
}`

// writeMoE writes the checkpoint, with a tokenizer or without.
func writeMoE(dir string, tokenizer bool) error {
	files := map[string]string{"config.json": moeConfig}
	if tokenizer {
		files["tokenizer.json"] = byteTokenizer()
		files["tokenizer_config.json"] = `{"bos_token": "<bos>", "eos_token": "<eos>", "pad_token": null}`
	}
	for name, text := range files {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			return err
		}
	}
	return writeMoEWeights(filepath.Join(dir, "model.safetensors"))
}

func writeMoEWeights(path string) error {
	rng := rand.New(rand.NewPCG(9, 27))
	var specs []dumpfmt.TensorSpec
	values := map[string][]float32{}
	add := func(name string, mean, sd float64, shape ...int) {
		n := 1
		for _, d := range shape {
			n *= d
		}
		v := make([]float32, n)
		for i := range v {
			x := float32(mean + sd*rng.NormFloat64())
			v[i] = math.Float32frombits(math.Float32bits(x) &^ 0xFFFF) // as a bfloat16 checkpoint has it
		}
		specs = append(specs, dumpfmt.TensorSpec{Name: name + ".weight", DType: dumpfmt.F32, Shape: shape})
		values[name+".weight"] = v
	}
	matrix := func(name string, out, in int) { add(name, 0, 1/math.Sqrt(float64(in)), out, in) }
	feed := func(p string, width int) {
		matrix(p+"gate_proj", width, moeHidden)
		matrix(p+"up_proj", width, moeHidden)
		matrix(p+"down_proj", moeHidden, width)
	}
	add("model.embed_tokens", 0, 1, moeVocab, moeHidden)
	add("model.norm", 1, 0.2, moeHidden)
	matrix("lm_head", moeVocab, moeHidden)
	for n := range moeLayers {
		p := fmt.Sprintf("model.layers.%d.", n)
		add(p+"input_layernorm", 1, 0.2, moeHidden)
		add(p+"post_attention_layernorm", 1, 0.2, moeHidden)
		add(p+"self_attn.kv_a_layernorm", 1, 0.2, 8)
		matrix(p+"self_attn.q_proj", 20, moeHidden)
		matrix(p+"self_attn.kv_a_proj_with_mqa", 12, moeHidden)
		matrix(p+"self_attn.kv_b_proj", 28, 8)
		matrix(p+"self_attn.o_proj", moeHidden, 16)
		if n == 0 {
			feed(p+"mlp.", 24)
			continue
		}
		matrix(p+"mlp.gate", moeExperts, moeHidden)
		for i := range moeExperts {
			feed(fmt.Sprintf("%smlp.experts.%d.", p, i), 6)
		}
		feed(p+"mlp.shared_experts.", 6)
	}
	w, err := dumpfmt.CreateSafetensors(path, specs, nil, dumpfmt.WriteOptions{})
	if err != nil {
		return err
	}
	defer func() { _ = w.Abort() }()
	for _, s := range specs {
		if err := w.WriteFloat32s(s.Name, values[s.Name]); err != nil {
			return err
		}
	}
	return w.Commit()
}

// byteLetter is the letter that a byte-level vocabulary has for a byte.
func byteLetter(b int) string {
	shown := func(b int) bool { return b >= '!' && b <= '~' || b >= 0xA1 && b <= 0xAC || b >= 0xAE && b <= 0xFF }
	if shown(b) {
		return string(rune(b))
	}
	n := 0
	for i := range b {
		if !shown(i) {
			n++
		}
	}
	return string(rune(256 + n))
}

// byteTokenizer has an id for each byte, its value, and one token of two.
func byteTokenizer() string {
	vocab := map[string]int{}
	for b := range 256 {
		vocab[byteLetter(b)] = b
	}
	vocab[byteLetter(' ')+"d"] = moeCross
	added := func(id int, content string) map[string]any {
		return map[string]any{"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}
	}
	out, err := json.Marshal(map[string]any{
		"version": "1.0", "truncation": nil, "padding": nil, "normalizer": nil, "post_processor": nil,
		"added_tokens":  []any{added(moeBOS, "<bos>"), added(moeEOS, "<eos>")},
		"pre_tokenizer": map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false},
		"decoder":       map[string]any{"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
		"model": map[string]any{"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": nil, "end_of_word_suffix": nil,
			"fuse_unk": false, "byte_fallback": false, "ignore_merges": false, "vocab": vocab, "merges": [][2]string{{byteLetter(' '), "d"}}},
	})
	if err != nil {
		panic(err)
	}
	return string(out)
}
