package reference

import (
	"math"

	"github.com/gomlx/gomlx/core/graph"
)

// ropeTable returns cos and sin of the rotary embedding for one position, headDim
// values each, the second half repeating the first (Su et al. 2021,
// arXiv:2104.09864, in the half-split layout of Qwen2RotaryEmbedding).
//
// In float32 every intermediate is rounded where transformers rounds it:
// inv_freq = 1 / base^(2i/d), the angle position * inv_freq, and cos and sin;
// at angle 10⁴ that rounding alone is 5e-4, so a table computed in float64
// would not be the same model.
func ropeTable(d DType, theta float64, position, headDim int) (cos, sin []float64) {
	cos, sin = make([]float64, headDim), make([]float64, headDim)
	half := headDim / 2
	for i := range half {
		var c, s float64
		if d == Float32 {
			exponent := float32(2*i) / float32(headDim)
			// torch raises a Python float, taken as float32, to a float32 power.
			inv := 1 / float32(math.Pow(float64(float32(theta)), float64(exponent)))
			angle := float32(position) * inv
			c = float64(float32(math.Cos(float64(angle))))
			s = float64(float32(math.Sin(float64(angle))))
		} else {
			angle := float64(position) * math.Pow(theta, -float64(2*i)/float64(headDim))
			c, s = math.Cos(angle), math.Sin(angle)
		}
		cos[i], cos[i+half] = c, c
		sin[i], sin[i+half] = s, s
	}
	return cos, sin
}

// rotary is one pair of tables inside a graph, each [T, 1, headDim].
type rotary struct{ cos, sin *graph.Node }

// rotate applies the tables to x [T, heads, headDim].
func (r rotary) rotate(x *graph.Node) *graph.Node {
	d := x.Shape().Dimensions[2]
	first := graph.Slice(x, graph.AxisRange(), graph.AxisRange(), graph.AxisRange(0, d/2))
	second := graph.Slice(x, graph.AxisRange(), graph.AxisRange(), graph.AxisRange(d/2, d))
	turned := graph.Concatenate([]*graph.Node{graph.Neg(second), first}, -1)
	return graph.Add(graph.Mul(x, r.cos), graph.Mul(turned, r.sin))
}
