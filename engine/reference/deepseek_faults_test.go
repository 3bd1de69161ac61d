package reference_test

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/mutant"
)

// withTensors is the model with tensors replaced: edit gets a copy of each one whose
// name it is asked for.
func (w *memWeights) withTensors(names func(string) bool, edit func(name string, data []float32) []float32) *memWeights {
	out := &memWeights{arch: w.arch.Clone(), tensors: maps.Clone(w.tensors)}
	for name, x := range w.tensors {
		if names(name) {
			out.tensors[name] = engine.Tensor{Shape: x.Shape, Data: edit(name, append([]float32(nil), x.Data...))}
		}
	}
	return out
}

// withMutant is a model with a mutant at a layer.
func withMutant(t testing.TB, w engine.Weights, name string, layer int) engine.Weights {
	t.Helper()
	m, err := mutant.Lookup(name)
	require.NoError(t, err)
	out, err := m.Weights(w, layer)
	require.NoError(t, err)
	return out
}

// TestRouteMutants: each mutant gives the rows of the naive loops with the same
// fault, in all incremental and batched runs alike, leaves the rows before it
// alone, and misses the budget of those behind it by more than ten times.
func TestRouteMutants(t *testing.T) {
	sweep(t)
	for model, faults := range map[string]map[string][]int{
		"softmax gates, YaRN": {
			"mscale-missing": {0, 2}, "yarn-off": {2}, "softmax-after-top-k": {1, 2}, "top-k-minus-one": {1}, "router-bfloat16": {1},
			"shared-experts-dropped": {1, 3}, "experts-permuted": {1, 3}, "mlp-gain": {1}, "gate-up-swapped": {3}, "kv-heads-swapped": {1},
			"layer-skipped": {2}, "layers-swapped": {2}, "rope-base": {0}, "norm-gain-ones": {3},
		},
		"rank of queries, sigmoid gate": {
			"group-mask-zero": {2, 3}, "route-weights-unnormalised": {1, 2, 3}, "top-k-minus-one": {2}, "router-bfloat16": {2},
			"experts-permuted": {2},
		},
	} {
		m := latentModels[model]()
		for name, layers := range faults {
			for _, layer := range layers {
				t.Run(fmt.Sprintf("%s/%s at %d", model, name, layer), func(t *testing.T) {
					w := withMutant(t, m.w, name, layer)
					e, clean := mustNew(t, w), m.rows(len(m.ids))
					rows := capture(t, e, m.ids).Rows()
					batched, err := e.CaptureBatched(bg, m.ids)
					require.NoError(t, err)
					for i, row := range rows {
						if i <= layer {
							require.LessOrEqual(t, relL2(row, clean[i]), m.budget[i], "row %d", i)
							continue
						}
						require.Greater(t, relL2(row, clean[i]), 10*m.budget[i], "row %d", i)
						require.Greater(t, relL2(batched[i], clean[i]), 10*m.budget[i], "row %d, batched", i)
					}
					whole, err := e.CaptureWholeStep(bg, m.ids)
					require.NoError(t, err)
					require.True(t, sameBits(whole, rows), "whole step")
					if name == "router-bfloat16" {
						return // the loops are float64
					}
					double, err := e.Float64()
					require.NoError(t, err)
					requireClose(t, capture(t, double, m.ids).Rows(), latentNaive{a: w.Arch(), w: w}.rows(m.ids), float64Bound)
				})
			}
		}
	}
}

// TestRouterInBFloat16: logits are those of the float64 loops within a few
// bfloat16 roundings, and not within one of float32.
func TestRouterInBFloat16(t *testing.T) {
	m := latentModels["softmax gates, YaRN"]()
	mid := m.want[engine.Block(1, engine.PartResidMid)]
	got, err := mustNew(t, withMutant(t, m.w, "router-bfloat16", 1)).RouteRows(bg, 1, mid)
	require.NoError(t, err)
	for pos, want := range m.want[engine.Block(1, engine.PartRouterLogits)] {
		d := relL2(got.Logits[pos], want)
		require.Less(t, d, 4*0x1p-8, "position %d", pos)
		require.Greater(t, d, 0x1p-14, "position %d", pos)
		for _, v := range append(append([]float64(nil), got.Logits[pos]...), got.Scores[pos]...) {
			require.Zero(t, math.Float32bits(float32(v))&0xffff, "%v is no bfloat16", v)
		}
	}
}

// TestStaleLatentRow: a row of the latent cache that was never written holds zeros.
func TestStaleLatentRow(t *testing.T) {
	eachLatent(t, func(t *testing.T, m *latentModel) {
		e, at := mustNew(t, withMutant(t, m.w, "stale-cache-row", 1)), len(m.ids)-1
		s := m.sequence
		s.stale = func(layer, pos int) bool { return layer == 1 && pos == at }
		want, clean := s.rows(m.ids), m.rows(len(m.ids))
		rows := capture(t, e, m.ids).Rows()
		double, err := e.Float64()
		require.NoError(t, err)
		requireClose(t, capture(t, double, m.ids).Rows(), want, float64Bound)
		for i, row := range rows {
			if i < 2 {
				require.LessOrEqual(t, relL2(row, clean[i]), m.budget[i])
				continue
			}
			require.Greater(t, relL2(row, clean[i]), 10*m.budget[i], "row %d", i)
		}
		whole, err := e.CaptureWholeStep(bg, m.ids)
		require.NoError(t, err)
		require.True(t, sameBits(whole, rows))
		batched, err := e.CaptureBatched(bg, m.ids) // has no cache
		require.NoError(t, err)
		m.near(t, m.single, "batched", batched, clean)
	})
}

// TestTraceWithUnmaskedPadding: the longest prompt has none and stays as it is.
func TestTraceWithUnmaskedPadding(t *testing.T) {
	m := latentModels["softmax gates, YaRN"]()
	e, prompts := mustNew(t, withMutant(t, m.w, "padding-unmasked", -1)), [][]int{m.ids[:5], m.ids}
	err := e.TraceBatch(bg, prompts, 3, func(stage engine.Stage) error {
		n, part, _ := stage.Probe.Block()
		if part != engine.PartResidPost {
			return nil
		}
		s := m.sequence
		s.first = len(m.ids) - 5
		short, long := s.places(prompts[0])[stage.Probe], m.want[stage.Probe]
		for pos := range short {
			require.Greater(t, relL2(wide(stage.Rows.Row(len(m.ids)-5+pos)), short[pos]), 10*m.budget[n+1], "%s at %d", stage.Probe, pos)
		}
		for pos := range long {
			require.LessOrEqual(t, relL2(wide(stage.Rows.Row(len(m.ids)+pos)), long[pos]), m.budget[n+1], "%s at %d", stage.Probe, pos)
		}
		return nil
	})
	require.NoError(t, err)
}

// TestTiesOfARouter: experts with the same row in the router have the same score.
// The lowest id is chosen, in every run, and with the fault the highest.
func TestTiesOfARouter(t *testing.T) {
	eachLatent(t, func(t *testing.T, m *latentModel) {
		h := m.w.arch.Hidden
		w := m.w.withTensors(func(n string) bool { return strings.Contains(n, "mlp.gate.") }, func(name string, data []float32) []float32 {
			size := len(data) / 12
			for i := 1; i < 12; i += 3 { // three experts each, within a group of the gates that have them
				copy(data[i*size:(i+1)*size], data[(i-1)*size:i*size])
				copy(data[(i+1)*size:(i+2)*size], data[(i-1)*size:i*size])
			}
			require.True(t, size == h || size == 1, name)
			return data
		})
		ids := m.ids[:9]
		for _, last := range []bool{false, true} {
			var side engine.Weights = w
			if last {
				side = withMutant(t, w, "route-ties-last-wins", -1)
			}
			e := mustNew(t, side)
			got, want := probe(t, e, ids, nil, engine.Block(1, engine.PartRouteIDs), engine.Block(2, engine.PartRouteIDs), engine.Block(3, engine.PartRouteIDs)), latentNaive{a: side.Arch(), w: side}.places(ids)
			for p, v := range got {
				for pos, row := range want[p] {
					require.Equal(t, row, wide(v.Row(pos)), "%s at %d, last %v", p, pos, last)
				}
			}
			batched, err := e.CaptureBatched(bg, ids)
			require.NoError(t, err)
			rows := latentNaive{a: side.Arch(), w: side}.rows(ids)
			for i, row := range batched {
				require.LessOrEqual(t, relL2(row, rows[i]), m.budget[i], "row %d, last %v", i, last)
			}
		}
		clean := latentNaive{a: w.arch, w: w}.rows(ids)
		for i, row := range capture(t, mustNew(t, withMutant(t, w, "route-ties-last-wins", -1)), ids).Rows()[2:] {
			require.Greater(t, relL2(row, clean[i+2]), 10*m.budget[i+2], "row %d", i+2)
		}
	})
}

// TestFaultsThatAGateCannotHave are refused.
func TestFaultsThatAGateCannotHave(t *testing.T) {
	for what, c := range map[string]struct {
		arch  engine.Arch
		layer int
		fault engine.GateFault
	}{
		"softmax over the chosen of a sigmoid gate": {otherLatentArch(), 2, engine.GateSoftmaxChosen},
		"softmax over the chosen in groups":         {latentArch(), 3, engine.GateSoftmaxChosen},
		"mask 0 of a softmax gate":                  {latentArch(), 3, engine.GateMaskZero},
		"no such fault":                             {latentArch(), 1, "upside down"},
	} {
		a := c.arch
		a.PerLayer[c.layer].Experts.Gate.Fault = c.fault
		_, err := newEngine(latentWeights(a, 1))
		var bad *engine.ConfigError
		require.ErrorAs(t, err, &bad, what)
		require.ErrorContains(t, err, "one that the gate can have", what)
	}
}
