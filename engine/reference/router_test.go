package reference_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
)

func newEngine(w engine.Weights, opts ...reference.Option) (*reference.Engine, error) {
	return reference.New(w, opts...)
}

// gates are those of published configs, shrunk, and corners.
var gates = map[string]engine.Experts{
	"V2-Lite":          {Count: 16, PerToken: 6, Gate: engine.Gate{Scoring: engine.ScoringSoftmax, Scale: 1}},
	"V2":               {Count: 16, PerToken: 6, Gate: engine.Gate{Scoring: engine.ScoringSoftmax, Groups: 8, TopGroups: 3, Scale: 16}},
	"normalised":       {Count: 16, PerToken: 6, Gate: engine.Gate{Scoring: engine.ScoringSoftmax, Normalise: true, Scale: 16}},
	"V3":               {Count: 16, PerToken: 4, Gate: engine.Gate{Scoring: engine.ScoringSigmoid, Groups: 4, TopGroups: 2, Normalise: true, Scale: 2.5}},
	"V3, plain":        {Count: 16, PerToken: 4, Gate: engine.Gate{Scoring: engine.ScoringSigmoid, Scale: 2.5}},
	"one of one":       {Count: 1, PerToken: 1, Gate: engine.Gate{Scoring: engine.ScoringSoftmax, Normalise: true, Scale: 3}},
	"one of many":      {Count: 9, PerToken: 1, Gate: engine.Gate{Scoring: engine.ScoringSoftmax, Normalise: true, Scale: 3}},
	"all":              {Count: 5, PerToken: 5, Gate: engine.Gate{Scoring: engine.ScoringSoftmax, Scale: 1}},
	"mask 0":           {Count: 16, PerToken: 4, Gate: engine.Gate{Scoring: engine.ScoringSigmoid, Groups: 4, TopGroups: 2, Normalise: true, Scale: 2.5, Fault: engine.GateMaskZero}},
	"last wins":        {Count: 16, PerToken: 6, Gate: engine.Gate{Scoring: engine.ScoringSoftmax, Scale: 1, Fault: engine.GateLastWins}},
	"softmax of top-k": {Count: 16, PerToken: 6, Gate: engine.Gate{Scoring: engine.ScoringSoftmax, Scale: 1, Fault: engine.GateSoftmaxChosen}},
}

// biasOf has all scores of a sigmoid gate negative: with 0 in the place of -Inf the
// groups that are out would win.
func biasOf(x engine.Experts, rng *rand.Rand) (bias []float32) {
	if x.Gate.Scoring != engine.ScoringSigmoid {
		return nil
	}
	for range x.Count {
		bias = append(bias, float32(-2-rng.Float64()))
	}
	return bias
}

func TestRouterMatchesNaiveLoops(t *testing.T) {
	for name, x := range gates {
		t.Run(name, func(t *testing.T) {
			const hidden, rows = 12, 40
			rng := rand.New(rand.NewPCG(5, 6))
			projection := engine.Tensor{Shape: []int{x.Count, hidden}, Data: make([]float32, x.Count*hidden)}
			for i := range projection.Data {
				projection.Data[i] = float32(rng.NormFloat64() / 2)
			}
			bias := biasOf(x, rng)
			m := naive{}
			var in, logits [][]float64
			for i := range rows {
				row := make([]float64, hidden)
				for j := range row {
					row[j] = rng.NormFloat64()
				}
				in = append(in, row)
				l := m.mul(widened(projection.Data), row, nil)
				if i%2 == 1 { // exact ties
					for j := range l {
						l[j] = math.Round(l[j])
					}
				}
				logits = append(logits, l)
			}
			for _, side := range []struct {
				d     reference.DType
				bound float64
			}{{reference.Float64, 1e-14}, {reference.Float32, 16 * step32}} {
				r, err := reference.NewRouter(x, projection, bias, reference.WithDType(side.d))
				require.NoError(t, err)
				fromLogits, err := r.RouteLogits(bg, logits)
				require.NoError(t, err)
				fromRows, err := r.Route(bg, in)
				require.NoError(t, err)
				for i := range rows {
					scores, ids, weights := naiveGate(x, logits[i], widened(bias), nil)
					require.Equal(t, ids, fromLogits.IDs[i], "row %d", i)
					require.LessOrEqual(t, relL2(finite(fromLogits.Scores[i]), finite(scores)), side.bound, "row %d", i)
					require.LessOrEqual(t, relL2(fromLogits.Weights[i], weights), side.bound, "row %d", i)
					if i%2 == 0 {
						require.Equal(t, ids, fromRows.IDs[i], "row %d", i)
						require.LessOrEqual(t, relL2(fromRows.Logits[i], logits[i]), 4*side.bound, "row %d", i)
						require.LessOrEqual(t, relL2(fromRows.Weights[i], weights), 8*side.bound, "row %d", i)
					}
				}
			}
		})
	}
}

// TestGatesByHand: values that can be worked out on paper.
func TestGatesByHand(t *testing.T) {
	for _, c := range []struct {
		name    string
		x       engine.Experts
		bias    []float32
		logits  []float64
		ids     []int
		weights []float64
	}{
		{"softmax over all, none of it divided out", engine.Experts{Count: 4, PerToken: 2, Gate: engine.Gate{Scoring: engine.ScoringSoftmax, Scale: 1}}, nil,
			[]float64{0, math.Log(2), math.Log(4), 0}, []int{2, 1}, []float64{0.5, 0.25}},
		{"scaled", engine.Experts{Count: 4, PerToken: 2, Gate: engine.Gate{Scoring: engine.ScoringSoftmax, Scale: 16}}, nil,
			[]float64{0, math.Log(2), math.Log(4), 0}, []int{2, 1}, []float64{8, 4}},
		{"normalised, and then not scaled", engine.Experts{Count: 4, PerToken: 2, Gate: engine.Gate{Scoring: engine.ScoringSoftmax, Normalise: true, Scale: 16}}, nil,
			[]float64{0, math.Log(2), math.Log(4), 0}, []int{2, 1}, []float64{2. / 3, 1. / 3}},
		{"a group counts by its best", engine.Experts{Count: 4, PerToken: 2, Gate: engine.Gate{Scoring: engine.ScoringSoftmax, Groups: 2, TopGroups: 1, Scale: 1}}, nil,
			[]float64{math.Log(3), math.Log(3), math.Log(9), 0}, []int{2, 3}, []float64{9. / 16, 1. / 16}},
		{"lowest of equals", engine.Experts{Count: 5, PerToken: 3, Gate: engine.Gate{Scoring: engine.ScoringSoftmax, Normalise: true, Scale: 1}}, nil,
			[]float64{1, 1, 1, 1, 1}, []int{0, 1, 2}, []float64{1. / 3, 1. / 3, 1. / 3}},
		{"the bias chooses and doesn't weigh", engine.Experts{Count: 4, PerToken: 1, Gate: engine.Gate{Scoring: engine.ScoringSigmoid, Scale: 2}}, []float32{0, 0, 0, 1},
			[]float64{0, 3, 0, math.Log(3)}, []int{3}, []float64{1.5}},
		{"a group counts by its best two", engine.Experts{Count: 6, PerToken: 1, Gate: engine.Gate{Scoring: engine.ScoringSigmoid, Groups: 2, TopGroups: 1, Normalise: true, Scale: 1}}, []float32{0, 0, 0, 0, 0, 0},
			[]float64{math.Log(9), -50, -50, 0, 0, -50}, []int{3}, []float64{0.5}},
		{"negative scores stay in the best group", engine.Experts{Count: 4, PerToken: 2, Gate: engine.Gate{Scoring: engine.ScoringSigmoid, Groups: 2, TopGroups: 1, Normalise: true, Scale: 1}}, []float32{-3, -3, -2, -2},
			[]float64{0, 0, 0, math.Log(3)}, []int{3, 2}, []float64{0.6, 0.4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			projection := engine.Tensor{Shape: []int{c.x.Count, 1}, Data: make([]float32, c.x.Count)}
			r, err := reference.NewRouter(c.x, projection, c.bias, reference.WithDType(reference.Float64))
			require.NoError(t, err)
			got, err := r.RouteLogits(bg, [][]float64{c.logits})
			require.NoError(t, err)
			require.Equal(t, [][]int{c.ids}, got.IDs)
			require.LessOrEqual(t, relL2(got.Weights[0], c.weights), 1e-14)
			if c.x.Gate.Groups > 0 && c.x.Gate.Scoring == engine.ScoringSigmoid {
				require.True(t, math.IsInf(got.Scores[0][0], -1))
				c.x.Gate.Fault = engine.GateMaskZero // control: the groups that are out have no positive score
				r, err = reference.NewRouter(c.x, projection, c.bias)
				require.NoError(t, err)
				got, err = r.RouteLogits(bg, [][]float64{c.logits})
				require.NoError(t, err)
				require.Equal(t, c.bias[0] < 0, c.ids[0] != got.IDs[0][0])
			}
		})
	}
}

func TestRouterRefusals(t *testing.T) {
	projection := engine.Tensor{Shape: []int{16, 2}, Data: make([]float32, 32)}
	for what, c := range map[string]struct {
		edit func(x *engine.Experts)
		p    engine.Tensor
		bias int
		want string
	}{
		"no experts":       {func(x *engine.Experts) { x.Count = 0 }, projection, 0, "experts: got 0 of width 1"},
		"top-k":            {func(x *engine.Experts) { x.PerToken = 17 }, projection, 0, "got 17 per token, want 1 to the 16 that can be chosen"},
		"top-k of groups":  {func(x *engine.Experts) { x.Gate.Groups, x.Gate.TopGroups = 8, 2 }, projection, 0, "got 6 per token, want 1 to the 4 that can be chosen"},
		"groups":           {func(x *engine.Experts) { x.Gate.Groups, x.Gate.TopGroups = 5, 2 }, projection, 0, "got the best 2 of 5 groups of 16 experts"},
		"more than groups": {func(x *engine.Experts) { x.Gate.Groups, x.Gate.TopGroups = 4, 5 }, projection, 0, "got the best 5 of 4 groups"},
		"groups of one": {func(x *engine.Experts) {
			x.Gate.Scoring, x.Gate.Groups, x.Gate.TopGroups = engine.ScoringSigmoid, 16, 8
		}, projection, 16, "got groups of 1, want at least 2"},
		"scoring": {func(x *engine.Experts) { x.Gate.Scoring = "tanh" }, projection, 0, `got scoring "tanh"`},
		"scale":   {func(x *engine.Experts) { x.Gate.Scale = math.Inf(1) }, projection, 0, "got scale +Inf"},
		"shape":   {func(*engine.Experts) {}, engine.Tensor{Shape: []int{2, 16}, Data: make([]float32, 32)}, 0, "got 32 values of shape [2 16], want shape [16, hidden]"},
		"values":  {func(*engine.Experts) {}, engine.Tensor{Shape: []int{16, 2}, Data: make([]float32, 31)}, 0, "got 31 values"},
		"a bias":  {func(*engine.Experts) {}, projection, 16, "bias: got 16 values, want 0"},
		"no bias": {func(x *engine.Experts) { x.Gate.Scoring = engine.ScoringSigmoid }, projection, 0, "bias: got 0 values, want 16"},
	} {
		x := gates["V2-Lite"]
		c.edit(&x)
		_, err := reference.NewRouter(x, c.p, make([]float32, c.bias))
		var bad *engine.ConfigError
		require.ErrorAs(t, err, &bad, what)
		require.ErrorContains(t, err, c.want, what)
	}
	r, err := reference.NewRouter(gates["V2-Lite"], projection, nil)
	require.NoError(t, err)
	_, err = r.Route(bg, nil)
	require.ErrorContains(t, err, "reference: router: got no rows, want at least 1")
	_, err = r.Route(bg, [][]float64{{1, 2}, {1}})
	require.ErrorContains(t, err, "reference: router: row 1: got 1 elements, want 2")
	_, err = r.RouteLogits(bg, [][]float64{{1, 2}})
	require.ErrorContains(t, err, "row 0: got 2 elements, want 16")
}

func ExampleRouter() {
	x := engine.Experts{Count: 4, PerToken: 2, Gate: engine.Gate{Scoring: engine.ScoringSoftmax, Scale: 1}}
	projection := engine.Tensor{Shape: []int{4, 1}, Data: []float32{0, 1, 2, 1}}
	r, err := reference.NewRouter(x, projection, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	got, err := r.Route(context.Background(), [][]float64{{1}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%v %.3f\n", got.IDs, got.Weights)
	// Output: [[2 1]] [[0.534 0.197]]
}
