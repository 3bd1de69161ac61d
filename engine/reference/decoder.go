package reference

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/plumbline-go/plumbline/engine"
)

// Names of tensors outside the layers.
const (
	embedName     = "model.embed_tokens.weight"
	finalNormName = "model.norm.weight"
	headName      = "lm_head.weight"
)

func layerPrefix(n int) string { return fmt.Sprintf("model.layers.%d.", n) }

// llamaSlots are the weights of a layer of the families qwen2 and llama.
func llamaSlots(a engine.Arch, kind layerKind) []slot {
	q, kv := a.Heads*kind.headDim, kind.kvHeads*kind.headDim
	all := []slot{{"input_layernorm.weight", []int{a.Hidden}}}
	linear := func(name string, out, in int, bias bool) {
		all = append(all, slot{name + ".weight", []int{out, in}})
		if bias {
			all = append(all, slot{name + ".bias", []int{out}})
		}
	}
	linear("self_attn.q_proj", q, a.Hidden, a.QKVBias())
	linear("self_attn.k_proj", kv, a.Hidden, a.QKVBias())
	linear("self_attn.v_proj", kv, a.Hidden, a.QKVBias())
	linear("self_attn.o_proj", a.Hidden, q, a.OutputBias())
	all = append(all, slot{"post_attention_layernorm.weight", []int{a.Hidden}})
	linear("mlp.gate_proj", a.Intermediate, a.Hidden, false)
	linear("mlp.up_proj", a.Intermediate, a.Hidden, false)
	linear("mlp.down_proj", a.Hidden, a.Intermediate, false)
	return all
}

// llamaLayer is one decoder layer of the families qwen2 and llama: pre-norm
// attention, with biases where llamaSlots has them, then pre-norm SwiGLU, each
// added to the residual stream (Llama, arXiv:2302.13971; Qwen2 technical report,
// arXiv:2407.10671). attend maps q [T, heads, d], k and v [T, kv, d], q and k
// already rotated, to [T, heads*d].
func llamaLayer(g *layerGraphs, p params, x, eps *graph.Node, rq, rk rotary, attend func(q, k, v *graph.Node) *graph.Node) layerNodes {
	t := x.Shape().Dimensions[0]
	var l layerNodes
	l.attnNorm = p.rmsNorm(x, p.vector("input_layernorm.weight"), eps)
	l.q = graph.Reshape(p.linear(l.attnNorm, "self_attn.q_proj"), t, g.arch.Heads, g.headDim)
	l.qRope = p.rotate(rq, l.q)
	l.k = graph.Reshape(p.linear(l.attnNorm, "self_attn.k_proj"), t, g.kvHeads, g.headDim)
	l.kRope = p.rotate(rk, l.k)
	l.v = graph.Reshape(p.linear(l.attnNorm, "self_attn.v_proj"), t, g.kvHeads, g.headDim)
	l.attnOut = attend(l.qRope, l.kRope, l.v)
	l.residMid = p.add(x, p.linear(l.attnOut, "self_attn.o_proj"))
	l.mlpOut, l.out = llamaMLP(p, l.residMid, eps)
	return l
}

// llamaMLP is what the MLP of a layer adds to the residual rows mid [T, H], and
// the rows with it.
func llamaMLP(p params, mid, eps *graph.Node) (added, out *graph.Node) {
	added = swiGLU(p, p.rmsNorm(mid, p.vector("post_attention_layernorm.weight"), eps))
	return added, p.add(mid, added)
}

// layerNodes are the places inside a layer on T positions that have a name, and
// its output. q and k are there before and after RoPE.
type layerNodes struct {
	attnNorm, residMid, mlpOut, out *graph.Node // [T, H]
	q, qRope                        *graph.Node // [T, heads, d]
	k, kRope, v                     *graph.Node // [T, kv, d]
	attnOut                         *graph.Node // [T, heads*d]

	routing *routing // of a layer with experts, which run outside of its graph
}

// outputs are a layer graph's: the layer's output, what is behind it, and where
// experts are to be run yet, what they need.
func (l layerNodes) outputs(behind ...*graph.Node) []*graph.Node {
	if l.routing == nil {
		return append([]*graph.Node{l.out}, behind...)
	}
	return append(append([]*graph.Node{l.residMid}, behind...), l.routing.nodes()...)
}

// places are the places inside the layer that its graph computes, in the order of
// parts.
func (k layerKind) places(l layerNodes) []*graph.Node {
	at := map[engine.Part]*graph.Node{
		engine.PartAttnNorm: l.attnNorm, engine.PartQ: l.q, engine.PartK: l.k, engine.PartV: l.v, engine.PartQRope: l.qRope,
		engine.PartKRope: l.kRope, engine.PartAttnOut: l.attnOut, engine.PartResidMid: l.residMid, engine.PartMLPOut: l.mlpOut,
	}
	out := make([]*graph.Node, 0, len(at))
	parts := k.parts()
	if k.experts.Count > 0 {
		parts = attentionParts()
	}
	for _, part := range parts {
		out = append(out, at[part])
	}
	return out
}
