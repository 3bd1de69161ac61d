package metric_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/golden/metric"
)

// route is one side of testdata/routes.json.
type route struct {
	IDs     [][]int
	Weights [][]float32
}

func (r *route) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&r.IDs, &r.Weights})
}

type routeRow struct {
	Experts      int
	A, B         route
	Distribution struct {
		Loads         []int64
		WeightedLoads []float64 `json:"weighted_loads"`
		Used          int
		CV            float64 `json:"cv"`
		Entropy       float64
		MaxShare      float64 `json:"max_share"`
	}
	Jaccard, TV []float64
	Same        []bool
	LoadTV      float64 `json:"load_tv"`
}

func routeRows(t *testing.T) []routeRow {
	data, err := os.ReadFile("testdata/routes.json")
	require.NoError(t, err)
	var file struct{ Rows []routeRow }
	require.NoError(t, json.Unmarshal(data, &file))
	require.Len(t, file.Rows, 8)
	return file.Rows
}

// near allows what n float64 additions of terms up to scale may lose.
func near(t *testing.T, what string, got, want, scale float64, n int) {
	t.Helper()
	if limit := float64(n+4) * 0x1p-52 * math.Max(1, scale); !(math.Abs(got-want) <= limit) {
		t.Errorf("%s: got %v, want %v within %g", what, got, want, limit)
	}
}

func TestRouteStatisticsEqualPython(t *testing.T) {
	for _, row := range routeRows(t) {
		d, n := row.Distribution, len(row.A.IDs)*row.Experts
		loads := metric.Loads(row.A.IDs, row.Experts)
		require.Equal(t, d.Loads, loads)
		require.Equal(t, d.Used, metric.UsedExperts(loads))
		require.Equal(t, int64(len(row.A.IDs)*len(row.A.IDs[0])), metric.Decisions(loads))
		for e, w := range metric.WeightedLoads(row.A.IDs, row.A.Weights, row.Experts) {
			near(t, "weighted load", w, d.WeightedLoads[e], float64(len(row.A.IDs)), n)
		}
		near(t, "cv", metric.LoadCV(loads), d.CV, 1, row.Experts)
		near(t, "entropy", metric.LoadEntropy(loads), d.Entropy, 1, row.Experts)
		require.Equal(t, d.MaxShare, metric.MaxLoadShare(loads))
		near(t, "load tv", metric.LoadTV(loads, metric.Loads(row.B.IDs, row.Experts)), row.LoadTV, 1, row.Experts)
		for i := range row.A.IDs {
			require.Equal(t, row.Jaccard[i], metric.SetJaccard(row.A.IDs[i], row.B.IDs[i]))
			require.Equal(t, row.Same[i], metric.SameRoute(row.A.IDs[i], row.B.IDs[i]))
			near(t, "tv", metric.RouteTV(row.A.IDs[i], row.A.Weights[i], row.B.IDs[i], row.B.Weights[i]), row.TV[i], 1, 2*len(row.A.IDs[i]))
		}
	}
}

// Loads by hand: eight decisions, five on one expert of four.
func TestLoadsByHand(t *testing.T) {
	loads := []int64{5, 1, 2, 0}
	require.Equal(t, math.Sqrt((9+1+0+4)/4.)/2, metric.LoadCV(loads))
	require.Equal(t, 5./8, metric.MaxLoadShare(loads))
	want := -(5./8*math.Log2(5./8) + 1./8*math.Log2(1./8) + 2./8*math.Log2(2./8)) / 2
	near(t, "entropy", metric.LoadEntropy(loads), want, 1, 4)
	require.Equal(t, 1., metric.LoadEntropy([]int64{3, 3, 3, 3}))
	for _, f := range []func([]int64) float64{metric.LoadCV, metric.LoadEntropy, metric.MaxLoadShare} {
		require.Zero(t, f([]int64{0, 0}))
	}
	require.Zero(t, metric.LoadEntropy([]int64{7, 0}))
	require.True(t, math.IsNaN(metric.LoadEntropy([]int64{7})))
	require.Equal(t, 1., metric.LoadTV([]int64{4, 0}, []int64{0, 2}))
	require.Equal(t, .5, metric.LoadTV([]int64{4, 0}, []int64{0, 0}))
}

// A route is a set: neither a part of one nor one with an id twice is the same.
func TestSameRoute(t *testing.T) {
	for _, c := range []struct {
		a, b []int
		want bool
	}{
		{[]int{1, 2}, []int{2, 1}, true},
		{[]int{1, 2}, []int{1, 3}, false},
		{[]int{1, 2}, []int{1}, false},
		{[]int{1, 1}, []int{1, 2}, false},
		{[]int{1, 2}, []int{1, 1}, false},
	} {
		require.Equal(t, c.want, metric.SameRoute(c.a, c.b), "%v %v", c.a, c.b)
	}
}

func TestRouteMargin(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		scores []float64
		k      int
		want   float64
	}{
		{[]float64{1, 8, 4, 2}, 1, 4},
		{[]float64{1, 8, 4, 2}, 2, 2},
		{[]float64{1, 8, 4, 2}, 3, 1},
		{[]float64{1, 8, 4, 2}, 4, inf},
		{[]float64{3, 3, 3}, 2, 0},
		{[]float64{-1, -3, -inf, -inf}, 2, inf}, // the others are masked
		{[]float64{-1, -inf, -inf, -inf}, 2, 0}, // so is one of the chosen
		{[]float64{-1, -3, -2, -7}, 3, 4},       // negative scores
		{[]float64{1, nan, 4, 2}, 2, nan},
		{[]float64{1, nan}, 2, nan},
		{[]float64{1, 2}, 0, nan},
	} {
		got := metric.RouteMargin(c.scores, c.k)
		require.True(t, got == c.want || got != got && c.want != c.want, "%v k=%d: got %v, want %v", c.scores, c.k, got, c.want)
	}
}

func TestRouteGap(t *testing.T) {
	scores := []float64{9, 7, 6.5, 2, 1}
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		want, got []int
		gap       float64
	}{
		{[]int{0, 1}, []int{1, 0}, 0},
		{[]int{0, 1}, []int{0, 2}, .5},  // the margin
		{[]int{0, 1}, []int{1, 2}, 2.5}, // the best one is gone
		{[]int{0, 1}, []int{3, 4}, 8},   // the best one left out, the worst one taken
		{[]int{0, 1}, []int{0}, inf},    // one too few
		{[]int{0, 1}, []int{0, 0}, inf},
		{[]int{0, 1}, []int{0, 1, 2}, inf}, // one too many
	} {
		require.Equal(t, c.gap, metric.RouteGap(scores, c.want, c.got), "%v", c.got)
	}
	require.Zero(t, metric.RouteGap([]float64{2, 2, 2}, []int{0}, []int{2}))
	require.True(t, math.IsNaN(metric.RouteGap([]float64{1, nan}, []int{0}, []int{0})))
}

func TestRoutesOfDifferentLengthsPanic(t *testing.T) {
	for _, f := range []func(){
		func() { metric.WeightedLoads([][]int{{0}}, nil, 2) },
		func() { metric.WeightedLoads([][]int{{0}}, [][]float32{{1, 2}}, 2) },
		func() { metric.LoadTV([]int64{1}, []int64{1, 2}) },
		func() { metric.RouteTV([]int{1}, nil, nil, nil) },
		func() { metric.RouteTV(nil, nil, []int{1}, nil) },
	} {
		func() {
			defer func() { require.IsType(t, &metric.LengthError{}, recover()) }()
			f()
		}()
	}
}
