package conformance_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden"
)

// marginsOfRun is what a report says of routers, by set and router.
func marginsOfRun(t *testing.T, only string, edit func(m *conformance.RoutedModel)) map[[2]string]conformance.RouteMargins {
	t.Helper()
	cfg := routes(t, func(m *conformance.RoutedModel) {
		m.Cases = []string{"clear"}
		edit(m)
	})
	cfg.Only = []string{only}
	rep, err := conformance.Evaluate(t.Context(), cfg)
	require.NoError(t, err)
	require.NotEmpty(t, rep.RouteMargins)
	require.Equal(t, "*", rep.RouteMargins[0].Router, "all together come first")
	out := map[[2]string]conformance.RouteMargins{}
	for _, m := range rep.RouteMargins {
		out[[2]string{m.Name, m.Router}] = m
	}
	require.Len(t, out, len(rep.RouteMargins))
	return out
}

func countOf(bins []int) int {
	n := 0
	for _, b := range bins {
		n += b
	}
	return n
}

// softmaxMargins are the sixth largest share of a softmax minus the seventh, of each
// recorded row of a router, straight from the formula.
func softmaxMargins(t *testing.T, layer int) []float64 {
	t.Helper()
	set, err := golden.DeepSeek2()
	require.NoError(t, err)
	c, err := set.Case("clear")
	require.NoError(t, err)
	var out []float64
	for _, logits := range c.Tensors[string(engine.Block(layer, engine.PartRouterLogits))] {
		sum := 0.0
		for _, x := range logits {
			sum += math.Exp(float64(x))
		}
		var shares []float64
		for _, x := range logits {
			shares = append(shares, math.Exp(float64(x))/sum)
		}
		slices.Sort(shares)
		out = append(out, shares[len(shares)-6]-shares[len(shares)-7])
	}
	require.NotEmpty(t, out)
	return out
}

// inBins counts values between edges, those outside at the ends.
func inBins(edges []conformance.Number, values []float64) []int {
	out := make([]int, len(edges)-1)
	for _, v := range values {
		bin := 0
		for bin < len(out)-1 && v >= float64(edges[bin+1]) {
			bin++
		}
		out[bin]++
	}
	return out
}

// TestRouteMargins: the histogram of a router is that of the margins of the recorded
// logits, and all routers together are the sum.
func TestRouteMargins(t *testing.T) {
	got := marginsOfRun(t, "RouteGolden", func(*conformance.RoutedModel) {})
	const set = "deepseek2-seeded"
	var all []float64
	bands := 0
	for n := 1; n < 27; n++ {
		m := got[[2]string{set, string(engine.Block(n, engine.PartRouteIDs))}]
		want := softmaxMargins(t, n)
		all = append(all, want...)
		assert.Equal(t, inBins(m.Edges, want), m.Match, "layer %d", n)
		assert.Zero(t, countOf(m.Tie)+countOf(m.Flip)+m.Unjudged, "layer %d", n)
		if band := float64(m.Band); band > 0 && band < 1e-3 {
			bands++
		}
	}
	assert.Equal(t, 26, bands, "float32 routers, far from a share of 1/16, have a narrow band")
	m := got[[2]string{set, "*"}]
	assert.Equal(t, inBins(m.Edges, all), m.Match)
	assert.Len(t, got, 27)
}

// TestRouteMarginsOfAFlip: a rotated router's rows are flips, and those behind it are
// counted and not judged.
func TestRouteMarginsOfAFlip(t *testing.T) {
	got := marginsOfRun(t, "RouteGolden", func(m *conformance.RoutedModel) {
		m.Reference = routedEngine(t, []routedFault{{"router-rows-rotated", 12}})
	})
	at := func(n int) conformance.RouteMargins {
		return got[[2]string{"deepseek2-seeded", string(engine.Block(n, engine.PartRouteIDs))}]
	}
	rows := len(softmaxMargins(t, 12))
	assert.Equal(t, rows, countOf(at(11).Match))
	assert.Greater(t, countOf(at(12).Flip), rows/2)
	assert.Positive(t, at(13).Unjudged)
	assert.Equal(t, rows, countOf(at(13).Match)+countOf(at(13).Flip)+countOf(at(13).Tie)+at(13).Unjudged)
}

// TestRouteMarginsOfACandidate: an engine beside itself has the reference's margins.
func TestRouteMarginsOfACandidate(t *testing.T) {
	e := routedEngine(t, nil)
	got := marginsOfRun(t, "RouteCandidate", func(m *conformance.RoutedModel) {
		m.Candidate = candidateOf(e, e, engine.PartRouteIDs)
	})
	m, ok := got[[2]string{"deepseek2-seeded, an engine", string(engine.Block(20, engine.PartRouteIDs))}]
	require.True(t, ok)
	assert.Equal(t, inBins(m.Edges, softmaxMargins(t, 20)), m.Match)
	assert.Zero(t, countOf(m.Flip)+m.Unjudged)
}
