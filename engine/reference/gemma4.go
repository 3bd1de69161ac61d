package reference

import (
	"math"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/plumbline-go/plumbline/engine"
)

// gemma4 is the text model of Gemma 4 (transformers' Gemma4ForCausalLM): local
// layers with a sliding window and global ones, each kind with its own heads,
// head dimension and rotary embedding; norms on q, k and v; the values of global
// layers from the keys' projection; a norm before and behind each half of a
// layer, and a factor on its output. What makes other Gemma 4 models, experts,
// embeddings per layer, keys and values shared between layers, is refused.
var gemma4 = family{
	class: "Gemma4ForCausalLM",
	fixed: map[string]fixedKey{
		"attention_bias":              {false, "projections have no biases"},
		"enable_moe_block":            {false, "there is no mixture of experts"},
		"hidden_size_per_layer_input": {0.0, "there are no embeddings per layer"},
		"num_kv_shared_layers":        {0.0, "layers don't share keys and values"},
		"use_bidirectional_attention": {"vision", "attention between tokens of text is causal"},
		"use_double_wide_mlp":         {false, "it belongs to layers that share keys and values"},
	},
	own:    []string{"final_logit_softcapping", "hidden_activation", "num_experts"},
	config: gemma4Config,
	slots:  gemma4Slots, layer: gemma4Layer, mlp: gemma4MLP, norm: rounder.rmsNormOnce,
	scale: func(int) float64 { return 1 }, // the norms of q and k see to it
}

// gemma4Slots are the weights of a layer. One with KeyIsValue has no v projection.
func gemma4Slots(a engine.Arch, kind layerKind) []slot {
	q, kv, vector := a.Heads*kind.headDim, kind.kvHeads*kind.headDim, []int{a.Hidden}
	all := []slot{
		{"input_layernorm.weight", vector}, {"post_attention_layernorm.weight", vector},
		{"pre_feedforward_layernorm.weight", vector}, {"post_feedforward_layernorm.weight", vector},
		{"layer_scalar", []int{1}},
		{"self_attn.q_norm.weight", []int{kind.headDim}}, {"self_attn.k_norm.weight", []int{kind.headDim}},
		{"self_attn.q_proj.weight", []int{q, a.Hidden}}, {"self_attn.k_proj.weight", []int{kv, a.Hidden}},
	}
	if !kind.keyIsValue {
		all = append(all, slot{"self_attn.v_proj.weight", []int{kv, a.Hidden}})
	}
	return append(all, slot{"self_attn.o_proj.weight", []int{a.Hidden, q}},
		slot{"mlp.gate_proj.weight", []int{a.Intermediate, a.Hidden}}, slot{"mlp.up_proj.weight", []int{a.Intermediate, a.Hidden}},
		slot{"mlp.down_proj.weight", []int{a.Hidden, a.Intermediate}})
}

// gemma4Layer is one decoder layer; see llamaLayer for attend.
func gemma4Layer(g *layerGraphs, p params, x, eps *graph.Node, rq, rk rotary, attend func(q, k, v *graph.Node) *graph.Node) layerNodes {
	t := x.Shape().Dimensions[0]
	var l layerNodes
	l.attnNorm = p.rmsNormOnce(x, p.vector("input_layernorm.weight"), eps)
	heads := func(name string, n int) *graph.Node {
		return graph.Reshape(p.linear(l.attnNorm, "self_attn."+name), t, n, g.headDim)
	}
	normed := func(part engine.Part, x, weight *graph.Node) *graph.Node {
		if part == g.skipNorm {
			return x
		}
		return headNorm(p.rmsNormOnce, x, weight, eps)
	}
	k := heads("k_proj", g.kvHeads)
	v := k
	if !g.keyIsValue {
		v = heads("v_proj", g.kvHeads)
	}
	l.q = normed(engine.PartQ, heads("q_proj", g.arch.Heads), p.vector("self_attn.q_norm.weight"))
	l.k = normed(engine.PartK, k, p.vector("self_attn.k_norm.weight"))
	l.v = normed(engine.PartV, v, nil)
	l.qRope, l.kRope = p.rotate(rq, l.q), p.rotate(rk, l.k)
	l.attnOut = attend(l.qRope, l.kRope, l.v)
	l.residMid = p.add(x, p.rmsNormOnce(p.linear(l.attnOut, "self_attn.o_proj"), p.vector("post_attention_layernorm.weight"), eps))
	l.mlpOut, l.out = gemma4MLP(p, l.residMid, eps)
	return l
}

// gemma4MLP is what the MLP of a layer adds to the residual rows mid [T, H], and
// the layer's output: the sum of both, times the layer's factor.
func gemma4MLP(p params, mid, eps *graph.Node) (added, out *graph.Node) {
	h := p.rmsNormOnce(mid, p.vector("pre_feedforward_layernorm.weight"), eps)
	h = p.mul(p.held(geluTanh(p.linear(h, "mlp.gate_proj"))), p.linear(h, "mlp.up_proj"))
	added = p.rmsNormOnce(p.linear(h, "mlp.down_proj"), p.vector("post_feedforward_layernorm.weight"), eps)
	return added, p.mul(p.add(mid, added), p.vector("layer_scalar"))
}

// geluTanh is x/2*(1 + tanh(sqrt(2/pi)*(x + 0.044715*x³))), the approximation of
// GELU in Hendrycks and Gimpel 2016, arXiv:1606.08415.
func geluTanh(x *graph.Node) *graph.Node {
	cubed := graph.Mul(graph.Mul(x, x), x)
	inner := graph.MulScalar(graph.Add(x, graph.MulScalar(cubed, 0.044715)), math.Sqrt(2/math.Pi))
	return graph.Mul(graph.MulScalar(x, 0.5), graph.AddScalar(graph.Tanh(inner), 1))
}
