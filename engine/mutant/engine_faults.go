package mutant

import (
	"fmt"

	"github.com/plumbline-go/plumbline/engine"
)

const (
	namedLayer = "row L+1 for layer L"
	namedEmbed = "row 0, as a wrong input, not a layer"
	namedNorm  = "final_norm: the rows of the residual stream are healthy, the logits aren't"
)

// engineFaults are the faults that an engine's weights, constants or
// engine.Fault express.
func engineFaults() []Mutant {
	return []Mutant{
		{
			Name: "rope-base", Place: LayerOrAll, Named: namedLayer,
			Bug:     "a config adapter drops rope_theta and a default of 1e4 takes its place (1e6 where the model's own base is 1e4)",
			Source:  "https://github.com/lyogavin/airllm/issues/368",
			weights: ropeBase,
		},
		{
			Name: "q-position-off-by-one", Place: LayerOrAll, Named: namedLayer + "; from the second token on", decode: true,
			Bug:     "queries are rotated with a cache offset that was read after the keys had advanced it, one position too far",
			Source:  "https://github.com/ml-explore/mlx-lm/pull/1396",
			weights: queryOffset,
		},
		{
			Name: "q-bias-missing", Place: LayerOrAll, Named: namedLayer + "; from the second token on",
			Bug:     "a shared projection adapter drops the biases, here that of q",
			Source:  "https://github.com/sbryngelson/ANEForge/pull/253",
			weights: qBiasMissing,
		},
		{
			Name: "norm-eps", Place: LayerOrAll, Named: namedLayer + " in float rows; int8 rows can't show it",
			Bug:     "the epsilon of RMSNorm is hard-coded as 1e-6 where the model wants 1e-5, or the other way round",
			Source:  "https://github.com/ggml-org/llama.cpp/issues/2373",
			weights: normEps,
		},
		{
			Name: "norm-gain-ones", Place: LayerOrAll, Named: namedLayer,
			Bug:     "the weight of an input norm is never loaded and keeps its initial value, of which nothing is scaled",
			weights: func(o *overlay, layer int) error { return replaceIn(o, layer, "input_layernorm.weight", o.untrained()) },
		},
		{
			Name: "gate-up-swapped", Place: LayerOrAll, Named: namedLayer,
			Bug:     "a fused gate and up projection is split in the wrong order",
			weights: gateUpSwapped,
		},
		{
			Name: "mlp-gain", Place: LayerOrAll, Named: namedLayer + ", as a gain of the MLP's update; too small for the error's size",
			Bug:     "a scale of the down projection is off by a few per cent, here 10",
			weights: func(o *overlay, layer int) error { return o.replaceDown(layer, scaledBy(1.1)) },
		},
		{
			Name: "channel-dead", Place: LayerOrAll, Named: namedLayer + ", as a dead channel of the MLP's update",
			Bug:     "one output channel of the down projection is never written, here the first",
			weights: func(o *overlay, layer int) error { return o.replaceDown(layer, firstRowZero) },
		},
		{
			Name: "kv-heads-swapped", Place: LayerOrAll, Named: namedLayer,
			Bug:     "query heads read the keys and values of another group: the kv heads are out of order",
			Source:  "https://github.com/FlashML-org/FreeToken/pull/177",
			weights: kvHeadsSwapped,
		},
		{
			Name: "layer-skipped", Place: Layer, Named: namedLayer,
			Bug:     "a layer's output never reaches the residual stream",
			weights: layerSkipped,
		},
		{
			Name: "layers-swapped", Place: Layer, Named: namedLayer + " and the layer after it; neither heals",
			Bug:     "two neighbouring layers run in the wrong order; planted at L it exchanges L and L+1",
			weights: layersSwapped,
		},
		{
			Name: "stale-cache-row", Place: Layer, Named: namedLayer, decode: true,
			Bug:     "attention reads the KV cache before the newest row is written, and finds what a reset left there",
			Source:  "https://github.com/Blaizzy/mlx-vlm/issues/1715",
			weights: staleCache,
		},
		{
			Name: "decode-position-shift", Place: Nowhere, Named: "row 1; from the second token on", decode: true,
			Bug:    "a decode step takes its position from a table slice that is off by one, prefill is right",
			Source: "https://github.com/pytorch/executorch/pull/2010",
			weights: func(o *overlay, _ int) error {
				o.arch.Fault.DecodeShift, o.arch.Fault.DecodeFrom = 1, -1
				return nil
			},
		},
		{
			Name: "first-token-embedding", Place: Nowhere, Named: namedEmbed + "; no power when first and last token agree", decode: true,
			Bug: "the first prompt token is embedded in place of the last",
			weights: func(o *overlay, _ int) error {
				o.arch.Fault.EmbedFirst = true
				return nil
			},
		},
		{
			Name: "chunk-position-shift", Place: Nowhere, Named: "decodes whose prompt runs in chunks, against the others; no power on a prompt of one chunk", decode: true,
			Bug:    "chunks of a prompt behind the first take their positions from an offset that is one too large",
			Source: "https://github.com/huggingface/transformers/issues/43082",
			weights: func(o *overlay, _ int) error {
				o.arch.Fault.ChunkShift = 1
				return nil
			},
		},
		{
			Name: "cache-kept", Place: Nowhere, Named: "decodes after another request, from the second on", decode: true,
			Bug:    "the KV cache isn't emptied between two requests: what the first one left there is attended to by the next",
			Source: "https://github.com/Blaizzy/mlx-vlm/issues/1715",
			weights: func(o *overlay, _ int) error {
				o.arch.Fault.KeepCache = true
				return nil
			},
		},
		{
			Name: "padding-unmasked", Place: Nowhere, Named: "sequences of a batch with padding in front; no power where all prompts are as long", decode: true,
			Bug:    "the attention mask of a batch leaves out its padding, which the shorter sequences attend to",
			Source: "https://github.com/Blaizzy/mlx-vlm/pull/1946",
			weights: func(o *overlay, _ int) error {
				o.arch.Fault.BatchPaddingUnmasked = true
				return nil
			},
		},
		{
			Name: "batch-row-stale", Place: Nowhere, Named: "sequences of a batch but its first, from the second token on", decode: true,
			Bug:    "decode steps of a batch are right for its first sequence alone: the others' keys and values never reach the cache",
			Source: "https://github.com/ml-explore/mlx/issues/3494",
			weights: func(o *overlay, _ int) error {
				o.arch.Fault.BatchRowStale = true
				return nil
			},
		},
		{
			Name: "final-norm-skipped", Place: Nowhere, Named: namedNorm,
			Bug:     "the last row of the residual stream goes to the head without the final norm",
			Source:  "https://github.com/awslabs/keys_values/issues/139",
			weights: finalNormSkipped,
		},
		{
			Name: "final-norm-ones", Place: Nowhere, Named: namedNorm,
			Bug: "the weight of the final norm is never loaded and keeps its initial value, of which nothing is scaled",
			weights: func(o *overlay, _ int) error {
				o.replace(finalNormWeight, o.untrained())
				return nil
			},
		},
		{
			Name: "final-norm-rolled", Place: Nowhere, Named: namedNorm,
			Bug: "the weight of the final norm is read one channel too far",
			weights: func(o *overlay, _ int) error {
				o.replace(finalNormWeight, rotateBlocks(o.arch.Hidden))
				return nil
			},
		},
		{
			Name: "wrong-head", Place: Nowhere, Named: namedNorm + "; the head, seen from outside",
			Bug:     "the output projection is another matrix: the embedding table where the checkpoint has a head of its own; where it ties them, the table one id too far",
			Source:  "https://github.com/pegainfer-project/pegainfer/pull/544",
			weights: wrongHead,
		},
	}
}

const (
	finalNormWeight = "model.norm.weight"
	headWeight      = "lm_head.weight"
	tableWeight     = "model.embed_tokens.weight"
)

// finalNormSkipped makes the final norm the identity by its constants alone:
// x/sqrt(mean(x²)+2^60)*2^30 is x as long as mean(x²) is below 2^36 in float32,
// half a unit in the last place of 2^60, and up to a factor of 1-mean(x²)/2^61 in
// float64.
//
// A norm that multiplies by 1 + weight gets 2^40 and 2^20-1, where both sums are
// exact, and is the identity as long as mean(x²) is below 2^16 in float32.
func finalNormSkipped(o *overlay, _ int) error {
	eps, gain := 0x1p60, float32(0x1p30)
	if o.arch.Family == hybridFamily {
		eps, gain = 0x1p40, 0x1p20-1
	}
	o.arch.FinalNormEps = eps
	o.replace(finalNormWeight, func(dst, _ []float32, _ []int) {
		for i := range dst {
			dst[i] = gain
		}
	})
	return nil
}

func wrongHead(o *overlay, _ int) error {
	if !o.arch.TiedHead {
		o.alias[headWeight] = tableWeight
		return nil
	}
	o.arch.TiedHead = false
	o.replaceBy(headWeight, tableWeight, rotateBlocks(o.arch.Vocab))
	return nil
}

func replaceIn(o *overlay, layer int, tensor string, fill func(dst, src []float32, shape []int)) error {
	return o.layers(layer, func(_ int, p string) error {
		o.replace(p+tensor, fill)
		return nil
	})
}

// replaceDown replaces the down projections of the layer's feed-forwards, or of
// those of every layer.
func (o *overlay) replaceDown(layer int, fill func(dst, src []float32, shape []int)) error {
	return o.layers(layer, func(n int, p string) error {
		for _, f := range o.feedForwards(n) {
			o.replace(p+f+downWeight, fill)
		}
		return nil
	})
}

func qBiasMissing(o *overlay, layer int) error {
	if !o.arch.QKVBias() {
		return &engine.UnsupportedError{What: fmt.Sprintf("a missing q bias in a %s", o.arch.Family), Why: "its projections have no biases to miss"}
	}
	return replaceIn(o, layer, "self_attn.q_proj.bias", zeros)
}

func ropeBase(o *overlay, layer int) error {
	return o.layersOf(false, layer, func(n int, _ string) {
		o.arch.PerLayer[n].RopeTheta = other(o.arch.PerLayer[n].RopeTheta, 1e4, 1e6)
	})
}

// other is a, or b when the value is a already.
func other(value, a, b float64) float64 {
	if value == a {
		return b
	}
	return a
}

func queryOffset(o *overlay, layer int) error {
	return o.layersOf(false, layer, func(n int, _ string) { o.arch.PerLayer[n].QueryOffset++ })
}

func normEps(o *overlay, layer int) error {
	return o.layers(layer, func(n int, _ string) error {
		o.arch.PerLayer[n].NormEps = other(o.arch.PerLayer[n].NormEps, 1e-5, 1e-6)
		return nil
	})
}

func gateUpSwapped(o *overlay, layer int) error {
	return o.layers(layer, func(n int, p string) error {
		for _, f := range o.feedForwards(n) {
			gate, up := p+f+gateWeight, p+f+upWeight
			o.alias[gate], o.alias[up] = up, gate
		}
		return nil
	})
}

func kvHeadsSwapped(o *overlay, layer int) error {
	swapped, most := false, 0
	err := o.layersOf(false, layer, func(n int, p string) {
		heads := o.arch.KVHeadsOf(n)
		if most = max(most, heads); heads < 2 {
			return // of all layers, those that have some to exchange
		}
		swapped = true
		if o.arch.Latent.KVRank > 0 {
			o.replace(p+"self_attn.kv_b_proj.weight", rotateBlocks(heads))
			return
		}
		for _, t := range []string{"k_proj.weight", "k_proj.bias", "v_proj.weight", "v_proj.bias"} {
			o.replace(p+"self_attn."+t, rotateBlocks(heads))
		}
	})
	if err == nil && !swapped {
		return fmt.Errorf("got %d kv heads, want at least 2 to exchange", most)
	}
	return err
}

func layerSkipped(o *overlay, layer int) error {
	if err := replaceIn(o, layer, o.mixerOutput(layer), zeros); err != nil {
		return err
	}
	return o.replaceDown(layer, zeros)
}

func layersSwapped(o *overlay, layer int) error {
	if layer+1 >= o.arch.Layers {
		return fmt.Errorf("got layer %d, want 0 to %d: the layer after it is its partner", layer, o.arch.Layers-2)
	}
	o.swapped = [2]string{layerPrefix(layer), layerPrefix(layer + 1)}
	p := o.arch.PerLayer
	p[layer], p[layer+1] = p[layer+1], p[layer]
	return nil
}

func staleCache(o *overlay, layer int) error {
	f := &o.arch.Fault
	f.StaleCache, f.StaleLayer, f.StalePosition = true, layer, -1
	return nil
}
