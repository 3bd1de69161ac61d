package reference_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
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

// layerFault is a fault planted in layer 1, or where it says.
type layerFault struct {
	name  string
	layer int
	// plant edits the architecture, and weights the tensors.
	plant   func(l *engine.LayerParams)
	weights func(w *memWeights) *memWeights
	// small is true for a fault that no float64 loop shares.
	unshared bool
}

func commonFaults(layer int) []layerFault {
	prefix := fmt.Sprintf("model.layers.%d.", layer)
	return []layerFault{
		{name: "router in bfloat16", layer: layer, plant: func(l *engine.LayerParams) { l.Experts.Gate.Fault = engine.GateBFloat16 }, unshared: true},
		{name: "one expert less", layer: layer, plant: func(l *engine.LayerParams) { l.Experts.PerToken-- }},
		{name: "experts permuted", layer: layer, weights: func(w *memWeights) *memWeights {
			out, n := w.withTensors(func(string) bool { return false }, nil), w.arch.PerLayer[layer].Experts.Count
			for i := range n {
				for _, t := range []string{"gate_proj", "up_proj", "down_proj"} {
					out.tensors[fmt.Sprintf("%smlp.experts.%d.%s.weight", prefix, i, t)] = w.tensors[fmt.Sprintf("%smlp.experts.%d.%s.weight", prefix, (i+1)%n, t)]
				}
			}
			return out
		}},
	}
}

func sharedDropped(layer int) layerFault {
	name := fmt.Sprintf("model.layers.%d.mlp.shared_experts.down_proj.weight", layer)
	return layerFault{name: "shared experts dropped", layer: layer, weights: func(w *memWeights) *memWeights {
		return w.withTensors(func(n string) bool { return n == name }, func(_ string, data []float32) []float32 {
			clear(data)
			return data
		})
	}}
}

// TestLatentFaults: each fault gives the rows of the naive loops with the same
// fault, in all incremental and batched runs alike, leaves the rows before it
// alone, and misses the budget of those behind it by more than ten times.
func TestLatentFaults(t *testing.T) {
	for name, faults := range map[string][]layerFault{
		"softmax gates, YaRN": append(commonFaults(1), sharedDropped(1),
			layerFault{name: "softmax after top-k", layer: 2, plant: func(l *engine.LayerParams) { l.Experts.Gate.Fault = engine.GateSoftmaxChosen }},
			layerFault{name: "mscale missing", layer: 0, plant: func(l *engine.LayerParams) { l.ScoreFactor = 0 }},
			layerFault{name: "YaRN off", layer: 2, plant: func(l *engine.LayerParams) { l.Yarn.Factor = 0 }},
			layerFault{name: "group limit off", layer: 3, plant: func(l *engine.LayerParams) { l.Experts.Gate.Groups = 0 }},
			layerFault{name: "scale missing", layer: 3, plant: func(l *engine.LayerParams) { l.Experts.Gate.Scale = 1 }}),
		"rank of queries, sigmoid gate": append(commonFaults(2),
			layerFault{name: "group mask 0", layer: 2, plant: func(l *engine.LayerParams) { l.Experts.Gate.Fault = engine.GateMaskZero }},
			layerFault{name: "weights not normalised", layer: 1, plant: func(l *engine.LayerParams) { l.Experts.Gate.Normalise = false }},
			layerFault{name: "weights not normalised, sigmoid", layer: 3, plant: func(l *engine.LayerParams) { l.Experts.Gate.Normalise = false }}),
	} {
		m := latentModels[name]()
		for _, f := range faults {
			t.Run(name+"/"+f.name, func(t *testing.T) {
				w := &memWeights{arch: m.w.arch.Clone(), tensors: m.w.tensors}
				if f.plant != nil {
					f.plant(&w.arch.PerLayer[f.layer])
				} else {
					w = f.weights(w)
				}
				e, clean := mustNew(t, w), m.rows(len(m.ids))
				rows := capture(t, e, m.ids).Rows()
				batched, err := e.CaptureBatched(bg, m.ids)
				require.NoError(t, err)
				for i, row := range rows {
					if i <= f.layer {
						require.LessOrEqual(t, relL2(row, clean[i]), m.budget[i], "row %d", i)
						continue
					}
					require.Greater(t, relL2(row, clean[i]), 10*m.budget[i], "row %d", i)
					require.Greater(t, relL2(batched[i], clean[i]), 10*m.budget[i], "row %d, batched", i)
				}
				whole, err := e.CaptureWholeStep(bg, m.ids)
				require.NoError(t, err)
				require.True(t, sameBits(whole, rows), "whole step")
				if f.unshared {
					return
				}
				double, err := e.Float64()
				require.NoError(t, err)
				requireClose(t, capture(t, double, m.ids).Rows(), latentNaive{a: w.arch, w: w}.rows(m.ids), float64Bound)
			})
		}
	}
}

// TestStaleLatentRow: a row of the latent cache that was never written holds zeros.
func TestStaleLatentRow(t *testing.T) {
	eachLatent(t, func(t *testing.T, m *latentModel) {
		w := &memWeights{arch: m.w.arch.Clone(), tensors: m.w.tensors}
		w.arch.Fault = engine.Fault{StaleCache: true, StaleLayer: 1, StalePosition: -3}
		e, at := mustNew(t, w), len(m.ids)-3
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
	w := &memWeights{arch: m.w.arch.Clone(), tensors: m.w.tensors}
	w.arch.Fault = engine.Fault{BatchPaddingUnmasked: true}
	e, prompts := mustNew(t, w), [][]int{m.ids[:5], m.ids}
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
			if last {
				for n := range w.arch.PerLayer {
					if w.arch.RoutedAt(n) {
						w.arch.PerLayer[n].Experts.Gate.Fault = engine.GateLastWins
					}
				}
			}
			e := mustNew(t, w)
			got, want := probe(t, e, ids, nil, engine.Block(1, engine.PartRouteIDs), engine.Block(2, engine.PartRouteIDs), engine.Block(3, engine.PartRouteIDs)), latentNaive{a: w.arch, w: w}.places(ids)
			for p, v := range got {
				for pos, row := range want[p] {
					require.Equal(t, row, wide(v.Row(pos)), "%s at %d, last %v", p, pos, last)
				}
			}
			batched, err := e.CaptureBatched(bg, ids)
			require.NoError(t, err)
			rows := latentNaive{a: w.arch, w: w}.rows(ids)
			for i, row := range batched {
				require.LessOrEqual(t, relL2(row, rows[i]), m.budget[i], "row %d, last %v", i, last)
			}
		}
		clean := latentNaive{a: m.w.arch, w: &memWeights{m.w.arch, w.tensors}}.rows(ids)
		for i, row := range capture(t, mustNew(t, w), ids).Rows()[2:] {
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
