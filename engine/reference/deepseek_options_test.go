package reference_test

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
)

// TestTransformersScale: without mscale² in the softmax scale it is another model,
// that of the loops without the factor, and both say which they are.
func TestTransformersScale(t *testing.T) {
	m := latentModels["softmax gates, YaRN"]()
	e := mustNew(t, m.w, reference.WithTransformersScale(), reference.WithDType(reference.Float64))
	a := m.w.arch.Clone()
	for n := range a.PerLayer {
		a.PerLayer[n].ScoreFactor = 0
	}
	rows := capture(t, e, m.ids).Rows()
	requireClose(t, rows, latentNaive{a: a, w: m.w}.rows(m.ids), float64Bound)
	require.Greater(t, relL2(rows[1], m.rows(len(m.ids))[1]), 1e-3)
	single, err := e.Float32()
	require.NoError(t, err)
	require.Contains(t, single.Describe().Version, ", softmax scale transformers' 1/sqrt(d), without mscale²")
	require.Contains(t, m.single.Describe().Version, ", softmax scale 1/sqrt(d)*mscale², 1.5896")
	plain := latentModels["rank of queries, sigmoid gate"]().single
	require.Regexp(t, `, softmax scale 1/sqrt\(d\)$`, plain.Describe().Version)
	require.NotContains(t, small().Describe().Version, "softmax scale")
	one := a.Clone()
	one.PerLayer[2].ScoreFactor = 1.5
	require.Contains(t, mustNew(t, &memWeights{one, m.w.tensors}).Describe().Version, "1/sqrt(d) with factors that differ from layer 2 on")

	_, err = reference.New(randomWeights(smallArch(), 1), reference.WithTransformersScale())
	var unsupported *engine.UnsupportedError
	require.ErrorAs(t, err, &unsupported)
}

// TestFusedLatentAttention: nothing changes but in bfloat16, where it rounds less.
func TestFusedLatentAttention(t *testing.T) {
	m := latentModels["softmax gates, YaRN"]()
	require.True(t, sameBits(capture(t, mustNew(t, m.w, reference.WithFusedAttention()), m.ids).Rows(), capture(t, m.single, m.ids).Rows()))
	eager := mustNew(t, m.w, reference.WithDType(reference.BFloat16))
	fused := mustNew(t, m.w, reference.WithDType(reference.BFloat16), reference.WithFusedAttention())
	places := []engine.Probe{engine.Block(0, engine.PartAttnOut)}
	off := func(e *reference.Engine) (sum float64) {
		got, want := probe(t, e, m.ids, nil, places...)[places[0]], m.want[places[0]]
		for pos := range want {
			sum += relL2(wide(got.Row(pos)), want[pos])
		}
		return sum
	}
	require.Less(t, off(fused), off(eager))
}

func TestLatentModelsThatCannotBeComputedAreRefused(t *testing.T) {
	for what, c := range map[string]struct {
		edit func(a *engine.Arch)
		want string
	}{
		"no rank":             {func(a *engine.Arch) { a.Latent.KVRank = 0 }, "latent attention: got ranks 0 and 0"},
		"no values":           {func(a *engine.Arch) { a.Latent.ValueDim = 0 }, "values of 0"},
		"negative rank":       {func(a *engine.Arch) { a.Latent.QRank = -1 }, "ranks 10 and -1"},
		"odd rotation":        {func(a *engine.Arch) { a.Latent.RopeDim = 3 }, "got 3 of 14 dimensions rotate"},
		"all rotate":          {func(a *engine.Arch) { a.Latent.RopeDim = 14 }, "got 14 of 14 dimensions rotate, want an even number, and not all"},
		"grouped heads":       {func(a *engine.Arch) { a.KVHeads = 1 }, "key-value heads: got 1, want as many as attention heads, 3"},
		"experts half there":  {func(a *engine.Arch) { a.PerLayer[1].Experts.Count = 0 }, "layer 1: experts: got 0 of width 9"},
		"no experts wanted":   {func(a *engine.Arch) { a.PerLayer[1].Experts.PerToken = 0 }, "layer 1: experts: got 0 per token"},
		"YaRN without a base": {func(a *engine.Arch) { a.PerLayer[1].Yarn.Original = 0 }, "layer 1: YaRN"},
		"negative factor":     {func(a *engine.Arch) { a.PerLayer[1].ScoreFactor = -1 }, "layer 1: YaRN"},
	} {
		a := latentArch()
		c.edit(&a)
		_, err := reference.New(&memWeights{a, latentWeights(latentArch(), 1).tensors})
		var bad *engine.ConfigError
		require.ErrorAs(t, err, &bad, what)
		require.ErrorContains(t, err, c.want, what)
	}
	for what, edit := range map[string]func(a *engine.Arch){
		"latent":  func(a *engine.Arch) { a.Latent.KVRank = 8 },
		"experts": func(a *engine.Arch) { a.PerLayer[0].Experts = latentArch().PerLayer[1].Experts },
		"YaRN":    func(a *engine.Arch) { a.PerLayer[0].Yarn.Factor = 2 },
		"factor":  func(a *engine.Arch) { a.PerLayer[0].ScoreFactor = 2 },
	} {
		a := smallArch()
		edit(&a)
		_, err := reference.New(randomWeights(a, 1))
		require.ErrorContains(t, err, "in the family qwen2", what)
	}
	_, err := reference.New(latentWeights(latentArch(), 1), reference.WithKVCache(reference.KVQuant{Bits: 8}))
	require.ErrorContains(t, err, "a quantised KV cache of latent rows not supported")
}

// TestMissingExpertIsNamed: a checkpoint without one of its experts.
func TestMissingExpertIsNamed(t *testing.T) {
	w := latentWeights(latentArch(), 1)
	delete(w.tensors, "model.layers.2.mlp.experts.7.up_proj.weight")
	_, err := reference.New(w)
	require.ErrorContains(t, err, "model.layers.2.mlp.experts.7.up_proj.weight")
}

// TestTraceRefusals: bad prompts, and what each returns.
func TestTraceRefusals(t *testing.T) {
	m := latentModels["softmax gates, YaRN"]()
	nothing := func(engine.Stage) error { return nil }
	require.ErrorContains(t, m.single.TraceBatch(bg, nil, 0, nothing), "reference: trace: got no prompts, want at least 1")
	require.ErrorContains(t, m.single.TraceBatch(bg, [][]int{{1}}, 50, nothing), "reference: trace: got padding with id 50, want 0 to 49")
	require.ErrorContains(t, m.single.TraceBatch(bg, [][]int{{1}, {}}, 0, nothing), "reference: trace: prompt 1: reference: prompt: got 0 tokens")
	stages := 0
	err := m.single.TraceBatch(bg, [][]int{{1}}, 0, func(engine.Stage) error { stages++; return io.EOF })
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, 1, stages)
	_, err = m.single.RouteRows(bg, 0, m.rows(1)[:1])
	require.ErrorContains(t, err, "routes of layer 0 not supported: the layer has no router")
	_, err = m.single.RouteRows(bg, 9, m.rows(1)[:1])
	require.ErrorContains(t, err, "reference: layer: got 9, want 0 to 3")
	_, err = m.single.RouteRows(bg, 1, nil)
	require.ErrorContains(t, err, "got no rows")
}
