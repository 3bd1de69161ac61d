package mutant

import (
	"fmt"

	"github.com/plumbline-go/plumbline/engine"
)

const (
	namedRoutes = "mlp_out of layer L and row L+1, which has a router"
	namedChoice = "route_ids of layer L, which has a router"
)

// routeFaults are faults of latent attention, of a router and of its experts.
// Weights without such a layer, or with one that the fault would leave as it is,
// refuse them. A latent row that never reaches the cache is stale-cache-row, and
// padding that prompts of a trace attend to is padding-unmasked.
func routeFaults() []Mutant {
	return []Mutant{
		{
			Name: "mscale-missing", Place: LayerOrAll, Named: "attn_out of layer L and row L+1",
			Bug:    "the softmax scale lacks YaRN's mscale², as in transformers' DeepseekV2 classes",
			Source: "https://github.com/huggingface/transformers/blob/v5.13.1/src/transformers/models/deepseek_v2/modeling_deepseek_v2.py",
			weights: func(o *overlay, layer int) error {
				return o.layersThat(layer, "an mscale that isn't 1", func(l engine.LayerParams) bool { return l.ScoreFactor != 0 && l.ScoreFactor != 1 },
					func(n int, _ string) { o.arch.PerLayer[n].ScoreFactor = 0 })
			},
		},
		{
			Name: "yarn-off", Place: LayerOrAll, Named: "q_rope and k_rope of layer L; from the second token on, and little on short prompts",
			Bug: "rope_scaling is dropped: rotary frequencies are those without YaRN",
			weights: func(o *overlay, layer int) error {
				return o.layersThat(layer, "YaRN", func(l engine.LayerParams) bool { return l.Yarn.Factor > 0 },
					func(n int, _ string) { o.arch.PerLayer[n].Yarn.Factor = 0 })
			},
		},
		{
			Name: "softmax-after-top-k", Place: LayerOrAll, Named: "route_weights of layer L, whose ids are right",
			Bug: "the softmax goes over the logits of the chosen experts, so that their weights add up to 1",
			weights: func(o *overlay, layer int) error {
				can := func(x engine.Experts) bool {
					return x.Gate.Scoring == engine.ScoringSoftmax && x.Gate.Groups == 0 && !x.Gate.Normalise && x.PerToken < x.Count
				}
				return o.routedThat(layer, "a softmax over all experts that isn't divided out", can,
					func(x *engine.Experts) { x.Gate.Fault = engine.GateSoftmaxChosen })
			},
		},
		{
			Name: "route-weights-unnormalised", Place: LayerOrAll, Named: "route_weights of layer L, whose ids are right",
			Bug: "norm_topk_prob is dropped: weights aren't divided by their sum, and are scaled by a factor that they may do without",
			weights: func(o *overlay, layer int) error {
				return o.routedThat(layer, "weights that are normalised", func(x engine.Experts) bool { return x.Gate.Normalise && x.PerToken > 1 },
					func(x *engine.Experts) { x.Gate.Normalise = false })
			},
		},
		{
			Name: "top-k-minus-one", Place: LayerOrAll, Named: namedChoice + ": one expert too few",
			Bug: "the experts are cut off one too early",
			weights: func(o *overlay, layer int) error {
				return o.routedThat(layer, "two experts per token", func(x engine.Experts) bool { return x.PerToken > 1 },
					func(x *engine.Experts) { x.PerToken-- })
			},
		},
		{
			Name: "route-ties-last-wins", Place: LayerOrAll, Named: namedChoice + ", where two scores are equal; no power where none are",
			Bug: "of experts with the same score the last is chosen",
			weights: func(o *overlay, layer int) error {
				return o.routedThat(layer, "two experts", func(x engine.Experts) bool { return x.Count > 1 },
					func(x *engine.Experts) { x.Gate.Fault = engine.GateLastWins })
			},
		},
		{
			Name: "group-mask-zero", Place: LayerOrAll, Named: namedChoice + ", where scores of the best groups are negative; no power where none are",
			Bug: "experts of groups that weren't chosen count as 0 and not as -Inf: they win over negative scores",
			weights: func(o *overlay, layer int) error {
				can := func(x engine.Experts) bool {
					return x.Gate.Scoring == engine.ScoringSigmoid && x.Gate.Groups > 0 && x.Gate.TopGroups < x.Gate.Groups
				}
				return o.routedThat(layer, "groups chosen by biased sigmoids", can, func(x *engine.Experts) { x.Gate.Fault = engine.GateMaskZero })
			},
		},
		{
			Name: "router-bfloat16", Place: LayerOrAll, Named: "router_logits of layer L; choices flip where margins are small",
			Bug: "the router runs in the model's bfloat16 and not in float32",
			weights: func(o *overlay, layer int) error {
				return o.routedThat(layer, "a router", func(engine.Experts) bool { return true },
					func(x *engine.Experts) { x.Gate.Fault = engine.GateBFloat16 })
			},
		},
		{
			Name: "shared-experts-dropped", Place: LayerOrAll, Named: "shared_out and " + namedRoutes + "; its routes are right",
			Bug: "what the shared experts give is never added",
			weights: func(o *overlay, layer int) error {
				return o.layersThat(layer, "shared experts", func(l engine.LayerParams) bool { return l.Experts.Shared > 0 },
					func(_ int, p string) { o.replace(p+sharedExperts+downWeight, zeros) })
			},
		},
		{
			Name: "experts-permuted", Place: LayerOrAll, Named: namedRoutes + "; its routes are right",
			Bug:     "the experts' weights are loaded in another order than the router's rows: each expert is the one after it",
			weights: expertsPermuted,
		},
	}
}

func expertsPermuted(o *overlay, layer int) error {
	return o.layersThat(layer, "two experts", func(l engine.LayerParams) bool { return l.Experts.Count > 1 }, func(n int, p string) {
		count := o.arch.PerLayer[n].Experts.Count
		for i := range count {
			for _, t := range []string{gateWeight, upWeight, downWeight} {
				o.alias[p+expertPrefix(i)+t] = p + expertPrefix((i+1)%count) + t
			}
		}
	})
}

// The weights of a feed-forward, and the prefixes of those of a layer with a router.
const (
	gateWeight    = "gate_proj.weight"
	upWeight      = "up_proj.weight"
	downWeight    = "down_proj.weight"
	sharedExperts = "mlp.shared_experts."
)

func expertPrefix(i int) string { return fmt.Sprintf("mlp.experts.%d.", i) }

// feedForwards are the prefixes of a layer's feed-forwards: one, or those of the
// shared and all routed experts.
func (o *overlay) feedForwards(layer int) []string {
	x := o.arch.PerLayer[layer].Experts
	if x.Count == 0 {
		return []string{"mlp."}
	}
	var all []string
	if x.Shared > 0 {
		all = append(all, sharedExperts)
	}
	for i := range x.Count {
		all = append(all, expertPrefix(i))
	}
	return all
}

// routedThat plants a fault in the experts of the layer, or of all layers that can
// have it.
func (o *overlay) routedThat(layer int, what string, can func(x engine.Experts) bool, plant func(x *engine.Experts)) error {
	return o.layersThat(layer, what, func(l engine.LayerParams) bool { return l.Experts.Count > 0 && can(l.Experts) },
		func(n int, _ string) { plant(&o.arch.PerLayer[n].Experts) })
}

// layersThat is layers for those that can have a fault, since they have what.
// There must be one; a layer that is asked for must be one.
func (o *overlay) layersThat(layer int, what string, can func(l engine.LayerParams) bool, plant func(n int, prefix string)) error {
	found := false
	for n, l := range o.arch.PerLayer {
		if (layer < 0 || n == layer) && can(l) {
			plant(n, layerPrefix(n))
			found = true
		}
	}
	if found {
		return nil
	}
	why := "no layer has that in this " + o.arch.Family
	if layer >= 0 {
		why = fmt.Sprintf("layer %d of this %s hasn't got that", layer, o.arch.Family)
	}
	return &engine.UnsupportedError{What: "a fault of " + what, Why: why}
}
