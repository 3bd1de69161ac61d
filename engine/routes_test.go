package engine_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
)

// routedTiny has a router in its second layer, and shared experts in the third.
func routedTiny() engine.Arch {
	a := engine.Arch{Family: "deepseek_v2", Layers: 3, Hidden: 24, Heads: 4, KVHeads: 4, HeadDim: 8, Vocab: 50,
		Latent: engine.Latent{KVRank: 6, RopeDim: 4, ValueDim: 5}, PerLayer: make([]engine.LayerParams, 3)}
	a.PerLayer[1].Experts = engine.Experts{Count: 7, PerToken: 3}
	a.PerLayer[2].Experts = engine.Experts{Count: 9, PerToken: 2, Shared: 1}
	return a
}

func TestPlacesOfARoutedModel(t *testing.T) {
	a := routedTiny()
	for name, width := range map[engine.Probe]int{
		"blocks.0.q": 32, "blocks.0.k_rope": 32, "blocks.0.v": 20, "blocks.1.attn_out": 20, "blocks.1.mlp_out": 24,
		"blocks.1.router_logits": 7, "blocks.1.router_scores": 7, "blocks.1.route_ids": 3, "blocks.2.route_weights": 2, "blocks.2.shared_out": 24,
	} {
		got, err := name.Width(a)
		require.NoError(t, err, name)
		require.Equal(t, width, got, name)
	}
	for name, why := range map[engine.Probe]string{"blocks.0.route_ids": "the layer has no router", "blocks.0.shared_out": "the layer has no router",
		"blocks.1.shared_out": "the layer has no shared experts"} {
		_, err := name.Width(a)
		var unsupported *engine.UnsupportedError
		require.ErrorAs(t, err, &unsupported, name)
		require.Equal(t, why, unsupported.Why)
	}
	all := engine.Probes(a)
	require.Len(t, all, 3*10+2*4+1+3)
	require.Contains(t, all, engine.Probe("blocks.1.router_scores"))
	require.NotContains(t, all, engine.Probe("blocks.1.shared_out"))
	require.Contains(t, all, engine.Probe("blocks.2.shared_out"))
}

func TestRoutesOfProbes(t *testing.T) {
	a := routedTiny()
	values := engine.ProbeValues{
		"blocks.1.route_ids":     {Rows: 2, Width: 3, Data: []float32{6, 0, 2, 1, 2, 3}},
		"blocks.1.route_weights": {Rows: 2, Width: 3, Data: []float32{0.5, 0.25, 0.125, 1, 2, 3}},
		"blocks.2.route_weights": {Rows: 2, Width: 2, Data: []float32{0.5, 0.25, 1, 2}}, // without ids
		"blocks.0.route_ids":     {Rows: 2, Width: 1, Data: []float32{0, 0}},            // of a layer without a router
	}
	r, err := engine.RoutesOf(values, a, true)
	require.NoError(t, err)
	require.Equal(t, engine.Routes{1: {IDs: [][]int{{6, 0, 2}, {1, 2, 3}}, Weights: [][]float64{{0.5, 0.25, 0.125}, {1, 2, 3}}}}, r)
	require.NoError(t, r.Check(a))
	r, err = engine.RoutesOf(values, a, false)
	require.NoError(t, err)
	require.Nil(t, r[1].Weights)
	ids, weights := r[1].At(1)
	require.Equal(t, []int{1, 2, 3}, ids)
	require.Nil(t, weights)
	for _, pos := range []int{-1, 2} {
		ids, _ = r[1].At(pos)
		require.Nil(t, ids)
	}

	for what, edit := range map[string]func(){
		"layer 1: position 1: got expert 2.5, want a whole number": func() {
			values["blocks.1.route_ids"] = engine.Matrix{Rows: 2, Width: 3, Data: []float32{6, 0, 2, 1, 2.5, 3}}
		},
		"layer 1: got weights of 1 positions of 3, want 2 of 3, as the ids": func() {
			values["blocks.1.route_weights"] = engine.Matrix{Rows: 1, Width: 3, Data: []float32{1, 2, 3}}
		},
		"got no route_ids of a layer with a router": func() { delete(values, "blocks.1.route_ids") },
	} {
		before := engine.ProbeValues{}
		for k, v := range values {
			before[k] = v
		}
		edit()
		_, err = engine.RoutesOf(values, a, true)
		require.ErrorContains(t, err, what)
		values = before
	}
}

func TestMargins(t *testing.T) {
	none := math.Inf(-1)
	r := engine.Routing{
		Scores: [][]float64{{0.1, 0.7, 0.2, 0.4}, {0.3, 0.3, 0.3, 0.1}, {-1, none, -3, none}, {1, 2, none, none}, {1, 2, 3, 4}},
		IDs:    [][]int{{1, 3}, {0, 1}, {0}, {1, 0}, {3, 2, 1, 0}},
	}
	require.InDeltaSlice(t, []float64{0.2, 0, 2}, r.Margins()[:3], 1e-15)
	require.Equal(t, []float64{math.Inf(1), math.Inf(1)}, r.Margins()[3:])
}

func ExampleRoutes() {
	a := engine.Arch{Layers: 2, PerLayer: []engine.LayerParams{{}, {Experts: engine.Experts{Count: 8, PerToken: 2}}}}
	r := engine.Routes{1: {IDs: [][]int{{5, 2}, nil, {0, 8}}}} // position 1 is left to the router
	fmt.Println(r.Check(a))
	// Output: engine: routes: layer 1: position 2: got expert 8, want 0 to 7
}
