package reference

import "github.com/gomlx/gomlx/core/graph"

// rmsNorm is w * x / sqrt(mean(x²) + eps) over the last axis of x [T, H], with
// w [1, H] and eps [1, 1] (Zhang and Sennrich 2019, arXiv:1910.07467, with the
// epsilon inside the root as in Qwen2RMSNorm; the weight is applied last). A nil w
// is left out.
func rmsNorm(x, w, eps *graph.Node) *graph.Node {
	ms := graph.ReduceAndKeep(graph.Square(x), graph.ReduceMean, -1)
	y := graph.Mul(x, graph.Rsqrt(graph.Add(ms, eps)))
	if w == nil {
		return y
	}
	return graph.Mul(y, w)
}

// headNorm is rmsNorm of each head of x [T, heads, d], with w [1, d].
func headNorm(x, w, eps *graph.Node) *graph.Node {
	dims := x.Shape().Dimensions
	return graph.Reshape(rmsNorm(graph.Reshape(x, dims[0]*dims[1], dims[2]), w, eps), dims...)
}
