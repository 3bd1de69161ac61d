package reference

import (
	"github.com/gomlx/gomlx/core/graph"

	"github.com/plumbline-go/plumbline/engine"
)

// family is what a model_type brings along.
type family struct {
	// class is transformers' name of the causal language model.
	class string
	// fixed are keys beside fixedKeys, or in their place; own are keys of fixedKeys
	// that config reads itself.
	fixed map[string]fixedKey
	own   []string
	// prefix is that of the text model's tensors in a checkpoint of a whole model,
	// in the place of "model."; apart are the prefixes of those of its other parts.
	prefix string
	apart  []apart
	// config reads a config.json; nil means the one that qwen2 and llama share.
	config func(r *configReader, family string) (engine.Arch, []*configReader)
	// optionalBias is true when attention_bias chooses.
	optionalBias bool
	// slots are the weights of a layer, in the order in which every graph takes them.
	slots func(a engine.Arch, kind layerKind) []slot
	// layer is one decoder layer, and mlp what its second half makes of the
	// residual rows between the halves: what it adds, and the layer's output.
	layer func(g *layerGraphs, p params, x, eps *graph.Node, rq, rk rotary, attend func(q, k, v *graph.Node) *graph.Node) layerNodes
	mlp   func(p params, mid, eps *graph.Node) (added, out *graph.Node)
	// norm is the final norm.
	norm func(r rounder, x, w, eps *graph.Node) *graph.Node
	// scale is what attention scores are multiplied by.
	scale func(headDim int) float64
}

// apart is a part of a checkpoint that is no part of the text model.
type apart struct{ prefix, what string }

var families = map[string]family{"qwen2": qwen2, "llama": llama, "gemma4_text": gemma4, "qwen3_5": qwen35, deepseekV2: deepseek}

// textModels are the families of files that hold no more than the text model of
// another family, under a model_type of its own.
var textModels = map[string]family{"qwen3_5_text": qwen35Text}

const knownFamilies = "the reference engine has qwen2, llama, gemma4_text, qwen3_5, qwen3_5_text and deepseek_v2 only"

// layerSlots are the weights of one decoder layer, in the order in which every
// graph takes them.
func layerSlots(a engine.Arch, kind layerKind) []slot { return families[a.Family].slots(a, kind) }
