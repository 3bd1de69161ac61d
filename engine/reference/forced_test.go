package reference_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
)

// someRoutes are other experts than a router would choose, with weights in one
// layer, and none at all in another; position 2 is left to the router.
func someRoutes(a engine.Arch, positions int, seed uint64) engine.Routes {
	rng := rand.New(rand.NewPCG(seed, 7))
	r := engine.Routes{}
	for layer := range a.Layers {
		x := a.PerLayer[layer].Experts
		if x.Count == 0 || layer == a.Layers-1 {
			continue
		}
		var l engine.LayerRoutes
		for pos := range positions {
			ids := rng.Perm(x.Count)[:x.PerToken]
			if pos == 2 {
				ids = nil
			}
			l.IDs = append(l.IDs, ids)
			if layer == 1 {
				var weights []float64
				for range ids {
					weights = append(weights, float64(float32(rng.Float64())))
				}
				l.Weights = append(l.Weights, weights)
			}
		}
		r[layer] = l
	}
	return r
}

func forced(t testing.TB, e *reference.Engine, routes ...engine.Routes) *reference.Engine {
	t.Helper()
	f, err := e.Forced(routes...)
	require.NoError(t, err)
	return f
}

// routesOf are those that an engine chooses by itself.
func routesOf(t testing.TB, e *reference.Engine, ids, output []int, weights bool) engine.Routes {
	t.Helper()
	var places []engine.Probe
	for n := range e.Weights().Arch().Layers {
		if e.Weights().Arch().RoutedAt(n) {
			places = append(places, engine.Block(n, engine.PartRouteIDs), engine.Block(n, engine.PartRouteWeights))
		}
	}
	r, err := engine.RoutesOf(engine.ProbeValues(probe(t, e, ids, output, places...)), e.Weights().Arch(), weights)
	require.NoError(t, err)
	return r
}

// TestForcedRoutesMatchNaiveLoops: every kind of run with given experts, in part
// with given weights, and left to the routers elsewhere.
func TestForcedRoutesMatchNaiveLoops(t *testing.T) {
	eachLatent(t, func(t *testing.T, m *latentModel) {
		a, n := m.w.arch, len(m.ids)
		routes, next := someRoutes(a, n+3, 1), []int{3, 49, 0}
		s := m.sequence
		s.forced = routes
		for _, plain := range m.engines() {
			e := forced(t, plain, routes)
			near := func(what string, got, want [][]float64) {
				t.Helper()
				m.near(t, plain, what, got, want)
			}
			want := s.rows(m.ids)
			require.Greater(t, relL2(want[a.Layers], m.rows(n)[a.Layers]), 0.1, "the routes change nothing")
			tr := capture(t, e, m.ids)
			near("capture", tr.Rows(), want)
			whole, err := e.CaptureWholeStep(bg, m.ids)
			require.NoError(t, err)
			require.True(t, sameBits(whole, tr.Rows()), "whole step")
			batched, err := e.CaptureBatched(bg, m.ids)
			require.NoError(t, err)
			near("batched", batched, want)
			for layer := range a.Layers {
				got, err := tr.Layer(bg, layer, tr.Rows()[layer])
				require.NoError(t, err)
				require.True(t, sameBits([][]float64{got}, tr.Rows()[layer+1:layer+2]), "layer %d", layer)
			}
			for _, chunk := range []int{0, 1, 4} {
				got := decode(t, e, m.ids, engine.DecodeOptions{Forced: next, Chunk: chunk})
				m.nearLogits(t, plain, fmt.Sprintf("chunk %d", chunk), got.Logits, s.decoded(m.ids, next))
			}
			places := s.places(append(m.ids[:n:n], next[:2]...))
			got := probe(t, e, m.ids, next, engine.Block(1, engine.PartRouteIDs), engine.Block(1, engine.PartRouteWeights), engine.Block(3, engine.PartRouteIDs))
			for p, v := range got {
				for pos, row := range places[p] {
					if _, part, _ := p.Block(); part == engine.PartRouteIDs {
						require.Equal(t, row, wide(v.Row(pos)), "%s at %d", p, pos)
					} else {
						require.LessOrEqual(t, relL2(wide(v.Row(pos)), row), m.allowed, "%s at %d", p, pos)
					}
				}
			}
			route, err := e.RouteRows(bg, 1, otherRows(4, a.Hidden, 1))
			require.NoError(t, err)
			for pos := range 4 {
				if ids, weights := routes[1].At(pos); ids != nil {
					require.Equal(t, ids, route.IDs[pos])
					require.Equal(t, weights, route.Weights[pos])
				}
			}
		}
	})
}

// TestForcedRoutesOfABatch: each sequence has its own, by its own positions.
func TestForcedRoutesOfABatch(t *testing.T) {
	eachLatent(t, func(t *testing.T, m *latentModel) {
		a := m.w.arch
		prompts, next := [][]int{m.ids[:5], m.ids, {7}}, [][]int{{1, 2}, {3, 4}, {5, 6}}
		routes := []engine.Routes{someRoutes(a, 7, 1), nil, someRoutes(a, 2, 3)}
		for _, plain := range m.engines() {
			e := forced(t, plain, routes...)
			for i, rows := range decodeBatch(t, e, prompts, next) {
				s := m.sequence
				s.forced = routes[i]
				m.nearLogits(t, plain, fmt.Sprintf("sequence %d", i), rows, s.decoded(prompts[i], next[i]))
			}
			err := e.TraceBatch(bg, prompts, 0, func(stage engine.Stage) error {
				if stage.Probe != engine.ResidPost(a.Layers-1) {
					return nil
				}
				for i, ids := range prompts {
					s := m.sequence
					s.forced, s.first = routes[i], len(m.ids)-len(ids)
					bound := 2 * step32
					if plain == m.single {
						bound = m.budget[a.Layers]
					}
					for pos, row := range s.places(ids)[stage.Probe] {
						if d := relL2(wide(stage.Rows.Row((i+1)*len(m.ids)-len(ids)+pos)), row); !(d <= bound) {
							t.Errorf("trace: sequence %d at %d: relative L2 %.3g, want at most %.3g", i, pos, d, bound)
						}
					}
				}
				return nil
			})
			require.NoError(t, err)
			_, err = e.DecodeBatch(bg, prompts[:2], next[:2])
			require.ErrorContains(t, err, "reference: batch: got routes of 3 sequences, want as many as prompts, 2")
		}
	})
}

// TestOwnRoutesChangeNothing: an engine that is given the experts it chose has the
// same bits, its float64 twin uses them too, and so does a view of a view.
func TestOwnRoutesChangeNothing(t *testing.T) {
	eachLatent(t, func(t *testing.T, m *latentModel) {
		own := routesOf(t, m.single, m.ids, nil, false)
		e := forced(t, forced(t, m.single, someRoutes(m.w.arch, 3, 9)), own)
		require.True(t, sameBits(capture(t, e, m.ids).Rows(), capture(t, m.single, m.ids).Rows()))
		got, err := e.CaptureBatched(bg, m.ids)
		require.NoError(t, err)
		want, err := m.single.CaptureBatched(bg, m.ids)
		require.NoError(t, err)
		require.True(t, sameBits(got, want))

		other := someRoutes(m.w.arch, len(m.ids), 2)
		double, err := forced(t, m.single, other).Float64()
		require.NoError(t, err)
		require.True(t, sameBits(capture(t, double, m.ids).Rows(), capture(t, forced(t, m.double, other), m.ids).Rows()))
		single, err := double.Float32()
		require.NoError(t, err)
		require.True(t, sameBits(capture(t, single, m.ids).Rows(), capture(t, forced(t, m.single, other), m.ids).Rows()))
		logits, err := forced(t, m.single, other).Logits(bg, m.rows(3)[2])
		require.NoError(t, err)
		clean, err := m.single.Logits(bg, m.rows(3)[2])
		require.NoError(t, err)
		require.Equal(t, clean, logits)
	})
}

// TestForcedRoutesIsolateASecondFault: a router with its rows in another order
// flips routes in layer 1, and a scaled down projection of an expert is wrong in
// layer 2. Alone the flip hides the second fault: all rows from layer 1 on are far
// off. With the clean side's routes the rows up to layer 1 agree, and the second
// fault shows where it is.
func TestForcedRoutesIsolateASecondFault(t *testing.T) {
	m := latentModels["softmax gates, YaRN"]()
	w := &memWeights{arch: m.w.arch, tensors: map[string]engine.Tensor{}}
	for name, x := range m.w.tensors {
		w.tensors[name] = x
	}
	plant := func(name string, f func(dst, src []float32)) {
		x := m.w.tensors[name]
		data := make([]float32, len(x.Data))
		f(data, x.Data)
		w.tensors[name] = engine.Tensor{Shape: x.Shape, Data: data}
	}
	plant("model.layers.1.mlp.gate.weight", func(dst, src []float32) {
		copy(dst[copy(dst, src[m.w.arch.Hidden:]):], src[:m.w.arch.Hidden])
	})
	for i := range m.w.arch.PerLayer[2].Experts.Count {
		plant(fmt.Sprintf("model.layers.2.mlp.experts.%d.down_proj.weight", i), func(dst, src []float32) {
			for i, v := range src {
				dst[i] = 1.1 * v
			}
		})
	}
	e, want := mustNew(t, w), m.rows(len(m.ids))
	flipped := capture(t, e, m.ids).Rows()
	require.LessOrEqual(t, relL2(flipped[1], want[1]), m.budget[1])
	for i := 2; i < len(want); i++ {
		require.Greater(t, relL2(flipped[i], want[i]), 10*m.budget[i], "row %d", i)
	}
	held := capture(t, forced(t, e, routesOf(t, m.single, m.ids, nil, true)), m.ids).Rows()
	for i := range 3 {
		require.LessOrEqual(t, relL2(held[i], want[i]), m.budget[i], "row %d", i)
	}
	require.Greater(t, relL2(held[3], want[3]), 10*m.budget[3])
	// Ids alone let the wrong router weigh them: its fault shows as one of weights.
	ids := capture(t, forced(t, e, routesOf(t, m.single, m.ids, nil, false)), m.ids).Rows()
	require.Greater(t, relL2(ids[2], want[2]), 10*m.budget[2])
}

func TestRoutesThatDoNotFitAreRefused(t *testing.T) {
	m := latentModels["softmax gates, YaRN"]()
	for what, c := range map[string]struct {
		r    engine.Routes
		want string
	}{
		"a dense layer":   {engine.Routes{0: {}}, "engine: routes: layer 0: got routes, want none: the model has no router there"},
		"no such layer":   {engine.Routes{4: {}}, "layer 4: got routes, want none"},
		"negative layer":  {engine.Routes{-1: {}}, "layer -1: got routes"},
		"too few":         {engine.Routes{1: {IDs: [][]int{nil, {1, 2, 3}}}}, "layer 1: position 1: got 3 experts, want 4"},
		"too many":        {engine.Routes{1: {IDs: [][]int{{1, 2, 3, 4, 5}}}}, "position 0: got 5 experts, want 4"},
		"unknown expert":  {engine.Routes{1: {IDs: [][]int{{1, 2, 3, 12}}}}, "position 0: got expert 12, want 0 to 11"},
		"negative expert": {engine.Routes{1: {IDs: [][]int{{1, 2, 3, -1}}}}, "got expert -1, want 0 to 11"},
		"twice":           {engine.Routes{1: {IDs: [][]int{{1, 2, 1, 3}}}}, "got expert 1 twice, want each once"},
		"weights short":   {engine.Routes{1: {IDs: [][]int{{1, 2, 3, 4}}, Weights: [][]float64{{1}}}}, "got 1 weights, want one per expert, 4, or none"},
		"weights alone":   {engine.Routes{1: {Weights: [][]float64{{1, 1, 1, 1}}}}, "got weights of 1 positions and ids of 0, want no weights without ids"},
		"no number":       {engine.Routes{1: {IDs: [][]int{{1, 2, 3, 4}}, Weights: [][]float64{{1, 1, math.NaN(), 1}}}}, "got weight NaN, want a finite value"},
	} {
		t.Run(what, func(t *testing.T) {
			_, err := m.single.Forced(engine.Routes{}, c.r)
			var bad *engine.RouteError
			require.ErrorAs(t, err, &bad)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "reference: routes 1 of 2")
		})
	}
	_, err := small().Forced(engine.Routes{0: {}})
	require.ErrorContains(t, err, "the model has no router there")
}
