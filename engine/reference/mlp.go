package reference

import "github.com/gomlx/gomlx/core/graph"

// swiGLU is down(silu(gate(x)) * up(x)) with silu(g) = g*sigmoid(g) (Shazeer
// 2020, arXiv:2002.05202, without biases). silu(gate) is held in the engine's dtype,
// and its product with up.
func swiGLU(p params, x *graph.Node) *graph.Node { return p.feedForward(x, "mlp.") }

// feedForward is swiGLU with the weights below a prefix.
func (p params) feedForward(x *graph.Node, prefix string) *graph.Node {
	gate := p.linear(x, prefix+"gate_proj")
	up := p.linear(x, prefix+"up_proj")
	return p.linear(p.mul(p.held(silu(gate)), up), prefix+"down_proj")
}

func silu(x *graph.Node) *graph.Node { return graph.Mul(x, graph.Sigmoid(x)) }
