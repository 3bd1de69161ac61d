package reference

import "github.com/gomlx/gomlx/core/graph"

// normFunc is one of the norms below.
type normFunc func(x, w, eps *graph.Node) *graph.Node

// rmsNorm is w * x / sqrt(mean(x²) + eps) over the last axis of x [T, H], with
// w [1, H] and eps [1, 1] (Zhang and Sennrich 2019, arXiv:1910.07467, with the
// epsilon inside the root as in Qwen2RMSNorm; the weight is applied last). A nil w
// is left out. What the weight multiplies is held in the engine's dtype already.
func (r rounder) rmsNorm(x, w, eps *graph.Node) *graph.Node {
	y := r.held(normalised(x, eps))
	if w == nil {
		return y
	}
	return r.mul(y, w)
}

// rmsNormOnce is rmsNorm with the weight applied before the one rounding, as in
// Gemma4RMSNorm.
func (r rounder) rmsNormOnce(x, w, eps *graph.Node) *graph.Node {
	y := normalised(x, eps)
	if w != nil {
		y = graph.Mul(y, w)
	}
	return r.held(y)
}

// normalised is x / sqrt(mean(x²) + eps).
func normalised(x, eps *graph.Node) *graph.Node {
	ms := graph.ReduceAndKeep(graph.Square(x), graph.ReduceMean, -1)
	return graph.Mul(x, graph.Rsqrt(graph.Add(ms, eps)))
}

// headNorm is a norm of each head of x [T, heads, d], with w [1, d].
func headNorm(norm normFunc, x, w, eps *graph.Node) *graph.Node {
	dims := x.Shape().Dimensions
	return graph.Reshape(norm(graph.Reshape(x, dims[0]*dims[1], dims[2]), w, eps), dims...)
}
