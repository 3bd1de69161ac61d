package reference

// family is what a model_type brings along.
type family struct {
	// class is transformers' name of the causal language model.
	class string
	// fixed are keys beside fixedKeys, or in their place.
	fixed map[string]fixedKey
	// optionalBias is true when attention_bias chooses.
	optionalBias bool
}

var families = map[string]family{"qwen2": qwen2, "llama": llama}

const knownFamilies = "the reference engine has qwen2 and llama only"
