package conformance

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/plumbline-go/plumbline/engine"
)

func TestMeasureLeavesOutPositionZero(t *testing.T) {
	want := [][]float64{{300, 400}, {0, 5}, {6, 8}}
	rows := [][]float64{{0, 0}, {0, 5.5}, {6.6, 8.8}} // errors 500, 0.5 and 1
	yard := [][]float64{{300, 400}, {0.25, 5}, {6, 8.5}}
	m := layerTruth{}.measure(rows, want, yard, nil, want, 3)
	// sqrt(0.5² + 1²) / sqrt(5² + 10²), and half of it
	assert.InDelta(t, 0.1, m.All.Got, 1e-12)
	assert.InDelta(t, 0.05, m.All.Yard, 1e-12)
	assert.InDelta(t, 2, m.All.Ratio(), 1e-12)
	assert.InDeltaSlice(t, []float64{1, 0.1, 0.1}, []float64{m.At[0].Got, m.At[1].Got, m.At[2].Got}, 1e-12)
	assert.Equal(t, worstRatio, m.At[0].Ratio(), "a yardstick without an error allows none")
	at, _ := m.worst()
	assert.Equal(t, 0, at)
	assert.Equal(t, 0, m.first(2.5), "position 0 is judged by itself")

	one := layerTruth{}.measure(rows, want, yard, nil, want, 1)
	assert.InDelta(t, 1, one.All.Got, 1e-12, "position 0 alone is all there is")

	from := [][]float64{{0, 0}, {0, 4}, {6, 6}} // updates 1 and 2
	m = layerTruth{}.measure(rows, want, yard, from, want, 3)
	assert.InDelta(t, math.Sqrt(1.25/5), m.All.Got, 1e-12, "as a share of the update")

	m = layerTruth{floor: 0.1}.measure(rows, want, yard, from, want, 3)
	// 0.1 of rows of 5 and 10, as a share of the updates
	assert.InDelta(t, math.Sqrt(1.25/5), m.All.Yard, 1e-12, "no yardstick is better than its floor")

	m = layerTruth{}.measure(rows, want, yard, want, want, 3)
	assert.InDelta(t, 2, m.At[1].Ratio(), 1e-12, "nothing to take a share of: the ratio still stands")
	assert.InDelta(t, 2, m.All.Ratio(), 1e-12)
}

func TestFirstAndWorstPosition(t *testing.T) {
	at := func(ratios ...float64) PositionMeasure {
		var m PositionMeasure
		for _, r := range ratios {
			m.At = append(m.At, Measure{Got: r, Yard: 1, Missing: r < 0})
		}
		return m
	}
	m := at(1, 1.1, 3, 9, 2)
	assert.Equal(t, 2, m.first(2.5))
	assert.Equal(t, -1, m.first(9))
	worst, r := m.worst()
	assert.Equal(t, 3, worst)
	assert.InDelta(t, 9, r, 0)
	assert.Equal(t, 1, at(1, math.NaN()).first(1e9), "NaN is over every bound")
	worst, _ = at().worst()
	assert.Equal(t, -1, worst)
	assert.False(t, at().measured())
}

// TestUpstream: what a place is computed from, by hand from the model's equations.
func TestUpstream(t *testing.T) {
	const norm, q, k, v, qr, kr, attn, mlp = engine.PartAttnNorm, engine.PartQ, engine.PartK, engine.PartV,
		engine.PartQRope, engine.PartKRope, engine.PartAttnOut, engine.PartMLPOut
	type parts []engine.Part
	before := parts{norm, q, k, v, qr, kr}
	for _, tc := range []struct {
		part        engine.Part
		whole, half parts // with the MLP half fed by the layer, and by the candidate
	}{
		{norm, nil, nil},
		{q, parts{norm}, parts{norm}},
		{k, parts{norm}, parts{norm}},
		{v, parts{norm}, parts{norm}},
		{qr, parts{norm, q}, parts{norm, q}},
		{kr, parts{norm, k}, parts{norm, k}},
		{attn, before, before},
		{engine.PartResidMid, append(slices.Clone(before), attn), append(slices.Clone(before), attn)},
		{mlp, append(slices.Clone(before), attn), nil},
		{engine.PartResidPost, append(slices.Clone(before), attn, mlp), parts{mlp}},
	} {
		assert.ElementsMatch(t, tc.whole, upstream(tc.part, false), tc.part)
		assert.ElementsMatch(t, tc.half, upstream(tc.part, true), "%s behind the candidate's own resid_mid", tc.part)
		for _, p := range upstream(tc.part, false) {
			assert.Less(t, slices.Index(engine.Parts(), p), slices.Index(engine.Parts(), tc.part), "%s is computed before %s", p, tc.part)
		}
	}
}

func TestBoundsFollowTheLevelOfAllLayers(t *testing.T) {
	level := func(x float64, unknown string, positions int) (pooled, single float64) {
		p := &ProbeProfile{Positions: positions, Factors: DefaultBudgets().OwnRowsScaled, SchemeUnknown: unknown}
		b := p.boundsOf([]float64{x, x, x, x, 50, unmeasured}, DefaultBudgets())
		return b.pooled.Value / p.Factors.Median.Value, b.single.Value / p.Factors.Single.Value
	}
	for _, tc := range []struct {
		name        string
		all, factor float64
		unknown     string
	}{
		{"a better engine is not held to its own level", 0.5, 1, ""},
		{"all layers a little worse", 1.2, 1.2, ""},
		{"all layers far worse are not sound", 3, DefaultBudgets().Level.Value, ""},
		{"of an unknown arithmetic the level says nothing", 3, 3, "no yardstick"},
	} {
		pooled, single := level(tc.all, tc.unknown, 20)
		assert.InDelta(t, tc.factor, pooled, 1e-12, tc.name)
		assert.InDelta(t, tc.factor, single, 1e-12, tc.name)
	}
	p := &ProbeProfile{Positions: minGainPositions, Factors: DefaultBudgets().OwnRowsScaled}
	b := p.boundsOf([]float64{1, 1}, DefaultBudgets())
	assert.Equal(t, b.single, b.pooled, "few positions are bounded as one")
}
