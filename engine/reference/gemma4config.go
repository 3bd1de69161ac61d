package reference

import (
	"fmt"
	"math"
	"slices"

	"github.com/plumbline-go/plumbline/engine"
)

// Kinds of layers in layer_types.
const (
	localLayer  = "sliding_attention"
	globalLayer = "full_attention"
)

// gemma4Config reads the config of a Gemma 4 text model. Dimensions, layer_types,
// the window and the rotary embeddings have no default here;
// tie_word_embeddings is true where it isn't said, as in transformers.
func gemma4Config(r *configReader, family string) (engine.Arch, []*configReader) {
	r.wantClass(family)
	a := engine.Arch{
		Family:       family,
		Layers:       r.integer("num_hidden_layers", -1),
		Hidden:       r.integer("hidden_size", -1),
		Intermediate: r.integer("intermediate_size", -1),
		Heads:        r.integer("num_attention_heads", -1),
		KVHeads:      r.integer("num_key_value_heads", -1),
		HeadDim:      r.integer("head_dim", -1),
		Vocab:        r.integer("vocab_size", -1),
		MaxPositions: r.integer("max_position_embeddings", 0),
		TiedHead:     true,
	}
	r.value("tie_word_embeddings", &a.TiedHead, "true or false")
	a.EmbedScale = math.Sqrt(float64(a.Hidden))
	a.FinalNormEps = r.normEps()
	if c, ok := r.float("final_logit_softcapping"); ok {
		if !(c > 0) || math.IsInf(c, 0) {
			r.fail("final_logit_softcapping", fmt.Sprint(c), "a number above 0, or null")
		}
		a.LogitCap = c
	}
	if act, ok := r.text("hidden_activation"); !ok || act != "gelu_pytorch_tanh" {
		r.refuse(fmt.Sprintf("hidden_activation %q", act), "only gelu_pytorch_tanh is implemented")
	}
	r.raw("num_experts") // matters with enable_moe_block only
	if _, ok := r.raw("hidden_size_per_layer_input"); !ok {
		r.refuse("hidden_size_per_layer_input nothing", "it must be 0: without it transformers has embeddings per layer, of 256")
	}
	kinds := r.layerKinds(a.Layers)
	ropes, nested := r.ropesByKind(kinds)
	a.PerLayer = make([]engine.LayerParams, len(kinds))
	local, global := gemma4Local(r, kinds), gemma4Global(r, kinds)
	for n, kind := range kinds {
		l := local
		if kind == globalLayer {
			l = global
		}
		dim := l.HeadDim
		if dim == 0 {
			dim = a.HeadDim
		}
		rope := ropes[kind]
		l.NormEps, l.RopeTheta, l.RopeFactor = a.FinalNormEps, rope.theta, rope.factor
		if l.RopePairs = int(rope.turning * float64(dim) / 2); l.RopePairs < 1 {
			r.fail("rope_parameters."+kind, fmt.Sprintf("a partial_rotary_factor of %v", rope.turning), "one by which a pair of a head turns")
		}
		a.PerLayer[n] = l
	}
	if global.HeadDim != 0 && global.HeadDim != a.HeadDim && !ropes[globalLayer].proportional && slices.Contains(kinds, globalLayer) {
		// transformers makes a table of the length head_dim, which doesn't fit.
		r.refuse("rope_parameters."+globalLayer+` "default"`, "with a global_head_dim of its own the type is proportional")
	}
	return a, nested
}

// gemma4Local are the constants of layers with a window.
func gemma4Local(r *configReader, kinds []string) engine.LayerParams {
	if !slices.Contains(kinds, localLayer) {
		r.raw("sliding_window")
		return engine.LayerParams{}
	}
	return engine.LayerParams{Window: r.integer("sliding_window", -1)}
}

// gemma4Global are the constants of layers without one. Only those that take
// their values from their keys have a number of key-value heads of their own.
func gemma4Global(r *configReader, kinds []string) engine.LayerParams {
	if !slices.Contains(kinds, globalLayer) {
		return engine.LayerParams{}
	}
	l := engine.LayerParams{HeadDim: r.integer("global_head_dim", -1), KeyIsValue: r.flag("attention_k_eq_v")}
	if !l.KeyIsValue {
		r.raw("num_global_key_value_heads")
		return l
	}
	if l.KVHeads = r.integer("num_global_key_value_heads", 0); l.KVHeads == 0 {
		r.fail("num_global_key_value_heads", "nothing, with attention_k_eq_v", "a whole number of at least 1")
	}
	return l
}

// layerKinds reads layer_types.
func (r *configReader) layerKinds(layers int) []string {
	var kinds []string
	const want = "a list of layer types, the last one " + globalLayer
	if !r.value("layer_types", &kinds, want) {
		r.fail("layer_types", "nothing", want)
	}
	if len(kinds) != layers {
		r.fail("layer_types", fmt.Sprintf("%d entries", len(kinds)), fmt.Sprintf("one per layer, %d", layers))
	}
	for i, k := range kinds {
		if k != localLayer && k != globalLayer {
			r.refuse(fmt.Sprintf("layer_types[%d] %q", i, k), "only "+localLayer+" and "+globalLayer+" are implemented")
		}
	}
	if n := len(kinds); n > 0 && kinds[n-1] != globalLayer {
		// transformers would change it, and say so in a warning.
		r.fail(fmt.Sprintf("layer_types[%d]", n-1), kinds[n-1], globalLayer+" in the last layer")
	}
	return kinds
}

// ropeByKind is the rotary embedding of a kind of layers.
type ropeByKind struct {
	theta, factor, turning float64
	proportional           bool
}

// ropesByKind reads rope_parameters, which has an object per kind of layers.
func (r *configReader) ropesByKind(kinds []string) (map[string]ropeByKind, []*configReader) {
	out := map[string]ropeByKind{}
	all := r.object("rope_parameters")
	if all == nil {
		r.fail("rope_parameters", "nothing", "an object per kind of layers")
		return out, nil
	}
	nested := []*configReader{all}
	for _, kind := range []string{globalLayer, localLayer} {
		sub := all.object(kind)
		if sub == nil {
			if slices.Contains(kinds, kind) {
				all.fail(kind, "nothing", "the rotary embedding of these layers")
			}
			continue
		}
		nested = append(nested, sub)
		out[kind] = sub.rope()
	}
	return out, nested
}

// rope reads one rotary embedding. The type "proportional" is the default one
// with frequencies of the whole head, of which the leading part turns.
func (r *configReader) rope() ropeByKind {
	p := ropeByKind{factor: 1, turning: 1}
	kind, _ := r.text("rope_type")
	if p.proportional = kind == "proportional"; !p.proportional && kind != "default" {
		r.refuse(fmt.Sprintf("rope_type %q", kind), "only default and proportional are implemented")
	}
	var ok bool
	if p.theta, ok = r.float("rope_theta"); !ok || !(p.theta > 0) || math.IsInf(p.theta, 0) {
		r.fail("rope_theta", orNothing(ok, p.theta), "a number above 0")
	}
	for _, f := range []struct {
		key  string
		to   *float64
		most float64
	}{{"partial_rotary_factor", &p.turning, 1}, {"factor", &p.factor, math.MaxFloat64}} {
		v, ok := r.float(f.key)
		switch {
		case !ok:
		case !(v > 0 && v <= f.most):
			r.fail(f.key, fmt.Sprint(v), "a number above 0")
		case !p.proportional && v != 1:
			r.refuse(fmt.Sprintf("%s %v", f.key, v), "the default rotary embedding has none")
		default:
			*f.to = v
		}
	}
	return p
}

// normEps reads rms_norm_eps.
func (r *configReader) normEps() float64 {
	eps, ok := r.float("rms_norm_eps")
	if !ok || !(eps > 0 && eps < 1) {
		r.fail("rms_norm_eps", orNothing(ok, eps), "a number between 0 and 1")
	}
	return eps
}

// wantClass refuses a list of classes without the family's.
func (r *configReader) wantClass(family string) {
	var classes []string
	if r.value("architectures", &classes, "a list of class names") && !slices.Contains(classes, r.family.class) {
		r.refuse(fmt.Sprintf("architectures %q", classes), fmt.Sprintf("of model_type %s the engine has %s only", family, r.family.class))
	}
}
