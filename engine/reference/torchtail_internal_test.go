package reference

import (
	"slices"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"
)

// TestRsqrtIsTorchs: the values that torch 2.15 has for torch.rsqrt of bfloat16 on a
// CPU with AVX2, in whole strides of 32 and in what is left of them.
func TestRsqrtIsTorchs(t *testing.T) {
	in := []float32{0.30078125, 0.69921875, 1.296875, 2.203125, 5, 0.0009002685546875, 11, 77}
	whole := []float32{1.8203125, 1.1953125, 0.87890625, 0.671875, 0.447265625, 33.25, 0.30078125, 0.11376953125}
	left := []float32{1.828125, 1.1953125, 0.875, 0.671875, 0.447265625, 33.25, 0.302734375, 0.1142578125}
	b, err := newBackend(DefaultBackend)
	require.NoError(t, err)
	for repeats, strides := range map[int]int{1: 0, 3: 0, 4: 1, 5: 1, 8: 2, 9: 2} {
		x, err := graph.NewExec(b, func(x *graph.Node) *graph.Node {
			return BFloat16.rounder().rsqrt(graph.Reshape(x, 2, repeats, 4, 1))
		})
		require.NoError(t, err)
		out, err := x.Call(tensors.FromValue(slices.Repeat(in, repeats)))
		require.NoError(t, err)
		require.Equal(t, []int{2, repeats, 4, 1}, out[0].Shape().Dimensions)
		var got []float32
		require.NoError(t, tensors.ConstFlatData(out[0], func(flat []float32) { got = append(got, flat...) }))
		require.Equal(t, slices.Concat(slices.Repeat(whole, 4*strides), slices.Repeat(left, repeats-4*strides)), got, "%d repeats", repeats)
	}
}
