package conformance

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden/trace"
)

// logs are logits whose softmax is in proportion to xs.
func logs(xs ...float64) []float64 {
	out := make([]float64, len(xs))
	for i, x := range xs {
		out[i] = math.Log(x)
	}
	return out
}

func TestChoices(t *testing.T) {
	greedy := engine.Experts{Count: 4, PerToken: 2, Gate: engine.Gate{Scoring: engine.ScoringSoftmax, Scale: 1}}
	groups := engine.Experts{Count: 4, PerToken: 1, Gate: engine.Gate{Scoring: engine.ScoringSoftmax, Groups: 2, TopGroups: 1, Scale: 1}}
	sigmoid := engine.Experts{Count: 4, PerToken: 1, Gate: engine.Gate{Scoring: engine.ScoringSigmoid, Groups: 2, TopGroups: 1, Scale: 1}}
	nan := math.NaN()
	for name, c := range map[string]struct {
		x            engine.Experts
		logits, bias []float64
		noise        float64
		want, got    []int
		class        trace.RouteClass
	}{
		"the same, in another order":               {greedy, logs(4, 3, 2, 1), nil, 0, []int{0, 1}, []int{1, 0}, trace.RouteMatch},
		"the next, where nothing is off":           {greedy, logs(4, 3, 2, 1), nil, 0, []int{0, 1}, []int{0, 2}, trace.RouteFlip},
		"the next, within what logits are off by":  {greedy, logs(4, 3, 2, 1), nil, math.Log(1.5)/math.Sqrt2 + 1e-9, []int{0, 1}, []int{0, 2}, trace.RouteTie},
		"the next, just beyond it":                 {greedy, logs(4, 3, 2, 1), nil, math.Log(1.3) / math.Sqrt2, []int{0, 1}, []int{0, 2}, trace.RouteFlip},
		"a far one":                                {greedy, logs(4, 3, 2, 1), nil, math.Log(1.5) / math.Sqrt2, []int{0, 1}, []int{0, 3}, trace.RouteFlip},
		"equal scores":                             {greedy, logs(4, 2, 2, 1), nil, 0, []int{0, 1}, []int{0, 2}, trace.RouteTie},
		"equal scores, recorded the other way":     {greedy, logs(4, 2, 2, 1), nil, 0, []int{0, 2}, []int{0, 1}, trace.RouteTie},
		"equal scores, both recorded so":           {greedy, logs(4, 2, 2, 1), nil, 0, []int{0, 2}, []int{2, 0}, trace.RouteMatch},
		"one too few":                              {greedy, logs(4, 3, 2, 1), nil, 1, []int{0, 1}, []int{0}, trace.RouteFlip},
		"none":                                     {greedy, logs(4, 3, 2, 1), nil, 1, []int{0, 1}, nil, trace.RouteFlip},
		"an expert that isn't there":               {greedy, logs(4, 3, 2, 1), nil, 1, []int{0, 1}, []int{0, 4}, trace.RouteUnjudged},
		"a record that contradicts its logits":     {greedy, logs(4, 3, 2, 1), nil, 0, []int{0, 3}, []int{0, 3}, trace.RouteUnjudged},
		"no number":                                {greedy, []float64{nan, 0, 0, 0}, nil, 0, []int{0, 1}, []int{0, 1}, trace.RouteUnjudged},
		"no number, in groups":                     {groups, []float64{nan, 0, 0, 0}, nil, 0, []int{0}, []int{0}, trace.RouteUnjudged},
		"the best group":                           {groups, logs(4, 1, 3, 2), nil, 0, []int{0}, []int{0}, trace.RouteMatch},
		"another group":                            {groups, logs(4, 1, 3, 2), nil, 0, []int{0}, []int{2}, trace.RouteFlip},
		"another group that ties":                  {groups, logs(4, 1, 4, 2), nil, 0, []int{0}, []int{2}, trace.RouteTie},
		"another expert of a group that ties":      {groups, logs(4, 1, 4, 2), nil, 0, []int{0}, []int{3}, trace.RouteFlip},
		"negative scores":                          {sigmoid, []float64{0, 0, 1, 2}, []float64{-3, -3, -3, -3}, 0, []int{3}, []int{3}, trace.RouteMatch},
		"negative scores, and a group that is out": {sigmoid, []float64{0, 0, 1, 2}, []float64{-3, -3, -3, -3}, 0, []int{3}, []int{0}, trace.RouteFlip},
		"groups by the sum of their best two":      {sigmoid, []float64{9, -9, 1, 1}, []float64{0, 0, 0, 0}, 0, []int{2}, []int{3}, trace.RouteTie},
	} {
		t.Run(name, func(t *testing.T) {
			v := choiceOf(c.x, c.logits, c.bias, c.noise, trace.Float32, "a test").judge(c.want, c.got)
			require.Equal(t, c.class, v.Class, "%+v", v)
		})
	}
}

// TestScoreNoise: what moves logits by less moves differences of scores by less, and
// nearly as much does not.
func TestScoreNoise(t *testing.T) {
	for _, g := range []engine.Gate{{Scoring: engine.ScoringSoftmax}, {Scoring: engine.ScoringSigmoid}} {
		logits, bias := []float64{0.3, 0.3, -1, 0.1}, []float64{0, 0, 0, 0}
		const noise = 0.01 // of the difference of the first two
		moved := []float64{logits[0] + noise/2, logits[1] - noise/2, logits[2], logits[3]}
		s := selectionScores(g, moved, bias)
		limit := scoreNoise(g, s[1], noise)
		require.LessOrEqual(t, s[0]-s[1], limit*(1+1e-12), g.Scoring)
		require.Greater(t, s[0]-s[1], 0.9*limit, g.Scoring)
	}
}

// TestMostMismatches: the last count that the calibration's rate allows.
func TestMostMismatches(t *testing.T) {
	calibration := trace.RouteTally{NearTies: 100, NearMismatches: 10}
	x := mostMismatches(100, calibration, 1e-6)
	at := func(n int) float64 {
		t := trace.RouteTally{NearTies: 100, NearMismatches: n}
		return t.Excess(calibration)
	}
	require.GreaterOrEqual(t, at(x), 1e-6)
	require.Less(t, at(x+1), 1e-6)
	require.Zero(t, mostMismatches(0, calibration, 1e-6))
	require.Equal(t, 7, mostMismatches(7, trace.RouteTally{}, 1e-6), "nothing to compare with")
}

// TestPairErrors: between each expert that is chosen and each that isn't.
func TestPairErrors(t *testing.T) {
	want, yard := []float64{3, 2, 1, 0}, []float64{3.5, 2, 1, -1}
	require.ElementsMatch(t, []float64{0.5, 1.5, 0, 1}, pairErrors([]float64{.6, .3, .1, 0}, want, yard, 2))
	require.ElementsMatch(t, []float64{0.5, 0}, pairErrors([]float64{.6, .3, .1, math.Inf(-1)}, want, yard, 2), "a masked expert is no choice")
	require.Empty(t, pairErrors([]float64{.6, .3, .1, 0}, want, []float64{1, 2, 3, math.NaN()}, 2))
	require.Empty(t, pairErrors([]float64{.6, .3, .1, 0}, want, nil, 2))
}

// TestExpertWeights: values that can be worked out on paper.
func TestExpertWeights(t *testing.T) {
	x := engine.Experts{Count: 4, PerToken: 2, Gate: engine.Gate{Scoring: engine.ScoringSoftmax, Scale: 16}}
	require.InDeltaSlice(t, []float64{8, 4}, expertWeights(x, logs(1, 2, 4, 1), []int{2, 1}), 1e-12)
	x.Gate.Normalise = true
	require.InDeltaSlice(t, []float64{2. / 3, 1. / 3}, expertWeights(x, logs(1, 2, 4, 1), []int{2, 1}), 1e-12, "normalised, and then not scaled")
	require.InDeltaSlice(t, []float64{8}, expertWeights(x, logs(1, 2, 4, 1), []int{2}), 1e-12, "one is not normalised")
	x.Gate.Scoring = engine.ScoringSigmoid
	require.InDeltaSlice(t, []float64{6. / 10 * 16, 4. / 10 * 16}, expertWeights(x, []float64{0, 0, 0, math.Log(3)}, []int{3, 2}), 1e-12)
}
