package mutant

import (
	"fmt"

	"github.com/plumbline-go/plumbline/engine"
)

// cacheFaults are faults of a quantised KV cache. An engine with a dense one
// refuses them.
func cacheFaults() []Mutant {
	return []Mutant{
		{
			Name: "kv-scale-wrong-layer", Place: LayerOrAll, decode: true,
			Named:   "attn_out of layer L in decode steps, beside a dense cache; in every layer that has one of its shape before it when planted in all",
			Bug:     "a quantised KV cache is read with the scales of another layer: their buffer is indexed by a layer too few",
			weights: scaleOfAnotherLayer,
		},
		{
			Name: "kv-four-bits-fewer", Place: Nowhere, decode: true,
			Named: "attn_out of all layers in decode steps, beside a dense cache",
			Bug:   "a KV cache of 8 bits keeps 4: half of each byte is lost when it is packed",
			weights: func(o *overlay, _ int) error {
				o.arch.Fault.CacheBitsLost = 4
				return nil
			},
		},
	}
}

func scaleOfAnotherLayer(o *overlay, layer int) error {
	return o.layers(layer, func(n int, _ string) error {
		for from := n - 1; from >= 0; from-- {
			if o.arch.KVHeadsOf(from) == o.arch.KVHeadsOf(n) && o.arch.HeadDimOf(from) == o.arch.HeadDimOf(n) {
				o.arch.PerLayer[n].ScaleShift = n - from
				return nil
			}
		}
		if layer < 0 {
			return nil
		}
		return &engine.UnsupportedError{What: fmt.Sprintf("the scales of another layer in layer %d", n), Why: "no layer before it has its shape"}
	})
}
