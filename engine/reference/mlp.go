package reference

import "github.com/gomlx/gomlx/core/graph"

// swiGLU is down(silu(gate(x)) * up(x)) with silu(g) = g*sigmoid(g) (Shazeer
// 2020, arXiv:2002.05202, without biases). silu(gate) is held in the engine's dtype,
// and its product with up.
func swiGLU(p params, x *graph.Node) *graph.Node {
	gate := p.linear(x, "mlp.gate_proj")
	up := p.linear(x, "mlp.up_proj")
	return p.linear(p.mul(p.held(silu(gate)), up), "mlp.down_proj")
}

func silu(x *graph.Node) *graph.Node { return graph.Mul(x, graph.Sigmoid(x)) }
