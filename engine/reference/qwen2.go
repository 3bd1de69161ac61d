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

// qwen2Slots are the weights of one Qwen2 decoder layer, in the order in which
// every graph takes them.
func qwen2Slots(a engine.Arch) []slot {
	q, kv := a.Heads*a.HeadDim, a.KVHeads*a.HeadDim
	return []slot{
		{"input_layernorm.weight", []int{a.Hidden}},
		{"self_attn.q_proj.weight", []int{q, a.Hidden}},
		{"self_attn.q_proj.bias", []int{q}},
		{"self_attn.k_proj.weight", []int{kv, a.Hidden}},
		{"self_attn.k_proj.bias", []int{kv}},
		{"self_attn.v_proj.weight", []int{kv, a.Hidden}},
		{"self_attn.v_proj.bias", []int{kv}},
		{"self_attn.o_proj.weight", []int{a.Hidden, q}},
		{"post_attention_layernorm.weight", []int{a.Hidden}},
		{"mlp.gate_proj.weight", []int{a.Intermediate, a.Hidden}},
		{"mlp.up_proj.weight", []int{a.Intermediate, a.Hidden}},
		{"mlp.down_proj.weight", []int{a.Hidden, a.Intermediate}},
	}
}

// qwen2Layer is one Qwen2 decoder layer: pre-norm attention with biases on q, k
// and v, then pre-norm SwiGLU, each added to the residual stream (Qwen2
// technical report, arXiv:2407.10671). attend maps q [T, heads, d], k and v
// [T, kv, d], q and k already rotated, to [T, heads*d].
func qwen2Layer(a engine.Arch, p params, x, eps *graph.Node, rq, rk rotary, attend func(q, k, v *graph.Node) *graph.Node) layerNodes {
	t := x.Shape().Dimensions[0]
	var l layerNodes
	l.attnNorm = rmsNorm(x, p.vector("input_layernorm.weight"), eps)
	l.q = graph.Reshape(p.linear(l.attnNorm, "self_attn.q_proj"), t, a.Heads, a.HeadDim)
	l.qRope = rq.rotate(l.q)
	l.k = graph.Reshape(p.linear(l.attnNorm, "self_attn.k_proj"), t, a.KVHeads, a.HeadDim)
	l.kRope = rk.rotate(l.k)
	l.v = graph.Reshape(p.linear(l.attnNorm, "self_attn.v_proj"), t, a.KVHeads, a.HeadDim)
	l.attnOut = attend(l.qRope, l.kRope, l.v)
	l.residMid = graph.Add(x, p.linear(l.attnOut, "self_attn.o_proj"))
	l.mlpOut = swiGLU(p, rmsNorm(l.residMid, p.vector("post_attention_layernorm.weight"), eps))
	l.out = graph.Add(l.residMid, l.mlpOut)
	return l
}

// layerNodes are the places inside a layer on T positions that have a name, and
// its output. q and k are there before and after RoPE.
type layerNodes struct {
	attnNorm, residMid, mlpOut, out *graph.Node // [T, H]
	q, qRope                        *graph.Node // [T, heads, d]
	k, kRope, v                     *graph.Node // [T, kv, d]
	attnOut                         *graph.Node // [T, heads*d]
}
