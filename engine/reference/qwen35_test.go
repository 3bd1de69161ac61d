package reference_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
)

// hybridBudget is how many times the error of float64 at the same place, in
// roundings, float32 may be away from the naive loops. The first says how the place
// amplifies roundings; those of the two go in independent directions, and either may
// be lucky. The worst of the thousands of rows in these tests needs half of it.
const hybridBudget = 8

// hybridBound is the bound of a float32 row whose float64 twin is got64. A rounding
// of float32 is 2^29 times one of float64.
func hybridBound(got64, want []float64) float64 {
	return hybridBudget * 0x1p29 * max(relL2(got64, want), 0x1p-53)
}

// pair is one model in both arithmetics.
type pair struct {
	single, double *reference.Engine
	naive          *naiveHybrid
}

func newPair(t testing.TB, w engine.Weights) pair {
	t.Helper()
	p := pair{single: mustNew(t, w), naive: newNaiveHybrid(w)}
	double, err := p.single.Float64()
	require.NoError(t, err)
	p.double = double.(*reference.Engine)
	return p
}

// require holds the rows of a run in both arithmetics to the naive loops'.
func (p pair) require(t *testing.T, what string, want [][]float64, run func(e *reference.Engine) [][]float64) {
	t.Helper()
	single, double := run(p.single), run(p.double)
	require.Len(t, single, len(want), what)
	require.Len(t, double, len(want), what)
	for i := range want {
		if err := relL2(double[i], want[i]); !(err <= float64Bound) {
			t.Errorf("%s: row %d: float64 is %.3g away, want at most %.3g", what, i, err, float64Bound)
		}
		if err, bound := relL2(single[i], want[i]), hybridBound(double[i], want[i]); !(err <= bound) {
			t.Errorf("%s: row %d: float32 is %.3g away, want at most %.3g", what, i, err, bound)
		}
	}
}

// hybrids are models that differ in all that a config can say.
func hybrids() map[string]*memWeights {
	archs := map[string]engine.Arch{"mixed": hybridArch()}
	a := hybridArch()
	a.AttentionBias, a.TiedHead = true, true
	a.DeltaNet = engine.DeltaNet{KeyHeads: 3, ValueHeads: 3, KeyDim: 10, ValueDim: 6, Kernel: 2}
	archs["biases, a value head per key head, two taps"] = a
	a = hybridArch()
	a.DeltaNet = engine.DeltaNet{KeyHeads: 1, ValueHeads: 3, KeyDim: 8, ValueDim: 8, Kernel: 1}
	for n := range a.PerLayer {
		a.PerLayer[n].Linear, a.PerLayer[n].RotaryDim = true, 0
	}
	archs["linear layers alone, one tap"] = a
	a = hybridArch()
	for n := range a.PerLayer {
		a.PerLayer[n].Linear, a.PerLayer[n].RotaryDim = false, 2*(n%4) // 0 is the whole head
	}
	archs["attention alone"] = a
	out := map[string]*memWeights{}
	for name, a := range archs {
		out[name] = randomHybrid(a, 1)
	}
	return out
}

// hybridPair is the mixed model, shared by the tests that only read it.
func hybridPair(t testing.TB) pair { return newPair(t, randomHybrid(hybridArch(), 1)) }

func batched(t testing.TB, ids []int) func(e *reference.Engine) [][]float64 {
	return func(e *reference.Engine) [][]float64 {
		rows, err := e.CaptureBatched(bg, ids)
		require.NoError(t, err)
		return rows
	}
}

// TestHybridMatchesNaiveLoops: token by token and as one batch, shorter than the
// convolution and longer than a chunk of the delta rule.
func TestHybridMatchesNaiveLoops(t *testing.T) {
	for name, w := range hybrids() {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, w)
			lengths := []int{3, 65}
			if name == "mixed" {
				lengths = []int{1, 2, 3, 5, 64, 65, 130}
			}
			for _, tokens := range lengths {
				ids := prompt(tokens, w.arch.Vocab)
				want := p.naive.rows(ids)
				p.require(t, fmt.Sprintf("%d tokens", tokens), want, func(e *reference.Engine) [][]float64 { return capture(t, e, ids).Rows() })
				p.require(t, fmt.Sprintf("%d tokens as one batch", tokens), want, batched(t, ids))
				p.require(t, fmt.Sprintf("last hidden state of %d tokens", tokens), [][]float64{p.naive.hidden(want[w.arch.Layers])},
					func(e *reference.Engine) [][]float64 {
						hidden, err := e.LastHidden(bg, ids)
						require.NoError(t, err)
						return [][]float64{hidden}
					})
			}
		})
	}
}

func TestHybridCompositionsAreBitIdentical(t *testing.T) {
	e := hybridPair(t).single
	for _, tokens := range []int{1, 5, 70} {
		ids := prompt(tokens, hybridArch().Vocab)
		tr := capture(t, e, ids)
		rows := tr.Rows()
		whole, err := e.CaptureWholeStep(bg, ids)
		require.NoError(t, err)
		require.True(t, sameBits(whole, rows), "%d tokens: whole step against graph per layer", tokens)
		require.True(t, sameBits(capture(t, mustNew(t, e.Weights(), reference.WithCapacityStep(100)), ids).Rows(), rows), "%d tokens: another capacity", tokens)
		for range 2 { // what a layer is run on leaves the trace as it was
			for n := range hybridArch().Layers {
				_, err := tr.Layer(bg, n, rows[0])
				require.NoError(t, err)
				got, err := tr.Layer(bg, n, rows[n])
				require.NoError(t, err)
				require.True(t, sameBits([][]float64{got}, rows[n+1:n+2]), "%d tokens: layer %d", tokens, n)
			}
		}
	}
}

// TestHybridDecodes: the prompt as one batch, token by token and in chunks that
// continue a state, then steps.
func TestHybridDecodes(t *testing.T) {
	p := hybridPair(t)
	forced := prompt(6, 50)
	for _, tokens := range []int{1, 2, 9, 70} {
		ids := prompt(tokens, 50)
		want := p.naive.forced(p.naive.fresh(), ids, forced, nil)
		for _, chunk := range []int{0, 1, 2, 4, 65} {
			p.require(t, fmt.Sprintf("%d tokens in chunks of %d", tokens, chunk), want, func(e *reference.Engine) [][]float64 {
				return decode(t, e, ids, engine.DecodeOptions{Forced: forced, Chunk: chunk}).Logits
			})
		}
	}
}

// TestHybridBatches: sequences of unequal lengths, padded on the left, are what
// they are alone.
func TestHybridBatches(t *testing.T) {
	p := hybridPair(t)
	prompts, forced := crowd()
	together := map[*reference.Engine][][][]float64{p.single: decodeBatch(t, p.single, prompts, forced), p.double: decodeBatch(t, p.double, prompts, forced)}
	for i, ids := range prompts {
		p.require(t, fmt.Sprintf("sequence %d", i), p.naive.forced(p.naive.fresh(), ids, forced[i], nil),
			func(e *reference.Engine) [][]float64 { return together[e][i] })
	}
}

// TestHybridSharesPrefixes: continued from copies of what their common prefix left,
// prompts have the bits of runs of their own.
func TestHybridSharesPrefixes(t *testing.T) {
	e := hybridPair(t).single
	ids := prompt(40, 50)
	prompts := [][]int{ids[:20], append(slices.Clone(ids[:14]), 9, 10, 11), ids[:2], append(slices.Clone(ids[:14]), 9, 10, 12), ids}
	shared := 0
	for _, c := range captureMany(t, e, prompts, reference.ManyOptions{Oracle: true}) {
		requireFresh(t, e, prompts[c.Index], c, true)
		shared += c.Shared
	}
	require.Equal(t, 2+14+16+20, shared)
}

// TestHybridProbes: every place at every position, in the prompt and behind it, and
// which places there are.
func TestHybridProbes(t *testing.T) {
	p := hybridPair(t)
	a := hybridArch()
	ids, output := prompt(7, 50), prompt(4, 50)
	want := map[engine.Probe][][]float64{}
	p.naive.see = func(probe engine.Probe, _ int, values []float64) { want[probe] = append(want[probe], values) }
	for _, rows := range p.naive.stream(p.naive.fresh(), append(slices.Clone(ids), output[:3]...), nil) {
		for i, row := range rows {
			want[engine.RowProbe(i)] = append(want[engine.RowProbe(i)], row)
		}
		want[engine.ProbeFinalNorm] = append(want[engine.ProbeFinalNorm], p.naive.hidden(rows[a.Layers]))
		want[engine.ProbeLogits] = append(want[engine.ProbeLogits], p.naive.logits(rows[a.Layers]))
	}
	p.naive.see = nil
	require.ElementsMatch(t, slices.Collect(maps.Keys(want)), engine.Probes(a))
	got := map[*reference.Engine]matrices{}
	for _, e := range []*reference.Engine{p.single, p.double} {
		got[e] = probe(t, e, ids, output, engine.Probes(a)...)
	}
	// What float64 strays at a place inside a layer is lost in its rounding to
	// float32. The worst that it strays in the residual stream of the position
	// serves, and what the layer alone does to clean rows.
	worst := make([]float64, len(ids)+len(output)-1)
	for pos := range worst {
		for n, row := range capture(t, p.double, append(slices.Clone(ids), output...)[:pos+1]).Rows() {
			worst[pos] = max(worst[pos], hybridBound(row, want[engine.RowProbe(n)][pos]))
		}
	}
	layers := make([]engine.LayerRun, a.Layers)
	for n := range layers {
		var err error
		layers[n], err = p.double.LayerAll(bg, n, want[engine.RowProbe(n)], nil)
		require.NoError(t, err)
	}
	bound := func(probe engine.Probe, pos int) float64 {
		if n, part, ok := probe.Block(); ok {
			return worst[pos] + hybridBound(layers[n][part][pos], want[probe][pos])
		}
		return worst[pos]
	}
	for probe, rows := range want {
		for pos, row := range rows {
			single, double := wide(got[p.single][probe].Row(pos)), wide(got[p.double][probe].Row(pos))
			if err := relL2(double, row); !(err <= float64Bound+0x1p-24) {
				t.Errorf("%s at position %d: float64 is %.3g away", probe, pos, err)
			}
			if err := relL2(single, row); !(err <= bound(probe, pos)) {
				t.Errorf("%s at position %d: float32 is %.3g away, want at most %.3g", probe, pos, err, bound(probe, pos))
			}
		}
	}

	for probe, width := range map[engine.Probe]int{
		"blocks.0.attn_norm": 24, "blocks.0.attn_out": 40, "blocks.0.resid_mid": 24, "blocks.0.mlp_out": 24, "blocks.0.resid_post": 24,
		"blocks.2.attn_out": 32, "blocks.2.q": 32, "blocks.2.k_rope": 16,
	} {
		got, err := probe.Width(a)
		require.NoError(t, err)
		require.Equal(t, width, got, probe)
	}
	for _, part := range []engine.Part{engine.PartQ, engine.PartK, engine.PartV, engine.PartQRope, engine.PartKRope} {
		var unsupported *engine.UnsupportedError
		_, err := p.single.CaptureProbes(bg, ids, nil, []engine.Probe{engine.Block(1, part)})
		require.ErrorAs(t, err, &unsupported)
		require.ErrorContains(t, err, "probe blocks.1."+string(part)+" not supported: layer 1 is linear")
	}
}

// TestHybridLayerAll: a layer on the rows that it has in a run makes of them what it
// made there, and its second half what it makes of the rows between the halves.
func TestHybridLayerAll(t *testing.T) {
	a := hybridArch()
	p := hybridPair(t)
	ids := prompt(70, 50)
	want := map[engine.Probe][][]float64{}
	p.naive.see = func(probe engine.Probe, _ int, values []float64) { want[probe] = append(want[probe], values) }
	stream := p.naive.stream(p.naive.fresh(), ids, nil)
	for n := range a.Layers {
		var in [][]float64
		for _, rows := range stream {
			in = append(in, rows[n])
			want[engine.ResidPost(n)] = append(want[engine.ResidPost(n)], rows[n+1])
		}
		var parts []engine.Part
		for _, probe := range engine.Probes(a) {
			if layer, part, ok := probe.Block(); ok && layer == n {
				parts = append(parts, part)
			}
		}
		for _, mid := range [][][]float64{nil, want[engine.ResidMid(n)]} {
			runs := map[*reference.Engine]engine.LayerRun{}
			for _, e := range []*reference.Engine{p.single, p.double} {
				run, err := e.LayerAll(bg, n, in, mid)
				require.NoError(t, err)
				require.ElementsMatch(t, parts, slices.Collect(maps.Keys(run)))
				runs[e] = run
			}
			for _, part := range parts {
				p.require(t, fmt.Sprintf("layer %d: %s", n, part), want[engine.Block(n, part)], func(e *reference.Engine) [][]float64 { return runs[e][part] })
			}
		}
	}
}

// TestHybridRefusals: what can't be computed is refused when the engine is made.
func TestHybridRefusals(t *testing.T) {
	w := randomHybrid(hybridArch(), 1)
	_, err := reference.New(w, reference.WithKVCache(reference.KVQuant{Bits: 8}))
	var unsupported *engine.UnsupportedError
	require.ErrorAs(t, err, &unsupported)
	require.ErrorContains(t, err, "a quantised KV cache in layer 0 not supported: a linear layer has a state")

	for _, c := range []struct {
		name  string
		plant func(a *engine.Arch)
		text  string
	}{
		{"no value heads", func(a *engine.Arch) { a.DeltaNet.ValueHeads = 0 }, "linear layers: got 2 key heads of 6, 0 value heads of 10, a kernel of 4"},
		{"no kernel", func(a *engine.Arch) { a.DeltaNet.Kernel = 0 }, "linear layers: got"},
		{"heads", func(a *engine.Arch) { a.DeltaNet.KeyHeads = 3 }, "a multiple of the key heads as value heads"},
		{"odd rotary part", func(a *engine.Arch) { a.PerLayer[2].RotaryDim = 3 }, "layer 2: got 3 rotary channels, want an even number of at most 8"},
		{"large rotary part", func(a *engine.Arch) { a.PerLayer[2].RotaryDim = 10 }, "layer 2: got 10 rotary channels"},
		{"late convolution elsewhere", func(a *engine.Arch) { a.Fault = engine.Fault{ConvLate: true, ConvLayer: 2} }, "fault: late convolution: got layer 2"},
	} {
		bad := &memWeights{w.arch.Clone(), w.tensors}
		c.plant(&bad.arch)
		_, err := reference.New(bad)
		var config *engine.ConfigError
		require.ErrorAs(t, err, &config, c.name)
		require.ErrorContains(t, err, c.text, c.name)
	}
	for name, plant := range map[string]func(l *engine.LayerParams){
		"linear": func(l *engine.LayerParams) { l.Linear = true },
		"rotary": func(l *engine.LayerParams) { l.RotaryDim = 4 },
		"gate":   func(l *engine.LayerParams) { l.GateMissing = true },
	} {
		other := randomWeights(smallArch(), 1)
		plant(&other.arch.PerLayer[1])
		_, err := reference.New(other)
		require.ErrorContains(t, err, "layer 1: got a linear layer, a rotary part or a gate, want none, in the family qwen2", name)
	}
}
