package reference

import "github.com/gomlx/gomlx/core/graph"

// swiGLU is down(silu(gate(x)) * up(x)) with silu(g) = g*sigmoid(g) (Shazeer
// 2020, arXiv:2002.05202, without biases).
func swiGLU(p params, x *graph.Node) *graph.Node {
	gate := p.linear(x, "mlp.gate_proj")
	up := p.linear(x, "mlp.up_proj")
	return p.linear(graph.Mul(graph.Mul(gate, graph.Sigmoid(gate)), up), "mlp.down_proj")
}
