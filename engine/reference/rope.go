package reference

import (
	"cmp"
	"math"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/plumbline-go/plumbline/engine"
)

// ropeSpec is a rotary embedding: its base, the dimension of the heads, or of
// their part that has one, how many of its pairs turn and what divides the
// frequencies.
type ropeSpec struct {
	theta      float64
	dim, pairs int
	factor     float64
	yarn       engine.Yarn
	// single is true where cos and sin are float32 in bfloat16 too.
	single bool
}

// ropeOf is the rotary embedding of a layer.
func ropeOf(a engine.Arch, layer int) ropeSpec {
	l := a.PerLayer[layer]
	dim := cmp.Or(l.RotaryDim, a.Latent.RopeDim, a.HeadDimOf(layer))
	return ropeSpec{l.RopeTheta, dim, cmp.Or(l.RopePairs, dim/2), cmp.Or(l.RopeFactor, 1), l.Yarn, a.Latent.KVRank > 0}
}

// ropeTable returns cos and sin of the rotary embedding for one position, dim
// values each, the second half repeating the first (Su et al. 2021,
// arXiv:2104.09864, in the half-split layout of Qwen2RotaryEmbedding). Pairs that
// don't turn have 1 and 0.
//
// In float32 every intermediate is rounded where transformers rounds it:
// inv_freq = 1 / base^(2i/d), the angle position * inv_freq, and cos and sin;
// at angle 10⁴ that rounding alone is 5e-4, so a table computed in float64
// would not be the same model. In bfloat16 the same cos and sin are rounded again.
func ropeTable(d DType, spec ropeSpec, position int) (cos, sin []float64) {
	cos, sin = make([]float64, spec.dim), make([]float64, spec.dim)
	half := spec.dim / 2
	for i := range half {
		c, s := 1.0, 0.0
		switch {
		case i >= spec.pairs:
		case d != Float64:
			exponent := float32(2*i) / float32(spec.dim)
			// torch raises a Python float, taken as float32, to a float32 power.
			power := float32(math.Pow(float64(float32(spec.theta)), float64(exponent)))
			inv := 1 / power / float32(spec.factor)
			if spec.yarn.Factor > 0 {
				inv = float32(yarnFrequency(d, spec, i, float64(power)))
			}
			angle := float32(position) * inv
			c, s = float64(float32(math.Cos(float64(angle)))), float64(float32(math.Sin(float64(angle))))
		default:
			angle := float64(position) * math.Pow(spec.theta, -float64(2*i)/float64(spec.dim)) / spec.factor
			if spec.yarn.Factor > 0 {
				angle = float64(position) * yarnFrequency(d, spec, i, math.Pow(spec.theta, float64(2*i)/float64(spec.dim)))
			}
			c, s = math.Cos(angle), math.Sin(angle)
		}
		if f := spec.yarn.TableFactor; f != 0 {
			c, s = d.times(c, f), d.times(s, f)
		}
		if !spec.single {
			c, s = d.rounder().value(c), d.rounder().value(s)
		}
		cos[i], cos[i+half] = c, c
		sin[i], sin[i+half] = s, s
	}
	return cos, sin
}

// rotary is one pair of tables inside a graph, each [T, 1, headDim].
type rotary struct{ cos, sin *graph.Node }

// rotate applies tables to x [T, heads, headDim]. Products and their sum are held
// in the engine's dtype.
func (r rounder) rotate(t rotary, x *graph.Node) *graph.Node {
	d := x.Shape().Dimensions[2]
	first := graph.Slice(x, graph.AxisRange(), graph.AxisRange(), graph.AxisRange(0, d/2))
	second := graph.Slice(x, graph.AxisRange(), graph.AxisRange(), graph.AxisRange(d/2, d))
	turned := graph.Concatenate([]*graph.Node{graph.Neg(second), first}, -1)
	return r.add(r.mul(x, t.cos), r.mul(turned, t.sin))
}
