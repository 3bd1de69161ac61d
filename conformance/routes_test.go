package conformance_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/mutant"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/fixtures"
	"github.com/plumbline-go/plumbline/golden"
	"github.com/plumbline-go/plumbline/golden/metric"
	"github.com/plumbline-go/plumbline/golden/trace"
)

// routedWeights is the embedded DeepSeek-V2.
var routedWeights = sync.OnceValues(func() (engine.Weights, error) {
	w, err := reference.LoadFS(fixtures.DeepSeek2Model(), ".")
	if err != nil {
		return nil, err
	}
	return engine.Resident(w), nil
})

// routedFault is a mutant planted at a layer.
type routedFault struct {
	mutant string
	layer  int
}

func routedEngine(t *testing.T, faults []routedFault, opts ...reference.Option) *reference.Engine {
	t.Helper()
	w, err := routedWeights()
	require.NoError(t, err)
	for _, f := range faults {
		m, err := mutant.Lookup(f.mutant)
		require.NoError(t, err)
		w, err = m.Weights(w, f.layer)
		require.NoError(t, err)
	}
	e, err := reference.New(w, opts...)
	require.NoError(t, err)
	return e
}

// routes is the embedded configuration with the first model alone, for an edit.
func routes(t *testing.T, edit func(m *conformance.RoutedModel)) conformance.Config {
	t.Helper()
	onlyOnEmbedded(t)
	cfg, err := embedded()
	require.NoError(t, err)
	m := cfg.Routes.Models[0]
	m.Candidate = nil
	edit(&m)
	cfg.Cases, cfg.Routes = cfg.Cases[:1], &conformance.Routes{Models: []conformance.RoutedModel{m}}
	return cfg
}

// judged is the one verdict of a check.
func judged(t *testing.T, cfg conformance.Config, id string) conformance.Result {
	t.Helper()
	cfg.Only = []string{id}
	rep, err := conformance.Evaluate(t.Context(), cfg)
	require.NoError(t, err)
	require.Len(t, rep.Checks, 1)
	return rep.Checks[0]
}

// outByLayer are the findings that are out of their bounds, by the layer of their place.
func outByLayer(r conformance.Result) map[int][]conformance.Finding {
	out := map[int][]conformance.Finding{}
	if r.Status != conformance.Fail {
		return out
	}
	for _, f := range r.Findings {
		if n, _, ok := f.Probe.Block(); ok {
			out[n] = append(out[n], f)
		}
	}
	return out
}

// TestRouteGolden: the reference's routers choose what transformers' did, but for
// experts that tie.
func TestRouteGolden(t *testing.T) {
	onlyOnEmbedded(t)
	holds(t, "RouteGolden", conformance.SideReference)
	// By hand: where the sets differ first, the experts exchanged have equal logits.
	e := routedEngine(t, nil)
	set, err := golden.DeepSeek2()
	require.NoError(t, err)
	c, err := set.Case("ties")
	require.NoError(t, err)
	var places []engine.Probe
	for n := 1; n < 27; n++ {
		places = append(places, engine.Block(n, engine.PartRouteIDs))
	}
	got, err := e.CaptureProbes(t.Context(), c.TokenIDs, c.ForcedIDs, places)
	require.NoError(t, err)
	exchanged := 0
	for n := 1; n <= 24; n++ { // whatever comes behind a tie has other inputs
		for pos, want := range c.Tensors[string(places[n-1])] {
			row := got[places[n-1]].Row(pos)
			var lacks, extra []float32
			for i := range want {
				if !slices.Contains(row, want[i]) {
					lacks = append(lacks, want[i])
				}
				if !slices.Contains(want, row[i]) {
					extra = append(extra, row[i])
				}
			}
			logits := c.Tensors[string(engine.Block(n, engine.PartRouterLogits))][pos]
			for i := range lacks {
				exchanged++
				require.Equal(t, 24, n, "position %d", pos)
				require.Len(t, lacks, 1)
				assert.Equal(t, logits[int(lacks[i])], logits[int(extra[i])], "position %d", pos)
			}
		}
	}
	assert.Positive(t, exchanged, "no tie: the case has no power")
}

// TestRouteGoldenStopsAtAFlip: what is behind another set of experts has other inputs
// and isn't judged, at the token from the next layer on, and one layer later at those
// that attend to it.
func TestRouteGoldenStopsAtAFlip(t *testing.T) {
	cfg := routes(t, func(m *conformance.RoutedModel) {
		m.Cases = []string{"clear"}
		m.Reference = routedEngine(t, []routedFault{{"router-rows-rotated", 12}, {"mlp-gain", 13}})
	})
	r := judged(t, cfg, "RouteGolden")
	bad := outByLayer(r)
	require.Len(t, bad, 1)
	require.Len(t, bad[12], 2)
	assert.Equal(t, engine.Block(12, engine.PartRouterLogits), bad[12][0].Probe)
	assert.Contains(t, bad[12][1].Detail, "FLIP")
}

// TestForcedRoutes: by the recorded routes the reference has the recorded rows, at
// every place; a fault beside a flip is found where it is, and a flip alone is none.
func TestForcedRoutes(t *testing.T) {
	onlyOnEmbedded(t)
	holds(t, "ForcedRoutes", conformance.SideReference)
	first := func(faults ...routedFault) (engine.Probe, conformance.Status) {
		r := judged(t, routes(t, func(m *conformance.RoutedModel) {
			m.Cases, m.Reference = []string{"clear"}, routedEngine(t, faults)
		}), "ForcedRoutes")
		return r.Findings[0].Probe, r.Status
	}
	_, status := first(routedFault{"router-rows-rotated", 12})
	assert.Equal(t, conformance.Pass, status)
	place, status := first(routedFault{"router-rows-rotated", 12}, routedFault{"mlp-gain", 13})
	assert.Equal(t, conformance.Fail, status)
	assert.Equal(t, engine.Block(13, engine.PartSharedOut), place)
	place, _ = first(routedFault{"router-rows-rotated", 12}, routedFault{"experts-permuted", 26})
	assert.Equal(t, engine.Block(26, engine.PartMLPOut), place)
	r := judged(t, routes(t, func(m *conformance.RoutedModel) {
		m.Cases, m.Reference = []string{"clear"}, routedEngine(t, []routedFault{{"top-k-minus-one", 13}})
	}), "ForcedRoutes")
	assert.Equal(t, conformance.Fail, r.Status)
	assert.Contains(t, r.Findings[0].Detail, "layer 13: position 0: got 6 experts, want 5")
}

// candidateOf has an engine's choices, in the cases of a model.
func candidateOf(e *reference.Engine, yard engine.Routed, parts ...engine.Part) *conformance.RoutedCandidate {
	return &conformance.RoutedCandidate{Name: "an engine", Routing: trace.Float32, Yardstick: yard,
		Places: func(ctx context.Context, _ string, c golden.TensorCase) (engine.ProbeSource, error) {
			var places []engine.Probe
			for n := 1; n < 27; n++ {
				for _, p := range parts {
					places = append(places, engine.Block(n, p))
				}
			}
			got, err := e.CaptureProbes(ctx, c.TokenIDs, c.ForcedIDs, places)
			return engine.ProbeValues(got), err
		}}
}

// TestRouteCandidate: transformers' own routes in bfloat16, and sound engines that round
// in other places, conform; ids alone do too.
func TestRouteCandidate(t *testing.T) {
	sweep(t)
	holds(t, "RouteCandidate", conformance.SideCandidate)
	bf16 := reference.WithDType(reference.BFloat16)
	eager, fused := routedEngine(t, nil, bf16), routedEngine(t, nil, bf16, reference.WithFusedAttention())
	both := []engine.Part{engine.PartRouteIDs, engine.PartRouteWeights}
	for name, c := range map[string]*conformance.RoutedCandidate{
		"fused":       candidateOf(fused, eager, both...),
		"eager":       candidateOf(eager, fused, both...),
		"float32":     candidateOf(routedEngine(t, nil), eager, both...),
		"without":     candidateOf(fused, eager, engine.PartRouteIDs),
		"its own":     candidateOf(eager, eager, both...),
		"unsound":     candidateOf(routedEngine(t, []routedFault{{"router-rows-rotated", 20}}, bf16), eager, both...),
		"nothing":     candidateOf(fused, eager, engine.PartRouteWeights),
		"one too few": candidateOf(routedEngine(t, []routedFault{{"top-k-minus-one", 20}}, bf16), eager, both...),
	} {
		t.Run(name, func(t *testing.T) {
			r := judged(t, routes(t, func(m *conformance.RoutedModel) { m.Cases, m.Candidate = []string{"clear"}, c }), "RouteCandidate")
			switch name {
			case "unsound":
				require.Equal(t, conformance.Fail, r.Status)
				bad := outByLayer(r)
				require.Len(t, bad, 1, "with its own choices forced no other layer is wrong")
				assert.Contains(t, bad[20][0].Detail, "FLIP")
			case "one too few":
				assert.Equal(t, conformance.KindFormat, r.Kind)
				assert.Equal(t, engine.Block(20, engine.PartRouteIDs), r.Findings[0].Probe)
			case "nothing":
				assert.Equal(t, conformance.Unsupported, r.Status)
			default:
				require.Equal(t, conformance.Pass, r.Status, "%v", r.Findings)
				weights := slices.ContainsFunc(r.Findings, func(f conformance.Finding) bool { return strings.HasSuffix(string(f.Probe), "route_weights") })
				assert.Equal(t, name != "without", weights)
			}
		})
	}
}

// TestNearTiesOfOneLayer: a router that prefers the next of two near scores in one layer
// is lost among the near ties of all, and found among its own.
func TestNearTiesOfOneLayer(t *testing.T) {
	sweep(t)
	cfg, err := embedded()
	require.NoError(t, err)
	cfg.Cases = cfg.Cases[:1]
	const layer = 18 // the one with the most near ties
	planted, err := cfg.Mutants(cfg, conformance.Control{Mutant: "near-ties-reversed-one-layer", Side: conformance.SideCandidate, Layer: layer})
	require.NoError(t, err)
	r := judged(t, planted, "RouteCandidate")
	require.Equal(t, conformance.Fail, r.Status)
	for _, f := range r.Findings {
		t.Logf("%s: %s: %v, limit %v: %s", f.Probe, f.Metric, f.Got, f.Limit.Value, f.Detail)
	}
	require.Len(t, r.Findings, 1)
	f := r.Findings[0]
	assert.Equal(t, engine.Block(layer, engine.PartRouteIDs), f.Probe)
	assert.Equal(t, "near ties of the layer that fall otherwise", f.Metric)
	assert.Greater(t, float64(f.Got), 2*float64(f.Limit.Value))
}

// TestRoutesThatNothingCanJudge are the run's error, or no pass.
func TestRoutesThatNothingCanJudge(t *testing.T) {
	onlyOnEmbedded(t)
	clear := func(m *conformance.RoutedModel) { m.Cases = []string{"clear"} }
	for what, c := range map[string]struct {
		edit func(m *conformance.RoutedModel)
		want string
	}{
		"no golden":    {func(m *conformance.RoutedModel) { m.Golden = nil }, "Config.Routes.Models[0]: got no Golden or no Reference, want both"},
		"no reference": {func(m *conformance.RoutedModel) { m.Reference = nil }, "got no Golden or no Reference"},
		"no router":    {func(m *conformance.RoutedModel) { m.Arch.PerLayer = m.Arch.PerLayer[:1] }, "Arch has no layer with a router"},
		"no bias":      {func(m *conformance.RoutedModel) { m.Arch = otherGate(m.Arch, engine.ScoringSigmoid) }, "layer 1: Bias: got 0 values, want 16"},
		"no places":    {func(m *conformance.RoutedModel) { m.Candidate = &conformance.RoutedCandidate{} }, "got a Candidate without Places or Yardstick"},
		"another top-k": {func(m *conformance.RoutedModel) {
			clear(m)
			m.Arch = m.Arch.Clone()
			m.Arch.PerLayer[3].Experts.PerToken = 5
		}, "blocks.3.route_ids: got no rows, or another width, want rows of 5"},
	} {
		cfg := routes(t, c.edit)
		cfg.Only = []string{"RouteGolden"}
		_, err := conformance.Evaluate(t.Context(), cfg)
		assert.ErrorContains(t, err, c.want, what)
	}
	r := judged(t, routes(t, func(m *conformance.RoutedModel) { m.Cases = []string{"none of these"} }), "RouteGolden")
	assert.Equal(t, conformance.Skip, r.Status)
	r = judged(t, routes(t, func(m *conformance.RoutedModel) { m.Cases = []string{"none of these"} }), "ForcedRoutes")
	assert.Equal(t, conformance.Skip, r.Status)
	r = judged(t, routes(t, clear), "RouteCandidate")
	assert.Equal(t, conformance.Skip, r.Status)
}

func otherGate(a engine.Arch, s engine.Scoring) engine.Arch {
	a = a.Clone()
	for n := range a.PerLayer {
		a.PerLayer[n].Experts.Gate.Scoring = s
	}
	return a
}

// tracedEmbedded is the embedded trace.
func tracedEmbedded(t *testing.T) (*conformance.Trace, *conformance.Traced) {
	t.Helper()
	onlyOnEmbedded(t)
	cfg, err := embedded()
	require.NoError(t, err)
	of, err := cfg.Trace.Open(t.Context())
	require.NoError(t, err)
	return cfg.Trace, of
}

// TestTraceShape: 27 layers, the embedding and the final norm, 26 gates, 8 conditions,
// 10 edges and 2 scopes, in every source.
func TestTraceShape(t *testing.T) {
	_, of := tracedEmbedded(t)
	holds(t, "TraceShape", conformance.SideCandidate)
	require.Len(t, of.Document.Traced, 2)
	for _, s := range of.Document.Traced {
		require.Len(t, s.Stages, 29)
		require.Len(t, s.Gates, 26)
		for i, g := range s.Gates {
			assert.Equal(t, i+1, g.Layer)
			require.Len(t, g.Conditions, 8)
			require.Len(t, g.Edges, 10)
			for _, c := range g.Conditions {
				require.Len(t, c, 2)
			}
		}
	}
}

// TestContentIdentity: the tokens compared are the same under all conditions.
func TestContentIdentity(t *testing.T) {
	_, of := tracedEmbedded(t)
	holds(t, "ContentIdentity", conformance.SideCandidate)
	for i, s := range of.Sources {
		var first []int
		for c, v := range s.Variants {
			var ids []int
			for _, p := range v.ContentPositions {
				ids = append(ids, v.TokenIDs[p])
			}
			if c == 0 {
				first = ids
			}
			require.Equal(t, first, ids)
			assert.Equal(t, v.BoundaryCrossing, of.Document.Traced[i].BoundaryCrossing[c])
		}
		assert.Equal(t, len(first), of.Document.Traced[i].ContentTokens)
	}
	assert.Equal(t, 1, of.Document.Traced[0].BoundaryCrossing[0])
}

// TestRouteStatistics: the loads of a gate and what follows from them, counted by hand.
func TestRouteStatistics(t *testing.T) {
	_, of := tracedEmbedded(t)
	holds(t, "RouteStatistics", conformance.SideCandidate)
	for gate := range 26 {
		r, ok := of.Sources[0].Recorded.Routes(gate, 4, 0)
		require.True(t, ok)
		got := of.Document.Traced[0].Gates[gate].Conditions[4][0]
		loads, most := make([]int64, 16), int64(0)
		for _, ids := range r.IDs {
			for _, id := range ids {
				loads[id]++
				most = max(most, loads[id])
			}
		}
		require.Equal(t, loads, got.Loads, "gate %d", gate)
		assert.InDelta(t, float64(most)/float64(6*len(r.IDs)), got.MaxShare, 1e-15)
		// An edge: shares of tokens with the same set, and its overlap.
		other, _ := of.Sources[0].Recorded.Routes(gate, 0, 0)
		edge, same, overlap := of.Document.Traced[0].Gates[gate].Edges[0], 0, 0.0
		for i, ids := range r.IDs {
			both := 0
			for _, id := range ids {
				if slices.Contains(other.IDs[i], id) {
					both++
				}
			}
			if both == 6 {
				same++
			}
			overlap += float64(both) / float64(12-both)
		}
		assert.Equal(t, same, edge.SetExact)
		assert.InDelta(t, overlap/float64(len(r.IDs)), edge.MeanJaccard, 1e-15)
	}
}

// TestTraceHashes: the hash of a place is that of its bytes.
func TestTraceHashes(t *testing.T) {
	_, of := tracedEmbedded(t)
	holds(t, "TraceHashes", conformance.SideCandidate)
	h, ok := of.Sources[1].Recorded.Hidden(28, 7, 1)
	require.True(t, ok)
	assert.Equal(t, hashByHand(fmt.Sprintf(`{"shape":[%d,48],"dtype":"torch.float32"}`, len(h.Rows)), h.Rows), of.Document.Traced[1].Stages[28].Conditions[7][1].SHA256)
	assert.Greater(t, metric.L2([]float64{float64(h.Rows[0][0])}), 0.0)
}

// TestTracesThatNothingCanJudge are the run's error, or no pass.
func TestTracesThatNothingCanJudge(t *testing.T) {
	whole, of := tracedEmbedded(t)
	cfg, err := embedded()
	require.NoError(t, err)
	cfg.Cases, cfg.Only = cfg.Cases[:1], []string{"TraceHashes"}
	cfg.Trace = &conformance.Trace{}
	_, err = conformance.Evaluate(t.Context(), cfg)
	require.ErrorContains(t, err, "Config.Trace: Open is nil")
	open := func(of *conformance.Traced, err error) conformance.Config {
		other := *whole
		other.Open = func(context.Context) (*conformance.Traced, error) { return of, err }
		cfg.Trace = &other
		return cfg
	}
	_, err = conformance.Evaluate(t.Context(), open(nil, fmt.Errorf("no such file")))
	require.ErrorContains(t, err, "conformance: trace: no such file")
	_, err = conformance.Evaluate(t.Context(), open(&conformance.Traced{}, nil))
	require.ErrorContains(t, err, "Open gave no document")
	bare := &conformance.Traced{Document: of.Document}
	for _, id := range []string{"TraceHashes", "ContentIdentity"} {
		assert.Equal(t, conformance.Skip, judged(t, open(bare, nil), id).Status, id)
	}
	assert.Equal(t, conformance.Pass, judged(t, open(bare, nil), "TraceShape").Status)
	few := *of.Document
	few.Traced = few.Traced[:1]
	assert.Equal(t, conformance.Fail, judged(t, open(&conformance.Traced{Document: &few, Sources: of.Sources}, nil), "ContentIdentity").Status)
	assert.Equal(t, conformance.Skip, judged(t, open(&conformance.Traced{Document: &few, Sources: of.Sources}, nil), "RouteStatistics").Status, "another shape says nothing of figures")
}
