package reference

import (
	"math"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/plumbline-go/plumbline/engine"
)

// yarnRamp is where YaRN's ramp begins and ends, in pairs of a head of dimension
// dim: the pairs that turn BetaFast and BetaSlow times within the original
// positions, rounded outwards.
func yarnRamp(y engine.Yarn, theta float64, dim int) (low, high float64) {
	at := func(turns float64) float64 {
		return float64(dim) * math.Log(float64(y.Original)/(turns*2*math.Pi)) / (2 * math.Log(theta))
	}
	low, high = max(math.Floor(at(y.BetaFast)), 0), min(math.Ceil(at(y.BetaSlow)), float64(dim-1))
	if low == high {
		high += 0.001
	}
	return low, high
}

// yarnFrequency is the frequency of pair i: between that of the plain rotary
// embedding and the same over Factor. In float32 every intermediate is rounded
// where transformers rounds it; plain is base^(2i/d), rounded then.
func yarnFrequency(d DType, spec ropeSpec, i int, plain float64) float64 {
	low, high := yarnRamp(spec.yarn, spec.theta, spec.dim)
	if d == Float64 {
		stays := 1 - min(max((float64(i)-low)/(high-low), 0), 1)
		return (1-stays)/(spec.yarn.Factor*plain) + stays/plain
	}
	ramp := min(max((float32(i)-float32(low))/float32(high-low), 0), 1)
	stays := 1 - ramp
	stretched, kept := 1/(float32(spec.yarn.Factor)*float32(plain)), 1/float32(plain)
	// Products of float32 are rounded one by one: Go may fuse them otherwise.
	return float64(float32(stretched*(1-stays)) + float32(kept*stays))
}

// rotatePairs is rotate for heads whose rotary pairs are neighbours, 2i and 2i+1,
// as DeepSeek's checkpoints have them. Pairs are complex numbers of float32 there,
// so that the result alone is held in the engine's dtype.
func (r rounder) rotatePairs(t rotary, x *graph.Node) *graph.Node {
	dims := x.Shape().Dimensions
	half := dims[2] / 2
	pairs := graph.Reshape(x, dims[0], dims[1], half, 2)
	first, second := lastAxis(pairs, 0, 1), lastAxis(pairs, 1, 2)
	table := func(x *graph.Node) *graph.Node {
		return graph.Reshape(lastAxis(x, 0, half), x.Shape().Dimensions[0], 1, half, 1)
	}
	cos, sin := table(t.cos), table(t.sin)
	return r.held(graph.Reshape(graph.Concatenate([]*graph.Node{
		graph.Sub(graph.Mul(first, cos), graph.Mul(second, sin)),
		graph.Add(graph.Mul(first, sin), graph.Mul(second, cos)),
	}, -1), dims...))
}
