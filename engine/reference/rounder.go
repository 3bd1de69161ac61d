package reference

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/gomlx/core/graph"
)

// rounder says what a run of transformers holds in the engine's dtype. A family's
// code passes each such value through it, and leaves out what torch keeps in
// float32 on the way: the inside of a norm, of a softmax or of an activation, and
// the sums of a product. In float32 and float64 it adds nothing to a graph.
type rounder struct{ bfloat16 bool }

// rounder is that of an arithmetic.
func (d DType) rounder() rounder { return rounder{d == BFloat16} }

// held is x rounded to the values that the dtype has, to nearest, ties to even.
func (r rounder) held(x *graph.Node) *graph.Node {
	if !r.bfloat16 {
		return x
	}
	return graph.ConvertDType(graph.ConvertDType(x, dtypes.BFloat16), x.DType())
}

func (r rounder) add(a, b *graph.Node) *graph.Node { return r.held(graph.Add(a, b)) }

func (r rounder) mul(a, b *graph.Node) *graph.Node { return r.held(graph.Mul(a, b)) }

// scale multiplies by a constant, which torch takes as float32 beside a bfloat16
// tensor.
func (r rounder) scale(x *graph.Node, by float64) *graph.Node {
	return r.held(graph.MulScalar(x, by))
}

// value is held for a value on the host, rounded to float32 first, as torch does.
// float64 and float32 values stay as they are.
func (r rounder) value(x float64) float64 {
	if !r.bfloat16 {
		return x
	}
	return bfloat16.FromFloat64(x).Float64()
}

// heldValues is held for values on the host. Where all of them are exact already,
// as those of a bfloat16 checkpoint are, they are not copied.
func heldValues[T real](r rounder, data []T) []T {
	if !r.bfloat16 {
		return data
	}
	var out []T
	for i, v := range data {
		rounded := T(r.value(float64(v)))
		if out == nil && rounded != v {
			out = append(make([]T, 0, len(data)), data[:i]...)
		}
		if out != nil {
			out = append(out, rounded)
		}
	}
	if out == nil {
		return data
	}
	return out
}
