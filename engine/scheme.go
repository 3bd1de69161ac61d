package engine

import (
	"fmt"
	"strings"
)

// Scheme is a low-precision arithmetic that a yardstick emulates. Schemes are
// comparable. The zero value has int8 weights with a scale per output channel,
// int8 activations with a scale per token, float rows and a float KV cache.
type Scheme struct {
	// RowsInt8 rounds embed, resid_mid and resid_post to int8 per row.
	RowsInt8 bool
	// FloatWeights takes the checkpoint's weights, the embedding table included,
	// as they are: those of a quantised file are what its codes stand for, and
	// only activations are left to round.
	FloatWeights bool
	// ActivationBlock is how many channels of a linear's input share a scale,
	// which is kept as float16; the last block of a row may be shorter. 0: one
	// float scale for all channels of a token.
	ActivationBlock int
	// KVCache is what the KV cache holds.
	KVCache KVCache
}

// KVFormat is a number format of a KV cache.
type KVFormat string

const (
	// KVFloat rounds nothing.
	KVFloat KVFormat = ""
	// KVFloat16 is IEEE half precision.
	KVFloat16 KVFormat = "f16"
	// KVQ8_0 are int8 codes in blocks of 32 channels of a head, each with a
	// float16 scale.
	KVQ8_0 KVFormat = "q8_0"
)

// KVCache is the number format of the keys and that of the values. What meets
// them in a product has the same: queries are rounded as keys are, and the
// weights of attention are float16 where the values are.
type KVCache struct{ K, V KVFormat }

// ParseKVCache reads a declaration: a format for both sides ("f16", "q8_0"), or
// one with the side that has it ("q8_0 K"), the other one being float16. Nothing,
// "f32" and "float32" are a float cache. ok is false for anything else.
func ParseKVCache(s string) (c KVCache, ok bool) {
	words := strings.Fields(strings.ToLower(s))
	if len(words) == 0 {
		return KVCache{}, true
	}
	var f KVFormat
	switch words[0] {
	case "f32", "float32":
	case "f16", "float16":
		f = KVFloat16
	case "q8_0":
		f = KVQ8_0
	default:
		return KVCache{}, false
	}
	switch {
	case len(words) == 1:
		return KVCache{f, f}, true
	case len(words) == 2 && words[1] == "k":
		return KVCache{f, KVFloat16}, true
	case len(words) == 2 && words[1] == "v":
		return KVCache{KVFloat16, f}, true
	}
	return KVCache{}, false
}

// String is a declaration that ParseKVCache reads, where one is possible.
func (c KVCache) String() string {
	name := func(f KVFormat) string {
		if f == KVFloat {
			return "f32"
		}
		return string(f)
	}
	switch {
	case c.K == c.V:
		return name(c.K)
	case c.V == KVFloat16:
		return name(c.K) + " K"
	case c.K == KVFloat16:
		return name(c.V) + " V"
	}
	return fmt.Sprintf("%s K, %s V", name(c.K), name(c.V))
}
