package trace

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/golden"
)

var (
	inf = math.Inf(1)
	// six experts, two chosen: 0 and 1, with 2 close behind.
	scores = []float64{0.5, 0.25, 0.25 - 0x1p-11, 0.125, 0.0625, 0.0625}
)

func TestJudgeRoute(t *testing.T) {
	narrow, wide := TieBand{Routing: Float32}, TieBand{Routing: BFloat16}
	for name, c := range map[string]struct {
		got    []int
		band   TieBand
		class  RouteClass
		gap    float64
		nearly bool
	}{
		"same":                          {[]int{0, 1}, narrow, RouteMatch, 0, false},
		"same, in another order":        {[]int{1, 0}, narrow, RouteMatch, 0, false},
		"the next one, float32":         {[]int{0, 2}, narrow, RouteFlip, 0x1p-11, false},
		"the next one, bfloat16":        {[]int{2, 0}, wide, RouteTie, 0x1p-11, true},
		"a far one, bfloat16":           {[]int{0, 5}, wide, RouteFlip, 0.1875, true},
		"the best one lost, bfloat16":   {[]int{1, 2}, wide, RouteFlip, 0.25 + 0x1p-11, true},
		"one fewer":                     {[]int{0}, wide, RouteFlip, inf, true},
		"one twice":                     {[]int{0, 0}, wide, RouteFlip, inf, true},
		"one more":                      {[]int{0, 1, 2}, wide, RouteFlip, inf, true},
		"within what was measured":      {[]int{0, 3}, TieBand{Float32, golden.Of(0.0625, 2, "s", "w")}, RouteTie, 0.125, true},
		"just beyond what was measured": {[]int{0, 3}, TieBand{Float32, golden.Of(0.0625, 1.99, "s", "w")}, RouteFlip, 0.125, true},
	} {
		t.Run(name, func(t *testing.T) {
			v := JudgeRoute(scores, []int{0, 1}, c.got, c.band)
			require.Equal(t, c.class, v.Class)
			require.Equal(t, c.gap, v.Gap)
			require.Equal(t, 0x1p-11, v.Margin)
			require.Equal(t, c.nearly, v.NearTie())
		})
	}
	v := JudgeRoute(scores, []int{0, 1}, []int{5, 1}, wide)
	require.Equal(t, []int{0}, v.Missing)
	require.Equal(t, []int{5}, v.Extra)
}

// TestNearTieAtTheBand: a margin as wide as the band is a near tie, and a set that needs
// just the band a tie; the next smaller band has neither.
func TestNearTieAtTheBand(t *testing.T) {
	for _, c := range []struct {
		band   float64
		nearly bool
		class  RouteClass
	}{{0x1p-11, true, RouteTie}, {math.Nextafter(0x1p-11, 0), false, RouteFlip}, {math.Nextafter(0x1p-11, 1), true, RouteTie}} {
		v := JudgeRoute(scores, []int{0, 1}, []int{0, 2}, TieBand{Float32, golden.Of(c.band, 1, "s", "w")})
		require.Equal(t, []float64{0x1p-11, c.band}, []float64{v.Margin, v.Band})
		require.Equal(t, c.nearly, v.NearTie(), "band %v", c.band)
		require.Equal(t, c.class, v.Class, "band %v", c.band)
		var tally RouteTally
		tally.Add(v)
		require.Equal(t, c.nearly, tally.NearTies == 1)
	}
	require.True(t, RouteVerdict{}.NearTie(), "equal scores")
}

// TestJudgeRouteWithoutAReference: nothing follows from scores that aren't numbers,
// or a reference that isn't their top.
func TestJudgeRouteWithoutAReference(t *testing.T) {
	band := TieBand{Routing: Float32}
	for name, c := range map[string]struct {
		scores    []float64
		want, got []int
	}{
		"NaN":                 {[]float64{1, math.NaN(), 0}, []int{0, 2}, []int{0, 2}},
		"not the top":         {scores, []int{0, 3}, []int{0, 3}},
		"an unknown expert":   {scores, []int{0, 1}, []int{0, 6}},
		"a negative expert":   {scores, []int{-1, 1}, []int{0, 1}},
		"more than there are": {[]float64{1, 2}, []int{0, 1, 2}, []int{0, 1, 2}},
		"none":                {scores, nil, nil},
	} {
		require.Equal(t, RouteUnjudged, JudgeRoute(c.scores, c.want, c.got, band).Class, name)
	}
	// Of equal scores either is the reference's top.
	v := JudgeRoute([]float64{1, 1, 0}, []int{1}, []int{0}, band)
	require.Equal(t, RouteTie, v.Class)
	require.Zero(t, v.Margin)
	// All experts chosen: no margin, and nothing else to choose.
	v = JudgeRoute([]float64{1, 2}, []int{0, 1}, []int{1, 0}, band)
	require.Equal(t, RouteMatch, v.Class)
	require.Equal(t, inf, v.Margin)
	require.False(t, v.NearTie())
	// Negative scores, some groups masked: a masked expert is a flip.
	v = JudgeRoute([]float64{-1, -2, -inf, -inf}, []int{0, 1}, []int{0, 2}, TieBand{BFloat16, golden.Of(1, 1, "s", "w")})
	require.Equal(t, RouteFlip, v.Class)
	// Two masked ones are as good as each other.
	v = JudgeRoute([]float64{-1, -inf, -inf}, []int{0, 1}, []int{0, 2}, band)
	require.Equal(t, RouteTie, v.Class)
}

func TestTally(t *testing.T) {
	var tally RouteTally
	for _, got := range [][]int{{0, 1}, {1, 0}, {0, 2}, {0, 5}} {
		tally.Add(JudgeRoute(scores, []int{0, 1}, got, TieBand{Routing: BFloat16}))
	}
	tally.Add(JudgeRoute(scores, []int{0, 1}, []int{0, 1}, TieBand{Routing: Float32})) // no near tie
	tally.Add(JudgeRoute([]float64{1, 2}, []int{0, 1}, []int{0, 1}, TieBand{Routing: Float32}))
	tally.Add(JudgeRoute([]float64{1, 1, 0}, []int{0}, []int{0}, TieBand{Routing: Float32}))
	tally.Add(RouteVerdict{Class: RouteUnjudged})
	require.Equal(t, []int{5, 1, 1, 1}, []int{tally.Match, tally.Tie, tally.Flip, tally.Unjudged})
	require.Equal(t, []int{5, 2, 7}, []int{tally.NearTies, tally.NearMismatches, tally.Judged()})
	require.Equal(t, 0.4, tally.NearTieRate())
	require.Equal(t, []int{1, 1, 5}, []int{tally.Margins.Zero, tally.Margins.Without, tally.Margins.Bins[63-11]})
	from, to := tally.Margins.Bounds(63 - 11)
	require.Equal(t, []float64{0x1p-11, 0x1p-10}, []float64{from, to})
	var h MarginHistogram
	for _, m := range []float64{1e-300, 7, 1, 0.99} {
		h.add(m)
	}
	require.Equal(t, []int{1, 2, 1}, []int{h.Bins[0], h.Bins[63], h.Bins[62]})

	m := NewFlipMap(Standard(), smallShape())
	m.Cells[1][7].Merge(tally)
	m.Cells[0][0].Merge(tally)
	total := m.Total()
	require.Equal(t, []int{10, 2, 2, 2, 10, 4}, []int{total.Match, total.Tie, total.Flip, total.Unjudged, total.NearTies, total.NearMismatches})
	require.Equal(t, []int{2, 2, 10}, []int{total.Margins.Zero, total.Margins.Without, total.Margins.Bins[52]})
}

// TestExcess: from binomials as integers, sum of C(bad, i) C(all-bad, n-i) / C(all, n).
func TestExcess(t *testing.T) {
	for _, c := range []struct {
		x, n, calX, calN int
		want             float64
	}{
		{3, 10, 2, 40, 0.0482603031962091},
		{0, 10, 2, 40, 1},
		{50, 100, 5, 100, 1.0363906602545069e-13},
		{1, 1, 0, 9, 0.1},
		{10, 10, 10, 10, 1},
	} {
		a := RouteTally{NearTies: c.n, NearMismatches: c.x}
		got := a.Excess(RouteTally{NearTies: c.calN, NearMismatches: c.calX})
		require.InEpsilon(t, c.want, got, 1e-9, "%+v", c)
	}
	some := RouteTally{NearTies: 3}
	require.True(t, math.IsNaN(some.Excess(RouteTally{})))
	require.True(t, math.IsNaN(new(RouteTally).Excess(some)))
	require.True(t, math.IsNaN(new(RouteTally).NearTieRate()))
}

// TestFront: a mismatch at layer 4, token 2, then an earlier one further back.
func TestFront(t *testing.T) {
	f := NewFront(5)
	require.True(t, f.JudgesRow(99, 4) && f.JudgesRoute(99, 4))
	f.Mismatch(4, 2)
	for token, first := range []int{99, 99, 4, 5, 5} { // the first row that isn't judged
		require.True(t, f.JudgesRow(first-1, token))
		require.Equal(t, first == 99, f.JudgesRow(first, token), "token %d", token)
	}
	for token, first := range []int{99, 99, 5, 5, 5} { // the first route
		require.True(t, f.JudgesRoute(first-1, token))
		require.Equal(t, first == 99, f.JudgesRoute(first, token), "token %d", token)
	}
	f.Mismatch(3, 4)
	require.False(t, f.JudgesRow(3, 4))
	require.True(t, f.JudgesRow(4, 3))
	require.True(t, f.JudgesRoute(3, 4))
	require.False(t, f.JudgesRoute(4, 4))
	f.Mismatch(6, 0) // behind the front of most
	require.Equal(t, []bool{false, true, true}, []bool{f.JudgesRow(6, 0), f.JudgesRow(6, 1), f.JudgesRow(3, 2)})
	require.False(t, f.JudgesRow(7, 1))
}
