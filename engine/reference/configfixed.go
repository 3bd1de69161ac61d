package reference

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// fixedKey is a config key that changes what a model computes and that the
// engine has one value for.
type fixedKey struct {
	want any // in encoding/json's types; nil for a key that must not be there
	why  string
}

// fixedKeys are the keys that must be absent, null, or have the one value that
// the graphs are built for. They come from the configs of other families, which
// a checkpoint may carry, and from those of changed models: a key that is merely
// reported as unused is how a model is computed wrong. A family may have more.
var fixedKeys = map[string]fixedKey{
	"add_cross_attention":                   {false, "there is no cross-attention"},
	"alibi":                                 {false, "positions are rotary"},
	"attention_chunk_size":                  {nil, "only full attention is implemented"},
	"attention_multiplier":                  {nil, "attention scores are divided by sqrt(head_dim)"},
	"attn_logit_softcapping":                {nil, "attention scores are not capped"},
	"attn_temperature_tuning":               {false, "attention has no temperature"},
	"compression_config":                    {nil, "only plain float weights are implemented"},
	"embedding_multiplier":                  {1.0, "embeddings are not scaled"},
	"final_logit_softcapping":               {nil, "logits are not capped"},
	"hidden_activation":                     {"silu", "only silu is implemented"},
	"is_causal":                             {true, "attention is causal"},
	"is_encoder_decoder":                    {false, "only decoders are implemented"},
	"logit_scale":                           {1.0, "logits are not scaled"},
	"logit_softcap":                         {nil, "logits are not capped"},
	"logits_scaling":                        {1.0, "logits are not scaled"},
	"mlp_bias":                              {false, "the feed-forward has no biases"},
	"no_rope_layers":                        {nil, "every layer has rotary positions"},
	"num_experts":                           {nil, "there is no mixture of experts"},
	"num_local_experts":                     {nil, "there is no mixture of experts"},
	"o_proj_bias":                           {false, "the output projection has no bias"},
	"partial_rotary_factor":                 {1.0, "the whole head is rotated"},
	"parallel_residual":                     {false, "attention and feed-forward follow each other"},
	"qk_norm":                               {false, "q and k are not normalised"},
	"quantization":                          {nil, "only plain float weights are implemented"},
	"quantization_config":                   {nil, "only plain float weights are implemented"},
	"query_pre_attn_scalar":                 {nil, "attention scores are divided by sqrt(head_dim)"},
	"residual_multiplier":                   {1.0, "residual branches are not scaled"},
	"rope_interleaved":                      {false, "a rotary pair is apart by half a head"},
	"rope_local_base_freq":                  {nil, "all layers have one rotary base"},
	"rope_parameters.attention_factor":      {1.0, "the default rotary embedding does not scale"},
	"rope_parameters.factor":                {1.0, "the default rotary embedding has no factor"},
	"rope_parameters.mrope_section":         {nil, "positions have one dimension"},
	"rope_scaling.attention_factor":         {1.0, "the default rotary embedding does not scale"},
	"rope_scaling.factor":                   {1.0, "the default rotary embedding has no factor"},
	"rope_scaling.mrope_section":            {nil, "positions have one dimension"},
	"rope_parameters.partial_rotary_factor": {1.0, "the whole head is rotated"},
	"rope_scaling.partial_rotary_factor":    {1.0, "the whole head is rotated"},
	"rotary_pct":                            {1.0, "the whole head is rotated"},
	"scale_depth":                           {nil, "residual branches are not scaled"},
	"scale_emb":                             {1.0, "embeddings are not scaled"},
	"text_config":                           {nil, "a nested model is not read, and may not be the outer one"},
	"use_bidirectional_attention":           {false, "attention is causal"},
	"use_dynamic_ntk":                       {false, "the rotary base does not move"},
	"use_logn_attn":                         {false, "attention scores are not scaled by length"},
	"use_mrope":                             {false, "positions have one dimension"},
	"use_parallel_residual":                 {false, "attention and feed-forward follow each other"},
	"use_qk_norm":                           {false, "q and k are not normalised"},
	"vision_config":                         {nil, "only text models are implemented"},
}

// refuseOthers refuses the keys whose value isn't the one that the engine has.
func (r *configReader) refuseOthers() {
	for _, key := range slices.Sorted(maps.Keys(r.keys)) {
		name := r.known(key)
		fixed, known := fixedKeys[name]
		if own, ok := r.family.fixed[name]; ok {
			fixed, known = own, true
		}
		if !known || slices.Contains(r.family.own, name) {
			continue
		}
		raw, there := r.raw(key)
		if !there {
			continue
		}
		var got any
		if err := json.Unmarshal(raw, &got); err == nil && fixed.want != nil && reflect.DeepEqual(got, fixed.want) {
			continue
		}
		want := "it must not be there"
		if fixed.want != nil {
			want = fmt.Sprintf("it must be %v", fixed.want)
		}
		r.refuse(key+" "+string(raw), want+": "+fixed.why)
	}
}
