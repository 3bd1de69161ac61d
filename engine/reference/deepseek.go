package reference

import (
	"fmt"
	"math"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/plumbline-go/plumbline/engine"
)

const deepseekV2 = "deepseek_v2"

// deepseek is DeepSeek-V2 (arXiv:2405.04434), with the formulas of its own
// modeling file: latent attention with a rotary key that all heads share, the
// first layers with a plain feed-forward, the others with routed experts beside
// shared ones. A router with DeepSeek-V3's gate is taken too; the rest of a
// DeepSeek-V3 is another model_type, and refused.
//
// transformers' DeepseekV2 classes differ: they leave mscale² out of the softmax
// scale (see [WithTransformersScale]) and never normalise the weights of experts.
var deepseek = family{
	class: "DeepseekV2ForCausalLM",
	fixed: map[string]fixedKey{
		"attention_bias":           {false, "projections have no biases"},
		"num_nextn_predict_layers": {nil, "there are no layers that predict further tokens"},
		"pretraining_tp":           {1.0, "projections are one product each"},
		"rope_interleave":          {true, "a rotary pair are neighbours"},
		"rope_interleaved":         {true, "a rotary pair are neighbours"},
		"rope_parameters.truncate": {true, "the bounds of YaRN's ramp are whole numbers"},
		"rope_scaling.truncate":    {true, "the bounds of YaRN's ramp are whole numbers"},
		"use_sliding_window":       {false, "only full attention is implemented"},
	},
	own:    []string{"rope_parameters.factor", "rope_scaling.factor"},
	config: deepseekConfig,
	slots:  deepseekSlots, layer: deepseekLayer, mlp: llamaMLP, norm: rounder.rmsNorm, scale: overRoot,
}

// latentEps is the epsilon of the norms of latent rows, which no config changes.
const latentEps = 1e-6

// deepseekSlots are the weights of a layer but its routed experts'.
func deepseekSlots(a engine.Arch, kind layerKind) []slot {
	m, q := kind.latent, a.Heads*kind.headDim
	all := []slot{{"input_layernorm.weight", []int{a.Hidden}}}
	add := func(name string, shape ...int) { all = append(all, slot{name + ".weight", shape}) }
	if m.QRank == 0 {
		add("self_attn.q_proj", q, a.Hidden)
	} else {
		add("self_attn.q_a_proj", m.QRank, a.Hidden)
		add("self_attn.q_a_layernorm", m.QRank)
		add("self_attn.q_b_proj", q, m.QRank)
	}
	add("self_attn.kv_a_proj_with_mqa", m.KVRank+m.RopeDim, a.Hidden)
	add("self_attn.kv_a_layernorm", m.KVRank)
	add("self_attn.kv_b_proj", a.Heads*(kind.headDim-m.RopeDim+m.ValueDim), m.KVRank)
	add("self_attn.o_proj", a.Hidden, a.Heads*m.ValueDim)
	add("post_attention_layernorm", a.Hidden)
	x := kind.experts
	if x.Count == 0 {
		return append(all, feedForwardSlots("mlp.", a.Hidden, a.Intermediate)...)
	}
	add("mlp.gate", x.Count, a.Hidden)
	if x.Gate.Scoring == engine.ScoringSigmoid {
		all = append(all, slot{"mlp." + gateBias, []int{x.Count}})
	}
	if x.Shared > 0 {
		all = append(all, feedForwardSlots(sharedPrefix, a.Hidden, x.Shared*x.Intermediate)...)
	}
	return all
}

const (
	sharedPrefix = "mlp.shared_experts."
	gateBias     = "gate.e_score_correction_bias"
)

// expertPrefix is that of a routed expert below its layer's.
func expertPrefix(expert int) string { return fmt.Sprintf("mlp.experts.%d.", expert) }

// feedForwardSlots are the weights of a SwiGLU below a prefix.
func feedForwardSlots(prefix string, hidden, width int) []slot {
	return []slot{{prefix + "gate_proj.weight", []int{width, hidden}}, {prefix + "up_proj.weight", []int{width, hidden}},
		{prefix + "down_proj.weight", []int{hidden, width}}}
}

// deepseekLayer is one decoder layer. attend gets as keys the rotated key that all
// heads share, [T, 1, RopeDim], and as values the normed latent rows, [T, 1,
// KVRank]: that is what the cache keeps, and attention makes the heads' keys and
// values of it. See llamaLayer for the rest.
func deepseekLayer(g *layerGraphs, p params, x, eps *graph.Node, rq, rk rotary, attend func(q, k, v *graph.Node) *graph.Node) layerNodes {
	t, m := x.Shape().Dimensions[0], g.latent
	var l layerNodes
	l.attnNorm = p.rmsNorm(x, p.vector("input_layernorm.weight"), eps)
	l.q = graph.Reshape(g.queries(p, l.attnNorm), t, g.arch.Heads, g.headDim)
	plain := g.headDim - m.RopeDim
	l.qRope = graph.Concatenate([]*graph.Node{lastAxis(l.q, 0, plain), p.rotatePairs(rq, lastAxis(l.q, plain, g.headDim))}, -1)

	low := p.linear(l.attnNorm, "self_attn.kv_a_proj_with_mqa")
	latent := graph.Reshape(p.rmsNorm(lastAxis(low, 0, m.KVRank), p.vector("self_attn.kv_a_layernorm.weight"), constant(low, latentEps)), t, 1, m.KVRank)
	key := graph.Reshape(lastAxis(low, m.KVRank, m.KVRank+m.RopeDim), t, 1, m.RopeDim)
	turned := p.rotatePairs(rk, key)
	// Of the rows themselves, for those who look: what attention sees is made of the cache.
	heads := func(key *graph.Node) (k, v *graph.Node) {
		k, v = g.unfold(p)(graph.TransposeAllAxes(key, 1, 0, 2), graph.TransposeAllAxes(latent, 1, 0, 2))
		return graph.TransposeAllAxes(k, 1, 0, 2), graph.TransposeAllAxes(v, 1, 0, 2)
	}
	l.k, l.v = heads(key)
	l.kRope, _ = heads(turned)

	l.attnOut = attend(l.qRope, turned, latent)
	l.residMid = p.add(x, p.linear(l.attnOut, "self_attn.o_proj"))
	if g.experts.Count > 0 {
		return g.route(p, l, eps)
	}
	l.mlpOut, l.out = llamaMLP(p, l.residMid, eps)
	return l
}

// queries are the queries of all heads before their rotation, [T, heads*headDim].
func (g *layerGraphs) queries(p params, x *graph.Node) *graph.Node {
	if g.latent.QRank == 0 {
		return p.linear(x, "self_attn.q_proj")
	}
	low := p.linear(x, "self_attn.q_a_proj")
	return p.linear(p.rmsNorm(low, p.vector("self_attn.q_a_layernorm.weight"), constant(low, latentEps)), "self_attn.q_b_proj")
}

// unfold makes the keys and values of all heads of what the cache keeps: keys
// [..., 1, S, RopeDim] and latent rows [..., 1, S, KVRank] give [..., heads, S,
// headDim] and [..., heads, S, ValueDim]. Nil without latent attention.
func (g *layerGraphs) unfold(p params) func(key, latent *graph.Node) (k, v *graph.Node) {
	m := g.latent
	if m.KVRank == 0 {
		return nil
	}
	return func(key, latent *graph.Node) (k, v *graph.Node) {
		dims := latent.Shape().Dimensions
		lead, s := dims[:len(dims)-3], dims[len(dims)-2]
		batch := 1
		for _, d := range lead {
			batch *= d
		}
		plain := g.headDim - m.RopeDim
		wide := p.linear(graph.Reshape(latent, batch*s, m.KVRank), "self_attn.kv_b_proj")
		wide = graph.TransposeAllAxes(graph.Reshape(wide, batch, s, g.arch.Heads, plain+m.ValueDim), 0, 2, 1, 3)
		shared := graph.BroadcastToDims(graph.Reshape(key, batch, 1, s, m.RopeDim), batch, g.arch.Heads, s, m.RopeDim)
		k = graph.Concatenate([]*graph.Node{lastAxis(wide, 0, plain), shared}, -1)
		v = lastAxis(wide, plain, plain+m.ValueDim)
		shape := func(x *graph.Node, width int) *graph.Node {
			return graph.Reshape(x, append(append([]int(nil), lead...), g.arch.Heads, s, width)...)
		}
		return shape(k, g.headDim), shape(v, m.ValueDim)
	}
}

// lastAxis is x from one index of its last axis up to another.
func lastAxis(x *graph.Node, from, to int) *graph.Node {
	axes := make([]graph.SliceAxisSpec, x.Rank())
	for i := range axes {
		axes[i] = graph.AxisRange()
	}
	axes[len(axes)-1] = graph.AxisRange(from, to)
	return graph.Slice(x, axes...)
}

// constant is a number in x's arithmetic.
func constant(x *graph.Node, v float64) *graph.Node { return graph.Scalar(x.Graph(), x.DType(), v) }

// mscale is YaRN's factor of attention for a scaling factor, 0.1*m*ln(factor) + 1,
// as the model's own file has it.
func mscale(factor, m float64) float64 {
	if factor <= 1 {
		return 1
	}
	return 0.1*m*math.Log(factor) + 1
}
