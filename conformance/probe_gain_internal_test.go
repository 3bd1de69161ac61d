package conformance

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/plumbline-go/plumbline/engine"
)

// constructed data: so many positions of so many channels, for the regressions.
const (
	gainPositions = 24
	gainWidth     = 48
	noiseSize     = 0.001
)

func normals(rng *rand.Rand, size float64) [][]float64 {
	out := make([][]float64, gainPositions)
	for i := range out {
		out[i] = make([]float64, gainWidth)
		for j := range out[i] {
			out[i][j] = size * rng.NormFloat64()
		}
	}
	return out
}

// plus adds a*u to d in place, and returns d.
func plus(d [][]float64, a float64, u [][]float64) [][]float64 {
	for i := range d {
		for j := range d[i] {
			d[i][j] += a * u[i][j]
		}
	}
	return d
}

func TestGainOfAScaledUpdate(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	u := normals(rng, 1)
	g := gainOf(plus(normals(rng, noiseSize), 0.02, u), normals(rng, noiseSize), u)
	// The share of a position has a standard error of noiseSize/sqrt(gainWidth).
	assert.InDelta(t, 0.02, g.Got, noiseSize/2)
	assert.InDelta(t, 0, g.Yard, noiseSize/2)
}

// One position whose update is a hundred times the others' is one of many.
func TestGainIsNotThatOfOnePosition(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	u := normals(rng, 1)
	d := plus(normals(rng, noiseSize), 0.02, u)
	for j := range u[5] {
		u[5][j] *= 100
		d[5][j] = -u[5][j]
	}
	clear(u[6]) // a position without an update has no share
	assert.InDelta(t, 0.02, gainOf(d, normals(rng, noiseSize), u).Got, noiseSize/2)
}

func TestSurestChannel(t *testing.T) {
	for name, slope := range map[string]float64{"dead": -1, "flipped": -2, "doubled": 1} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(5, 6))
			u := normals(rng, 1)
			d := normals(rng, noiseSize)
			for i := range d {
				d[i][7] += slope * u[i][7]
			}
			g := gainOf(d, normals(rng, noiseSize), u)
			assert.Equal(t, 7, g.Channel)
			assert.InDelta(t, slope, g.Slope, noiseSize)
			assert.Equal(t, math.Signbit(slope), math.Signbit(g.T))
			// t is the slope over its standard error, about noiseSize/sqrt(gainPositions).
			want := math.Abs(slope) / noiseSize * math.Sqrt(gainPositions)
			assert.Greater(t, math.Abs(g.T), want/2)
			assert.Less(t, math.Abs(g.T), want*2)
			assert.Less(t, g.YardT, 6.0, "noise has the t-value of noise")
			assert.InDelta(t, slope/gainWidth, g.Got, 1.0/gainWidth, "one channel is no gain of the whole")
		})
	}
}

// t of the regression through the origin by hand: u = 1, 2, 3 and d = 1, 2, 4 give
// the slope 17/14 and the residual sum of squares 21 - 17²/14 = 5/14, so that
// t = (17/14) / sqrt(5/14/2/14) = 17*sqrt(2/5).
func TestSurestByHand(t *testing.T) {
	u := [][]float64{{0, 1}, {0, 2}, {0, 3}}
	d := [][]float64{{5, 1}, {6, 2}, {7, 4}}
	channel, slope, x := surest(d, u)
	assert.Equal(t, 1, channel, "a channel without an update has no slope")
	assert.InDelta(t, 17.0/14, slope, 1e-12)
	assert.InDelta(t, 17*math.Sqrt(2.0/5), x, 1e-9)

	_, slope, x = surest([][]float64{{-1}, {-2}, {-3}}, [][]float64{{1}, {2}, {3}})
	assert.InDelta(t, -1, slope, 1e-12)
	assert.Equal(t, -worstRatio, x, "all of the error follows the update")

	channel, slope, x = surest([][]float64{{0}, {0}}, [][]float64{{1}, {2}})
	assert.Equal(t, []float64{-1, 0, 0}, []float64{float64(channel), slope, x}, "no error, no channel")
}

func TestJointGains(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	attn := normals(rng, 1)
	mlp := plus(normals(rng, 1), 0.8, attn) // the two are far from orthogonal
	a, m := jointGains(plus(plus(normals(rng, 0), 0.03, attn), -0.5, mlp), attn, mlp)
	assert.InDelta(t, 0.03, a, 1e-12)
	assert.InDelta(t, -0.5, m, 1e-12)

	a, m = jointGains(plus(normals(rng, noiseSize), 0.02, mlp), attn, mlp)
	assert.InDelta(t, 0, a, noiseSize)
	assert.InDelta(t, 0.02, m, noiseSize)

	a, m = jointGains(mlp, attn, plus(normals(rng, 0), 2, attn))
	assert.Equal(t, []float64{0, 0}, []float64{a, m}, "two updates of one direction can't be told apart")
}

// layerOf is a layer whose halves add attn and mlp to its input rows.
func layerOf(in, attn, mlp [][]float64) engine.LayerRun {
	zeros := func() [][]float64 { return plus(normals(rand.New(rand.NewPCG(0, 0)), 0), 1, in) }
	mid := plus(zeros(), 1, attn)
	return engine.LayerRun{engine.PartResidMid: mid, engine.PartResidPost: plus(plus(zeros(), 1, attn), 1, mlp)}
}

func TestFitChargesTheHalves(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	in, attn, mlp := normals(rng, 1), normals(rng, 1), normals(rng, 1)
	want := layerOf(in, attn, mlp)
	noise := func() [][]float64 { return normals(rng, noiseSize) }
	yard := layerOf(in, plus(noise(), 1, attn), plus(noise(), 1, mlp))
	got := layerOf(in, attn, plus(noise(), 1.05, mlp))
	for i := range got[engine.PartResidPost][0] {
		got[engine.PartResidPost][0][i] += 1e6 // position 0 has no part in it
	}
	mid, post := got[engine.PartResidMid], got[engine.PartResidPost]

	l := LayerProbes{Gains: map[engine.Part]Gain{}}
	l.fit(map[engine.Part][][]float64{engine.PartResidMid: mid, engine.PartResidPost: post}, in, mid, want, yard, want, yard, gainPositions)
	assert.InDelta(t, 0, l.Gains[engine.PartResidMid].Got, noiseSize, "split")
	assert.InDelta(t, 0.05, l.Gains[engine.PartResidPost].Got, noiseSize, "split")

	l = LayerProbes{Gains: map[engine.Part]Gain{}}
	l.fit(map[engine.Part][][]float64{engine.PartResidPost: post}, in, nil, want, yard, want, yard, gainPositions)
	assert.InDelta(t, 0, l.Gains[engine.PartResidMid].Got, noiseSize, "the two halves together")
	assert.InDelta(t, 0.05, l.Gains[engine.PartResidPost].Got, noiseSize, "the two halves together")
	assert.InDelta(t, 0, l.Gains[engine.PartResidPost].Yard, 2*noiseSize)

	l = LayerProbes{Gains: map[engine.Part]Gain{}}
	few := engine.LayerRun{}
	for part, rows := range want {
		few[part] = rows[:minGainPositions]
	}
	l.fit(map[engine.Part][][]float64{engine.PartResidPost: post}, in, nil, few, yard, few, yard, minGainPositions)
	assert.Empty(t, l.Gains, "7 positions behind the first are too few")
	for i := 2; i < gainPositions; i++ {
		copy(want[engine.PartResidMid][i], want[engine.PartResidMid][1]) // one token, again and again
	}
	l.fit(map[engine.Part][][]float64{engine.PartResidPost: post}, in, nil, want, yard, want, yard, gainPositions)
	assert.Empty(t, l.Gains, "one row, again and again, is one")
}
