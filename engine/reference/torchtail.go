package reference

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// torchStride is how many bfloat16 values torch's kernels for element-wise functions
// take at a time on a CPU with AVX2.
const torchStride = 32

// rsqrt is 1/sqrt(x). In bfloat16 torch computes in float32 and rounds once, but for
// what is left of the last torchStride values: there the root is a bfloat16 too. In
// a decode step of a model with fewer heads that is all of them.
func (r rounder) rsqrt(x *graph.Node) *graph.Node {
	if !r.bfloat16 {
		return graph.Rsqrt(x)
	}
	size := x.Shape().Size()
	flat := graph.Reshape(x, size)
	once := r.held(graph.Rsqrt(flat))
	twice := r.held(graph.Reciprocal(r.held(graph.Sqrt(flat))))
	at := graph.Iota(x.Graph(), shapes.Make(dtypes.Int32, size), 0)
	left := graph.GreaterOrEqual(at, graph.Scalar(x.Graph(), dtypes.Int32, float64(size-size%torchStride)))
	return graph.Reshape(graph.Where(left, twice, once), x.Shape().Dimensions...)
}
