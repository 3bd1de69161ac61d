package conformance

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/plumbline-go/plumbline/engine"
)

// blockWeights are the weights of a file of quantised blocks, whose values the
// reference has exactly.
var blockWeights = regexp.MustCompile(`^q([458]_[01]|[2-6]_k(_[sml])?)$`)

// activationBlocks are how many channels share a scale, by declared activations.
var activationBlocks = map[string]int{"int8 blocks": 32, "q8_0": 32, "q8_1": 32, "int8-block32": 32, "q8_k": 256}

// unknownArithmetic begins what is said of an arithmetic that nothing emulates.
const unknownArithmetic = "no yardstick for "

// blockArithmeticOf reads the declaration of an engine that takes its weights
// from the reference's own file, and rounds the inputs of its linears to int8 in
// blocks. What it doesn't know is named.
func blockArithmeticOf(d engine.Info) arithmetic {
	unknown := func(format string, args ...any) arithmetic {
		return arithmetic{unknown: unknownArithmetic + fmt.Sprintf(format, args...)}
	}
	// what stands behind the type says where the file is from
	weights, _, _ := strings.Cut(strings.ToLower(d.Weights), "(")
	weights, _, _ = strings.Cut(strings.TrimSpace(weights), " ")
	block := activationBlocks[strings.ToLower(d.Activations)]
	known := blockWeights.MatchString(weights) || isFloat32(strings.ToLower(d.Weights))
	kv, kvKnown := engine.ParseKVCache(d.KVCache)
	switch {
	case !known && block == 0 || !isFloat32(strings.ToLower(d.DType)):
		return unknown("weights %q, activations %q, dtype %q", d.Weights, d.Activations, d.DType)
	case !known:
		return unknown("weights %q beside activations %q", d.Weights, d.Activations)
	case block == 0:
		return unknown("activations %q beside weights %q", d.Activations, d.Weights)
	case !kvKnown:
		return unknown("kv_cache %q", d.KVCache)
	}
	return arithmetic{scheme: engine.Scheme{FloatWeights: true, ActivationBlock: block, KVCache: kv}}
}
