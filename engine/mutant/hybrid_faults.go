package mutant

import (
	"fmt"

	"github.com/plumbline-go/plumbline/engine"
)

// hybridFaults are faults of a model some of whose layers are linear: gated
// DeltaNets, which have a state in the place of keys and values. Weights without
// such a layer, or without a gated one, refuse them.
func hybridFaults() []Mutant {
	return []Mutant{
		{
			Name: "recurrent-state-stale", Place: Layer, Named: namedLayer + ", which is linear; in decode steps from the first on", decode: true,
			Bug:     "decode steps read the recurrent state of a linear layer and never write it back: it stays what the prompt left",
			weights: staleState,
		},
		{
			Name: "conv-state-off-by-one", Place: LayerOrAll, Named: namedLayer + ", which is linear; from the second token on", decode: true,
			Bug:     "the convolution of a linear layer reads a state that is shifted by one position in decode steps: the newest input but one is missing",
			Source:  "https://github.com/vllm-project/vllm-ascend/pull/8544",
			weights: lateConvolution,
		},
		{
			Name: "attention-gate-missing", Place: LayerOrAll, Named: namedLayer + ", which has full attention",
			Bug: "the gate on the output of attention is left out, and only the queries of its shared projection are used",
			weights: func(o *overlay, layer int) error {
				if o.arch.Family != hybridFamily {
					return &engine.UnsupportedError{What: fmt.Sprintf("a missing gate in a %s", o.arch.Family), Why: "its attention has none"}
				}
				return o.layersOf(false, layer, func(n int, _ string) { o.arch.PerLayer[n].GateMissing = true })
			},
		},
		{
			Name: "beta-wrong-row", Place: LayerOrAll, Named: namedLayer + ", which is linear",
			Bug: "the rows of in_proj_b are out of order: each head of a linear layer writes with the strength of the one after it",
			weights: func(o *overlay, layer int) error {
				heads := o.arch.DeltaNet.ValueHeads
				if heads == 1 {
					return fmt.Errorf("got %d value head, want at least 2 to exchange", heads)
				}
				return o.layersOf(true, layer, func(_ int, p string) { o.replace(p+"linear_attn.in_proj_b.weight", rotateBlocks(heads)) })
			},
		},
	}
}

// hybridFamily has norms that multiply by 1 + weight, and gated attention.
const hybridFamily = "qwen3_5"

// layersOf is layers for those that are linear, or have attention. There must be
// one; a layer that is asked for must be one.
func (o *overlay) layersOf(linear bool, layer int, f func(n int, prefix string)) error {
	kind := "attention"
	if linear {
		kind = "a linear mixer"
	}
	found := false
	for n, l := range o.arch.PerLayer {
		if l.Linear == linear && (layer < 0 || n == layer) {
			f(n, layerPrefix(n))
			found = true
		}
	}
	if found {
		return nil
	}
	where := "a layer"
	if layer >= 0 {
		where = fmt.Sprintf("layer %d", layer)
	}
	return &engine.UnsupportedError{What: "a fault of " + kind, Why: fmt.Sprintf("there is no such %s in this %s", where, o.arch.Family)}
}

func staleState(o *overlay, layer int) error {
	return o.layersOf(true, layer, func(int, string) {
		f := &o.arch.Fault
		f.StaleCache, f.StaleLayer, f.StalePosition, f.StaleOnward = true, layer, -1, true
	})
}

func lateConvolution(o *overlay, layer int) error {
	return o.layersOf(true, layer, func(int, string) { o.arch.Fault.ConvLate, o.arch.Fault.ConvLayer = true, layer })
}

// untrained fills a norm's weight with what it is before training.
func (o *overlay) untrained() func(dst, src []float32, shape []int) {
	if o.arch.Family == hybridFamily {
		return zeros
	}
	return ones
}

// mixerOutput is the projection behind a layer's mixer.
func (o *overlay) mixerOutput(layer int) string {
	if o.arch.PerLayer[layer].Linear {
		return "linear_attn.out_proj.weight"
	}
	return "self_attn.o_proj.weight"
}
