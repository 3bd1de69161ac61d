package reference

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/plumbline-go/plumbline/engine"
)

// config is what a config.json says.
type config struct {
	arch   engine.Arch
	dtype  string // the declared dtype, or empty
	unused []string
	// layersFrom says where the number of layers is from, for messages.
	layersFrom string
}

// readConfig reads a config.json in either style: rope_theta and torch_dtype at
// the top level (transformers 4), or rope_parameters and dtype (transformers
// 5). Both at once must agree.
func readConfig(file string, data []byte) (config, error) {
	r, err := newConfigReader(file, data)
	if err != nil {
		return config{}, err
	}
	family, ok := r.text("model_type")
	switch {
	case *r.err != nil:
		return config{}, *r.err
	case !ok:
		return config{}, &engine.ConfigError{File: file, What: "model_type", Got: "nothing", Want: `a family, e.g. "qwen2"`}
	}
	fam, ok := families[family]
	if !ok {
		fam, ok = textModels[family]
	}
	if !ok {
		return config{}, &engine.UnsupportedError{What: fmt.Sprintf("%s: model_type %q", file, family), Why: knownFamilies}
	}
	r.family = fam
	r.refuseOthers()
	c := config{layersFrom: "num_hidden_layers of " + configName}
	read := decoderConfig
	if fam.config != nil {
		read = fam.config
	}
	var nested []*configReader
	c.arch, nested = read(r, family)
	c.dtype = dtypeConfig(r)
	for _, sub := range nested {
		if inner := sub.nestedDType(c.dtype); inner != "" {
			c.dtype = inner
		}
	}
	if *r.err != nil {
		return config{}, *r.err
	}
	for _, sub := range append(nested, r) {
		c.unused = append(c.unused, sub.unused()...)
	}
	slices.Sort(c.unused)
	return c, checkArch(c.arch)
}

// decoderConfig reads the dimensions and constants of a decoder and refuses the variants that the engine would compute wrong.
// Dimensions and rms_norm_eps have no default here. hidden_act defaults to
// silu, tie_word_embeddings and a llama's attention_bias to false,
// num_key_value_heads to the number of heads and head_dim to hidden_size /
// heads, as in transformers.
func decoderConfig(r *configReader, family string) (engine.Arch, []*configReader) {
	r.wantClass(family)
	a := engine.Arch{
		Family:       family,
		Layers:       r.integer("num_hidden_layers", -1),
		Hidden:       r.integer("hidden_size", -1),
		Intermediate: r.integer("intermediate_size", -1),
		Heads:        r.integer("num_attention_heads", -1),
		Vocab:        r.integer("vocab_size", -1),
		MaxPositions: r.integer("max_position_embeddings", 0),
		TiedHead:     r.flag("tie_word_embeddings"),
	}
	if r.family.optionalBias {
		a.AttentionBias = r.flag("attention_bias")
	}
	a.KVHeads = r.integer("num_key_value_heads", a.Heads)
	a.HeadDim = r.integer("head_dim", a.Hidden/max(1, a.Heads))
	if _, ok := r.raw("head_dim"); !ok && a.HeadDim*a.Heads != a.Hidden {
		r.fail("head_dim", fmt.Sprintf("nothing, and %d / %d heads is not whole", a.Hidden, a.Heads), "a head dimension")
	}
	eps := r.normEps()
	a.FinalNormEps = eps
	a.PerLayer = make([]engine.LayerParams, min(a.Layers, 1<<16))
	for n := range a.PerLayer {
		a.PerLayer[n].NormEps = eps
	}
	if act, ok := r.text("hidden_act"); ok && act != "silu" {
		r.refuse(fmt.Sprintf("hidden_act %q", act), "only silu is implemented")
	}
	if r.flag("use_sliding_window") {
		r.refuse("use_sliding_window true", "only full attention is implemented")
	}
	var kinds []string
	if r.value("layer_types", &kinds, "a list of layer types") {
		if len(kinds) != a.Layers {
			r.fail("layer_types", fmt.Sprintf("%d entries", len(kinds)), fmt.Sprintf("one per layer, %d", a.Layers))
		}
		for i, k := range kinds {
			if k != "full_attention" {
				r.refuse(fmt.Sprintf("layer_types[%d] %q", i, k), "only full_attention is implemented")
			}
		}
	}
	theta, nested := ropeConfig(r)
	for n := range a.PerLayer {
		a.PerLayer[n].RopeTheta = theta
	}
	return a, nested
}

// ropeConfig reads rope_theta and refuses every rotary embedding but the
// default, and the linear one with factor 1, which is the same. Where the file
// gives no rope_theta it is an error: transformers would fall back to 10000,
// which no published Qwen2 and few llamas use, and a wrong base shows only as a
// slow drift with the position.
func ropeConfig(r *configReader) (theta float64, nested []*configReader) {
	top, hasTop := r.float("rope_theta")
	theta = top
	for _, key := range []string{"rope_parameters", "rope_scaling"} {
		sub := r.object(key)
		if sub == nil {
			continue
		}
		nested = append(nested, sub)
		typed := false
		for _, k := range []string{"rope_type", "type"} {
			kind, ok := sub.text(k)
			typed = typed || ok
			if factor, _ := sub.float("factor"); ok && kind != "default" && (kind != "linear" || factor != 1) {
				sub.refuse(fmt.Sprintf("%s %q", k, kind), "only the default rotary embedding is implemented")
			}
		}
		if key == "rope_scaling" && !typed && len(sub.keys) > 0 {
			r.refuse("rope_scaling without a type", "only the default rotary embedding is implemented")
		}
		sub.refuseOthers()
		inner, ok := sub.float("rope_theta")
		if !ok {
			continue
		}
		if hasTop && inner != theta {
			sub.fail("rope_theta", fmt.Sprint(inner), fmt.Sprintf("%v, which the file says elsewhere", theta))
		}
		theta, hasTop = inner, true
	}
	if !hasTop {
		r.fail("rope_theta", "nothing, neither at the top level nor in rope_parameters", "a rotary base (the fallback of 10000 is not assumed)")
	} else if !(theta > 0) || math.IsInf(theta, 0) {
		r.fail("rope_theta", fmt.Sprint(theta), "a number above 0")
	}
	return theta, nested
}

// dtypeConfig reads the declared dtype, which must be one that loads exactly.
func dtypeConfig(r *configReader) string {
	new, _ := r.text("dtype")
	old, _ := r.text("torch_dtype")
	new, old = strings.TrimPrefix(new, "torch."), strings.TrimPrefix(old, "torch.")
	if new != "" && old != "" && new != old {
		r.fail("torch_dtype", old, fmt.Sprintf("%s, the value of dtype", new))
	}
	if new == "" {
		new = old
	}
	switch new {
	case "", "float32", "bfloat16", "float16":
	default:
		r.refuse(fmt.Sprintf("dtype %q", new), "only float32, bfloat16 and float16 are read")
	}
	return new
}

// nestedDType is the dtype that a nested text model declares, which must be the
// outer one's where that has one.
func (r *configReader) nestedDType(outer string) string {
	if r.prefix != textConfig+"." {
		return ""
	}
	inner := dtypeConfig(r)
	if inner != "" && outer != "" && inner != outer {
		r.fail("dtype", inner, fmt.Sprintf("%s, which the file says elsewhere", outer))
	}
	return inner
}

func orNothing(ok bool, v float64) string {
	if !ok {
		return "nothing"
	}
	return fmt.Sprint(v)
}
