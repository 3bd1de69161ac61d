package reference

// harmlessKeys are config keys that are known and don't enter the computation,
// each with the reason. A key that is neither used nor in this table is reported
// by [Checkpoint.UnusedKeys].
var harmlessKeys = map[string]string{
	"_attn_implementation":         "how transformers computes, not what",
	"_attn_implementation_autoset": "how transformers computes, not what",
	"_name_or_path":                "where the checkpoint came from",
	"attention_dropout":            "training only",
	"auto_map":                     "names of Python classes",
	"bos_token_id":                 "prompts arrive as token ids",
	"chunk_size_feed_forward":      "memory of transformers' feed-forward, same values",
	"eos_token_id":                 "no generation here",
	"id2label":                     "classification heads",
	"initializer_range":            "training only",
	"label2id":                     "classification heads",
	"is_llama_config":              "who wrote the file",
	"max_window_layers":            "matters with use_sliding_window only, which is refused",
	"output_attentions":            "what transformers returns, not what it computes",
	"output_hidden_states":         "what transformers returns, not what it computes",
	"pad_token_id":                 "no padding here",
	"problem_type":                 "classification heads",
	"return_dict":                  "what transformers returns, not what it computes",
	"sliding_window":               "of a family that doesn't read it: matters with use_sliding_window only, which is refused",
	"transformers.js_config":       "how another library loads the model",
	"transformers_version":         "who wrote the file",
	"use_cache":                    "the runs here say for themselves whether they cache",
	"moe_intermediate_size":        "matters with enable_moe_block only, which is refused",
	"top_k_experts":                "matters with enable_moe_block only, which is refused",
	"vocab_size_per_layer_input":   "matters with hidden_size_per_layer_input only, which is refused",
	"rope_parameters.original_max_position_embeddings": "matters with other rope types only, which are refused",
}
