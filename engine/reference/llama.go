package reference

// llama is the Llama family (arXiv:2302.13971), SmolLM and many others included:
// a Qwen2 without biases, or with attention_bias with those of q, k, v and o.
// Llama 3's rotary scaling is refused like any other.
var llama = family{
	class: "LlamaForCausalLM",
	fixed: map[string]fixedKey{
		"pretraining_tp": {1.0, "projections are one product each"},
		"qkv_bias":       {false, "attention_bias says whether q, k and v have biases"},
	},
	optionalBias: true,
	slots:        llamaSlots, layer: llamaLayer, mlp: llamaMLP, norm: rounder.rmsNorm, scale: overRoot,
}
