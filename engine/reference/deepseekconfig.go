package reference

import (
	"fmt"
	"math"

	"github.com/plumbline-go/plumbline/engine"
)

// Ways to choose experts in topk_method.
const (
	topkGreedy = "greedy"
	topkGroups = "group_limited_greedy"
	topkNoAux  = "noaux_tc" // DeepSeek-V3's
)

// deepseekConfig reads the config of a DeepSeek-V2. Dimensions, the two ranks and
// what makes the experts have no default here, since those of the two published
// config classes differ; null is a value for q_lora_rank, n_routed_experts and
// n_shared_experts. topk_method defaults to greedy, scoring_func to softmax,
// norm_topk_prob to false, routed_scaling_factor and moe_layer_freq to 1,
// first_k_dense_replace to 0.
func deepseekConfig(r *configReader, family string) (engine.Arch, []*configReader) {
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
		Latent: engine.Latent{
			KVRank:   r.integer("kv_lora_rank", -1),
			QRank:    r.orNull("q_lora_rank"),
			RopeDim:  r.integer("qk_rope_head_dim", -1),
			ValueDim: r.integer("v_head_dim", -1),
		},
	}
	a.HeadDim = r.integer("qk_nope_head_dim", -1) + a.Latent.RopeDim
	r.same("qk_head_dim", a.HeadDim, "qk_nope_head_dim + qk_rope_head_dim")
	// transformers writes what it takes the rotary dimensions from.
	r.same("head_dim", a.Latent.RopeDim, "qk_rope_head_dim")
	a.KVHeads = r.integer("num_key_value_heads", a.Heads)
	if a.KVHeads != a.Heads {
		r.refuse(fmt.Sprintf("num_key_value_heads %d", a.KVHeads), fmt.Sprintf("latent attention has keys and values for all %d heads", a.Heads))
	}
	if act, ok := r.text("hidden_act"); ok && act != "silu" {
		r.refuse(fmt.Sprintf("hidden_act %q", act), "only silu is implemented")
	}
	a.FinalNormEps = r.normEps()
	theta, yarn, factor, nested := deepseekRope(r)
	experts, first, every := deepseekExperts(r)
	a.PerLayer = make([]engine.LayerParams, min(a.Layers, 1<<16))
	for n := range a.PerLayer {
		a.PerLayer[n] = engine.LayerParams{RopeTheta: theta, NormEps: a.FinalNormEps, Yarn: yarn, ScoreFactor: factor}
		if n >= first && n%every == 0 {
			a.PerLayer[n].Experts = experts
		}
	}
	return a, nested
}

// same demands that a key, where it is there, agrees with what follows from others.
func (r *configReader) same(key string, want int, from string) {
	if got := r.integer(key, want); got != want {
		r.fail(key, fmt.Sprint(got), fmt.Sprintf("%d, which is %s", want, from))
	}
}

// orNull is a whole number of at least 1, or 0 for null. The key must be there.
func (r *configReader) orNull(key string) int {
	if _, ok := r.keys[key]; !ok {
		r.fail(key, "nothing", "a whole number of at least 1, or null")
	}
	return r.integer(key, 0)
}

// count is a whole number of at least 0, 0 where the key is absent.
func (r *configReader) count(key string) int {
	if f, ok := r.float(key); ok && f == 0 {
		return 0
	}
	return r.integer(key, 0)
}

// deepseekExperts are the experts of a layer that has some: those from layer first
// on whose number is a multiple of every.
func deepseekExperts(r *configReader) (x engine.Experts, first, every int) {
	first, every = r.count("first_k_dense_replace"), r.integer("moe_layer_freq", 1)
	x.Count = r.orNull("n_routed_experts")
	keys := []string{"num_experts_per_tok", "n_shared_experts", "moe_intermediate_size", "n_group", "topk_group", "topk_method", "scoring_func", "norm_topk_prob", "routed_scaling_factor"}
	if x.Count == 0 { // all layers are dense
		for _, key := range keys {
			r.raw(key)
		}
		return engine.Experts{}, first, max(every, 1)
	}
	x.PerToken, x.Shared, x.Intermediate = r.integer("num_experts_per_tok", -1), r.orNull("n_shared_experts"), r.integer("moe_intermediate_size", -1)
	g := &x.Gate
	g.Scoring, g.Scale, g.Normalise = engine.ScoringSoftmax, 1, r.flag("norm_topk_prob")
	if f, ok := r.float("routed_scaling_factor"); ok {
		if g.Scale = f; !(f > 0) || math.IsInf(f, 0) {
			r.fail("routed_scaling_factor", fmt.Sprint(f), "a number above 0")
		}
	}
	method, scoring := topkGreedy, string(engine.ScoringSoftmax)
	if v, ok := r.text("topk_method"); ok {
		method = v
	}
	if v, ok := r.text("scoring_func"); ok {
		scoring = v
	}
	groups, top := r.count("n_group"), r.count("topk_group")
	switch {
	case method == topkGreedy && scoring == string(engine.ScoringSoftmax):
		// Greedy choice has no groups, whatever the config has of them.
	case method == topkGroups && scoring == string(engine.ScoringSoftmax):
		g.Groups, g.TopGroups = groups, top
	case method == topkNoAux && scoring == string(engine.ScoringSigmoid):
		g.Scoring, g.Groups, g.TopGroups = engine.ScoringSigmoid, groups, top
	default:
		r.refuse(fmt.Sprintf("topk_method %q with scoring_func %q", method, scoring),
			fmt.Sprintf("there are %s and %s with softmax, and %s with sigmoid", topkGreedy, topkGroups, topkNoAux))
	}
	if method != topkGreedy && (groups < 1 || top < 1) {
		r.fail("n_group, topk_group", fmt.Sprintf("%d and %d", groups, top), "at least 1 of both with topk_method "+method)
	}
	if got, want := checkExperts(x); got != "" {
		r.fail("experts", got, want)
	}
	return x, first, max(every, 1)
}

// deepseekRope reads the rotary embedding, in either style, and the factor of the
// softmax scale that goes with it, mscale².
func deepseekRope(r *configReader) (theta float64, y engine.Yarn, factor float64, nested []*configReader) {
	theta, has := r.float("rope_theta")
	kind := ""
	for _, key := range []string{"rope_parameters", "rope_scaling"} {
		sub := r.object(key)
		if sub == nil {
			continue
		}
		nested = append(nested, sub)
		sub.refuseOthers()
		if inner, ok := sub.float("rope_theta"); ok {
			if has && inner != theta {
				sub.fail("rope_theta", fmt.Sprint(inner), fmt.Sprintf("%v, which the file says elsewhere", theta))
			}
			theta, has = inner, true
		}
		this, yarn, f := sub.yarn()
		if kind != "" && (this != kind || yarn != y || f != factor) {
			r.fail(key, this, "what rope_parameters says")
		}
		kind, y, factor = this, yarn, f
	}
	if !has || !(theta > 1) || math.IsInf(theta, 0) {
		r.fail("rope_theta", orNothing(has, theta), "a rotary base above 1 (the fallback of 10000 is not assumed)")
	}
	return theta, y, factor, nested
}

// yarn reads one object of rotary parameters: its type, and what it says if that
// is yarn.
func (r *configReader) yarn() (kind string, y engine.Yarn, factor float64) {
	kind, said := r.text("rope_type")
	if v, ok := r.text("type"); ok {
		if said && v != kind {
			r.fail("type", v, kind+", the value of rope_type")
		}
		kind, said = v, true
	}
	if !said {
		kind = "default"
	}
	if kind == "default" {
		if f, ok := r.float("factor"); ok && f != 1 {
			r.refuse(fmt.Sprintf("factor %v", f), "the default rotary embedding has none")
		}
		return kind, y, 0
	}
	if kind != "yarn" {
		r.refuse(fmt.Sprintf("type %q", kind), "only default and yarn are implemented")
		return kind, y, 0
	}
	number := func(key string, def float64) float64 {
		v, ok := r.float(key)
		if !ok && !math.IsNaN(def) {
			return def
		}
		if !ok || !(v > 0) || math.IsInf(v, 0) {
			r.fail(key, orNothing(ok, v), "a number above 0")
		}
		return v
	}
	y.Factor = number("factor", math.NaN())
	y.BetaFast, y.BetaSlow = number("beta_fast", 32), number("beta_slow", 1)
	y.Original = r.integer("original_max_position_embeddings", -1)
	scale, all := 1.0, 0.0
	for _, f := range []struct {
		key string
		to  *float64
	}{{"mscale", &scale}, {"mscale_all_dim", &all}} {
		if v, ok := r.float(f.key); ok {
			if *f.to = v; !(v >= 0) || math.IsInf(v, 0) {
				r.fail(f.key, fmt.Sprint(v), "a number of at least 0")
			}
		}
	}
	if of := mscale(y.Factor, scale) / mscale(y.Factor, all); of != 1 {
		y.TableFactor = of
	}
	if all != 0 {
		factor = mscale(y.Factor, all) * mscale(y.Factor, all)
	}
	return kind, y, factor
}
