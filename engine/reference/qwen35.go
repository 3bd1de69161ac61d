package reference

import (
	"github.com/gomlx/gomlx/core/graph"

	"github.com/plumbline-go/plumbline/engine"
)

// qwen35 is the text model of Qwen3.5 (transformers' Qwen3_5TextModel): layers of
// gated DeltaNet, and every few of them one with full attention, which has norms of
// q and k, a gate on its output, and rotary embeddings of a part of each head. The
// norms multiply by 1 + weight, but for that behind the delta rule.
//
// A checkpoint of the whole model has it beside a vision tower, which is left
// alone; qwen35Text is a checkpoint of the text model.
var (
	qwen35     = qwen35Family("Qwen3_5ForConditionalGeneration", textConfig, "vision_config")
	qwen35Text = qwen35Family("Qwen3_5ForCausalLM")
)

func qwen35Family(class string, own ...string) family {
	return family{
		class:  class,
		prefix: "model.language_model.",
		apart: []apart{
			{"model.visual.", "the vision tower, with vision_config, is left alone: prompts are text"},
			{"mtp.", "the heads that predict further tokens are not run"},
		},
		fixed: map[string]fixedKey{
			"attn_output_gate": {true, "the output of attention has a gate"},
			"mamba_ssm_dtype":  {"float32", "the recurrent state is float32"},
			"mlp_only_layers":  {[]any{}, "there is no mixture of experts"},
			"num_experts":      {0.0, "there is no mixture of experts"},
		},
		own: append(own, "partial_rotary_factor", "rope_parameters.partial_rotary_factor", "rope_scaling.partial_rotary_factor",
			"rope_parameters.mrope_section", "rope_scaling.mrope_section"),
		config: qwen35Config,
		slots:  qwen35Slots, layer: qwen35Layer, mlp: qwen35MLP, norm: rounder.shiftedNorm, scale: overRoot,
	}
}

// qwen35Slots are the weights of a layer.
func qwen35Slots(a engine.Arch, kind layerKind) []slot {
	vector := []int{a.Hidden}
	all := []slot{{"input_layernorm.weight", vector}, {"post_attention_layernorm.weight", vector}}
	linear := func(name string, out, in int, bias bool) {
		all = append(all, slot{name + ".weight", []int{out, in}})
		if bias {
			all = append(all, slot{name + ".bias", []int{out}})
		}
	}
	if kind.linear {
		d := a.DeltaNet
		values := d.ValueHeads * d.ValueDim
		linear("linear_attn.in_proj_qkv", d.Channels(), a.Hidden, false)
		linear("linear_attn.in_proj_z", values, a.Hidden, false)
		linear("linear_attn.in_proj_b", d.ValueHeads, a.Hidden, false)
		linear("linear_attn.in_proj_a", d.ValueHeads, a.Hidden, false)
		linear("linear_attn.out_proj", a.Hidden, values, false)
		all = append(all, slot{"linear_attn.conv1d.weight", []int{d.Channels(), 1, d.Kernel}},
			slot{"linear_attn.A_log", []int{d.ValueHeads}}, slot{"linear_attn.dt_bias", []int{d.ValueHeads}},
			slot{"linear_attn.norm.weight", []int{d.ValueDim}})
	} else {
		q, kv := a.Heads*kind.headDim, kind.kvHeads*kind.headDim
		linear("self_attn.q_proj", 2*q, a.Hidden, a.QKVBias())
		linear("self_attn.k_proj", kv, a.Hidden, a.QKVBias())
		linear("self_attn.v_proj", kv, a.Hidden, a.QKVBias())
		linear("self_attn.o_proj", a.Hidden, q, a.OutputBias())
		all = append(all, slot{"self_attn.q_norm.weight", []int{kind.headDim}}, slot{"self_attn.k_norm.weight", []int{kind.headDim}})
	}
	linear("mlp.gate_proj", a.Intermediate, a.Hidden, false)
	linear("mlp.up_proj", a.Intermediate, a.Hidden, false)
	linear("mlp.down_proj", a.Hidden, a.Intermediate, false)
	return all
}

// shiftedNorm is rmsNormOnce with 1 + w in the place of w, as in Qwen3_5RMSNorm; the
// sum isn't held in the engine's dtype.
func (r rounder) shiftedNorm(x, w, eps *graph.Node) *graph.Node {
	return r.rmsNormOnce(x, graph.AddScalar(w, 1), eps)
}

// qwen35Layer is one decoder layer with full attention; see llamaLayer for attend.
// The rows of q_proj are, head by head, those of a query and those of its gate.
func qwen35Layer(g *layerGraphs, p params, x, eps *graph.Node, rq, rk rotary, attend func(q, k, v *graph.Node) *graph.Node) layerNodes {
	t, heads, d := x.Shape().Dimensions[0], g.arch.Heads, g.headDim
	var l layerNodes
	l.attnNorm = p.shiftedNorm(x, p.vector("input_layernorm.weight"), eps)
	both := graph.Reshape(p.linear(l.attnNorm, "self_attn.q_proj"), t, heads, 2*d)
	half := func(from int) *graph.Node {
		return graph.Slice(both, graph.AxisRange(), graph.AxisRange(), graph.AxisRange(from, from+d))
	}
	l.q = headNorm(p.shiftedNorm, half(0), p.vector("self_attn.q_norm.weight"), eps)
	l.k = headNorm(p.shiftedNorm, graph.Reshape(p.linear(l.attnNorm, "self_attn.k_proj"), t, g.kvHeads, d), p.vector("self_attn.k_norm.weight"), eps)
	l.v = graph.Reshape(p.linear(l.attnNorm, "self_attn.v_proj"), t, g.kvHeads, d)
	l.qRope, l.kRope = p.rotateLeading(rq, l.q), p.rotateLeading(rk, l.k)
	l.attnOut = attend(l.qRope, l.kRope, l.v)
	if !g.ungated {
		l.attnOut = p.mul(l.attnOut, p.held(graph.Sigmoid(graph.Reshape(half(d), t, heads*d))))
	}
	l.residMid = p.add(x, p.linear(l.attnOut, "self_attn.o_proj"))
	l.mlpOut, l.out = qwen35MLP(p, l.residMid, eps)
	return l
}

// rotateLeading applies tables to the leading channels of x [T, heads, d], as many
// as the tables have.
func (r rounder) rotateLeading(t rotary, x *graph.Node) *graph.Node {
	turning, d := t.cos.Shape().Dimensions[2], x.Shape().Dimensions[2]
	if turning == d {
		return r.rotate(t, x)
	}
	part := func(from, to int) *graph.Node {
		return graph.Slice(x, graph.AxisRange(), graph.AxisRange(), graph.AxisRange(from, to))
	}
	return graph.Concatenate([]*graph.Node{r.rotate(t, part(0, turning)), part(turning, d)}, -1)
}

// linearLayer is one decoder layer with a gated DeltaNet on B*T rows x. scan makes
// [B*T, nv, dv] of the inputs of the delta rule and the convolution's weight. What
// the mixer sees of a row is zero where keep, of x's shape, is false.
func linearLayer(g *layerGraphs, p params, x, eps, keep *graph.Node, scan func(in deltaInputs, w *graph.Node) *graph.Node) layerNodes {
	d, rows := g.arch.DeltaNet, x.Shape().Dimensions[0]
	var l layerNodes
	l.attnNorm = p.shiftedNorm(x, p.vector("input_layernorm.weight"), eps)
	u := l.attnNorm
	if keep != nil {
		u = keptWhere(keep, u)
	}
	read := p.held(scan(g.deltaInputs(p, u), p.vector("linear_attn.conv1d.weight")))
	gate := graph.Reshape(p.linear(u, "linear_attn.in_proj_z"), rows, d.ValueHeads, d.ValueDim)
	normed := headNorm(p.rmsNorm, read, p.vector("linear_attn.norm.weight"), eps)
	l.attnOut = graph.Reshape(p.held(graph.Mul(normed, silu(gate))), rows, d.ValueHeads*d.ValueDim)
	l.residMid = p.add(x, p.linear(l.attnOut, "linear_attn.out_proj"))
	l.mlpOut, l.out = qwen35MLP(p, l.residMid, eps)
	return l
}

// qwen35MLP is llamaMLP with the family's norm.
func qwen35MLP(p params, mid, eps *graph.Node) (added, out *graph.Node) {
	added = swiGLU(p, p.shiftedNorm(mid, p.vector("post_attention_layernorm.weight"), eps))
	return added, p.add(mid, added)
}
