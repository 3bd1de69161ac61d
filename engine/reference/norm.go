package reference

import "github.com/gomlx/gomlx/core/graph"

// rmsNorm is w * x / sqrt(mean(x²) + eps) over the last axis of x [T, H], with
// w [1, H] and eps [1, 1] (Zhang and Sennrich 2019, arXiv:1910.07467, with the
// epsilon inside the root as in Qwen2RMSNorm; the weight is applied last).
func rmsNorm(x, w, eps *graph.Node) *graph.Node {
	ms := graph.ReduceAndKeep(graph.Square(x), graph.ReduceMean, -1)
	return graph.Mul(graph.Mul(x, graph.Rsqrt(graph.Add(ms, eps))), w)
}
