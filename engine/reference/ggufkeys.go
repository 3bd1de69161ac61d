package reference

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference/gguf"
)

// ggufKeys reads the keys of a GGUF file by their names below the architecture's
// prefix and knows which were used. The first error sticks.
type ggufKeys struct {
	file *gguf.File
	arch string // e.g. "llama"
	used map[string]bool
	err  error
}

func (k *ggufKeys) full(key string) string { return k.arch + "." + key }

func (k *ggufKeys) value(key string) (any, bool) {
	k.used[k.full(key)] = true
	return k.file.Value(k.full(key))
}

func (k *ggufKeys) fail(key, got, want string) {
	if k.err == nil {
		k.err = &engine.ConfigError{File: k.file.Name(), What: "key " + k.full(key), Got: got, Want: want}
	}
}

func (k *ggufKeys) refuse(key string, value any, why string) {
	if k.err == nil {
		k.err = &engine.UnsupportedError{What: fmt.Sprintf("%s: key %s %s", k.file.Name(), k.full(key), show(value)), Why: why}
	}
}

// show is a value for a message.
func show(v any) string {
	if s, ok := v.(string); ok {
		return strconv.Quote(s)
	}
	text := fmt.Sprint(v)
	if len(text) > 60 {
		text = text[:60] + "…"
	}
	return text
}

// integer returns a whole number of at least 1, or def when the key is absent; a
// negative def means that the key must be there. A list, with which llama.cpp has
// a number per layer, must have the same one for all.
func (k *ggufKeys) integer(key string, def int) int {
	const want = "a whole number of at least 1"
	v, ok := k.value(key)
	if !ok {
		if def < 0 {
			k.fail(key, "nothing", want)
		}
		return max(def, 0)
	}
	if list, ok := toIntegers(v); ok {
		if len(list) == 0 || slices.ContainsFunc(list, func(n int64) bool { return n != list[0] }) {
			k.refuse(key, v, "all layers are alike here")
			return 0
		}
		v = list[0]
	}
	n, ok := toInteger(v)
	if !ok || n < 1 || n > math.MaxInt32 {
		k.fail(key, show(v), want)
		return 0
	}
	return int(n)
}

// float returns a number; false when the key is absent. A float32 is taken for
// the decimal number that it was written from: 1e-5, not 9.999999747378752e-06,
// which is the same in float32, and what a config.json says.
func (k *ggufKeys) float(key string) (float64, bool) {
	v, ok := k.value(key)
	if !ok {
		return 0, false
	}
	f, ok := toFloat(v)
	if !ok {
		k.fail(key, show(v), "a number")
	}
	return f, ok
}

func toInteger(v any) (int64, bool) {
	switch v := v.(type) {
	case uint8:
		return int64(v), true
	case int8:
		return int64(v), true
	case uint16:
		return int64(v), true
	case int16:
		return int64(v), true
	case uint32:
		return int64(v), true
	case int32:
		return int64(v), true
	case uint64:
		return int64(min(v, math.MaxInt64)), true
	case int64:
		return v, true
	}
	return 0, false
}

func toIntegers(v any) ([]int64, bool) {
	var out []int64
	switch v := v.(type) {
	case []uint32:
		for _, n := range v {
			out = append(out, int64(n))
		}
		return out, true
	case []int32:
		for _, n := range v {
			out = append(out, int64(n))
		}
		return out, true
	}
	return nil, false
}

func toFloat(v any) (float64, bool) {
	switch v := v.(type) {
	case float32:
		f, err := strconv.ParseFloat(strconv.FormatFloat(float64(v), 'g', -1, 32), 64)
		return f, err == nil
	case float64:
		return v, true
	}
	n, ok := toInteger(v)
	return float64(n), ok
}

// neutral are keys below an architecture's prefix that change what a model
// computes, with the values with which they don't. An absent key is neutral.
var neutral = map[string]struct {
	values []any // numbers as float64
	why    string
}{
	"attention.causal":                 {[]any{true}, "attention is causal"},
	"attention.clamp_kqv":              {[]any{0.0}, "q, k and v are not clamped"},
	"attention.layer_norm_epsilon":     {nil, "norms are RMSNorm"},
	"attention.max_alibi_bias":         {[]any{0.0}, "positions are rotary"},
	"attention.scale":                  {[]any{0.0}, "attention scores are divided by sqrt(head_dim)"},
	"attention.sliding_window":         {[]any{0.0}, "only full attention is implemented"},
	"attention.temperature_length":     {nil, "attention has no temperature"},
	"attn_logit_softcapping":           {nil, "attention scores are not capped"},
	"embedding_scale":                  {[]any{0.0, 1.0}, "embeddings are not scaled"},
	"expert_count":                     {[]any{0.0}, "there is no mixture of experts"},
	"expert_used_count":                {[]any{0.0}, "there is no mixture of experts"},
	"final_logit_softcapping":          {nil, "logits are not capped"},
	"interleave_moe_layer_step":        {nil, "there is no mixture of experts"},
	"logit_scale":                      {[]any{0.0, 1.0}, "logits are not scaled"},
	"no_rope_layer_interval":           {nil, "every layer has rotary positions"},
	"pooling_type":                     {[]any{0.0}, "rows are not pooled"},
	"residual_scale":                   {[]any{0.0, 1.0}, "residual branches are not scaled"},
	"rope.dimension_sections":          {nil, "positions have one dimension"},
	"rope.freq_base_swa":               {nil, "all layers have one rotary base"},
	"rope.scale_linear":                {[]any{0.0, 1.0}, "only the default rotary embedding is implemented"},
	"rope.scaling.attn_factor":         {[]any{1.0}, "the default rotary embedding does not scale"},
	"rope.scaling.factor":              {[]any{0.0, 1.0}, "only the default rotary embedding is implemented"},
	"rope.scaling.type":                {[]any{"none", "linear"}, "only the default rotary embedding is implemented"},
	"rope.scaling.yarn_log_multiplier": {[]any{0.0}, "only the default rotary embedding is implemented"},
	"swin_norm":                        {[]any{false}, "norms come first"},
	"tensor_data_layout":               {[]any{"Meta AI original pth"}, "the rows of q and k are moved back from one layout"},
	"use_parallel_residual":            {[]any{false}, "attention and feed-forward follow each other"},
}

// ggufHarmless are keys below an architecture's prefix that are known and don't
// enter the computation.
var ggufHarmless = map[string]string{
	"rope.scaling.finetuned":               "matters with scaling only, which is refused",
	"rope.scaling.original_context_length": "matters with scaling only, which is refused",
}

// refuseOthers refuses the keys whose value isn't neutral.
func (k *ggufKeys) refuseOthers() {
	for _, key := range k.file.Keys() {
		name, ok := strings.CutPrefix(key, k.arch+".")
		fixed, known := neutral[name]
		if !ok || !known {
			continue
		}
		v, _ := k.value(name)
		got := v
		if f, ok := toFloat(v); ok {
			got = f
		}
		if !slices.Contains(fixed.values, got) {
			want := "it must not be there"
			if len(fixed.values) > 0 {
				want = "it must be " + show(fixed.values[len(fixed.values)-1])
			}
			k.refuse(name, v, want+": "+fixed.why)
		}
	}
}

// unused lists the keys of the architecture that were not used and are not known
// to be harmless.
func (k *ggufKeys) unused() []string {
	var names []string
	for _, key := range k.file.Keys() {
		if name, ok := strings.CutPrefix(key, k.arch+"."); ok && !k.used[key] && ggufHarmless[name] == "" {
			names = append(names, key)
		}
	}
	slices.Sort(names)
	return names
}
