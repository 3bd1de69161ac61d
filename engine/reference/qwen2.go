package reference

// qwen2 is the Qwen2 family (arXiv:2407.10671): q, k and v have biases, o has
// none, and no config key changes that.
var qwen2 = family{
	class: "Qwen2ForCausalLM",
	fixed: map[string]fixedKey{
		"attention_bias": {true, "q, k and v of a Qwen2 have biases"},
		"qkv_bias":       {true, "q, k and v of a Qwen2 have biases"},
	},
	slots: llamaSlots, layer: llamaLayer, mlp: llamaMLP, norm: rounder.rmsNorm, scale: overRoot,
}
