package mutant

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/internal/seeded"
	"github.com/plumbline-go/plumbline/engine/quant"
	"github.com/plumbline-go/plumbline/fixtures"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func weights(t *testing.T) *seeded.Memory {
	t.Helper()
	w, err := seeded.Weights()
	require.NoError(t, err)
	return w.(*seeded.Memory)
}

func same(a, b engine.Tensor) bool {
	return unsafe.SliceData(a.Data) == unsafe.SliceData(b.Data) && len(a.Data) == len(b.Data)
}

// engineCases says, for each engine fault planted at layer 9, which tensors
// stop being their own memory and which constants change.
var engineCases = map[string]struct {
	tensors []string
	arch    func(a *engine.Arch)
	// first is the first row that differs in a run of one prompt as a whole; 29,
	// behind the last, for the logits alone, and 30 for nothing: what is planted
	// acts on other runs, which the emulation doesn't have.
	first int
}{
	"rope-base":             {arch: func(a *engine.Arch) { a.PerLayer[9].RopeTheta = 1e4 }, first: 10},
	"q-position-off-by-one": {arch: func(a *engine.Arch) { a.PerLayer[9].QueryOffset = 1 }, first: 10},
	"q-bias-missing":        {tensors: []string{"9.self_attn.q_proj.bias"}, first: 10},
	"norm-eps":              {arch: func(a *engine.Arch) { a.PerLayer[9].NormEps = 1e-5 }, first: 10},
	"norm-gain-ones":        {tensors: []string{"9.input_layernorm.weight"}, first: 10},
	"gate-up-swapped":       {tensors: []string{"9.mlp.gate_proj.weight", "9.mlp.up_proj.weight"}, first: 10},
	"kv-heads-swapped": {tensors: []string{"9.self_attn.k_proj.bias", "9.self_attn.k_proj.weight",
		"9.self_attn.v_proj.bias", "9.self_attn.v_proj.weight"}, first: 10},
	"layer-skipped":  {tensors: []string{"9.mlp.down_proj.weight", "9.self_attn.o_proj.weight"}, first: 10},
	"layers-swapped": {tensors: append(layerTensors("9."), layerTensors("10.")...), first: 10},
	"stale-cache-row": {arch: func(a *engine.Arch) {
		a.Fault = engine.Fault{StaleCache: true, StaleLayer: 9, StalePosition: -1}
	}, first: 10},
	"decode-position-shift": {arch: func(a *engine.Arch) { a.Fault = engine.Fault{DecodeShift: 1, DecodeFrom: -1} }, first: 1},
	"first-token-embedding": {arch: func(a *engine.Arch) { a.Fault = engine.Fault{EmbedFirst: true} }, first: 0},
	"chunk-position-shift":  {arch: func(a *engine.Arch) { a.Fault = engine.Fault{ChunkShift: 1} }, first: 30},
	"padding-unmasked":      {arch: func(a *engine.Arch) { a.Fault = engine.Fault{BatchPaddingUnmasked: true} }, first: 30},
	"batch-row-stale":       {arch: func(a *engine.Arch) { a.Fault = engine.Fault{BatchRowStale: true} }, first: 30},
	"cache-kept":            {arch: func(a *engine.Arch) { a.Fault = engine.Fault{KeepCache: true} }, first: 30},
	"final-norm-skipped":    {tensors: []string{"model.norm.weight"}, arch: func(a *engine.Arch) { a.FinalNormEps = 0x1p60 }, first: 29},
	"mlp-gain":              {tensors: []string{"9.mlp.down_proj.weight"}, first: 10},
	"channel-dead":          {tensors: []string{"9.mlp.down_proj.weight"}, first: 10},
	"final-norm-ones":       {tensors: []string{"model.norm.weight"}, first: 29},
	"final-norm-rolled":     {tensors: []string{"model.norm.weight"}, first: 29},
	"wrong-head":            {arch: func(a *engine.Arch) { a.TiedHead = false }, first: 29},
}

func layerTensors(layer string) (out []string) {
	for _, s := range []string{"input_layernorm.weight", "post_attention_layernorm.weight", "mlp.gate_proj.weight", "mlp.up_proj.weight",
		"mlp.down_proj.weight", "self_attn.q_proj.weight", "self_attn.q_proj.bias", "self_attn.k_proj.weight", "self_attn.k_proj.bias",
		"self_attn.v_proj.weight", "self_attn.v_proj.bias", "self_attn.o_proj.weight"} {
		out = append(out, layer+s)
	}
	return out
}

func TestEngineFaultsChangeWhatTheySayAndOnlyThat(t *testing.T) {
	w := weights(t)
	for _, m := range engineFaults() {
		t.Run(m.Name, func(t *testing.T) {
			want, ok := engineCases[m.Name]
			require.True(t, ok, "no expectation")
			got, err := m.Weights(w, 9)
			require.NoError(t, err)

			arch := w.Arch().Clone()
			if want.arch != nil {
				want.arch(&arch)
			}
			assert.Equal(t, arch, got.Arch())
			var changed []string
			for name, before := range w.Tensors {
				after, err := got.Tensor(name)
				require.NoError(t, err)
				require.Equal(t, before.Shape, after.Shape)
				if !same(before, after) {
					changed = append(changed, strings.TrimPrefix(name, "model.layers."))
					again, err := got.Tensor(name)
					require.NoError(t, err)
					assert.True(t, same(after, again), "%s: made anew on each use", name)
				}
			}
			slices.Sort(changed)
			expected := slices.Sorted(slices.Values(want.tensors))
			assert.Equal(t, expected, changed)

			_, err = got.Tensor("no.such.tensor")
			var config *engine.ConfigError
			assert.ErrorAs(t, err, &config)
		})
	}
	clean := weights(t)
	assert.Equal(t, engine.Fault{}, clean.Arch().Fault, "the original's constants were written")
	assert.Equal(t, 1e6, clean.Arch().PerLayer[9].RopeTheta, "the original's constants were written")
}

// What a faulty engine computes: bit-identical up to the faulty layer, other
// from there on.
func TestEngineFaultsShowFromTheirRowOn(t *testing.T) {
	w, ids, cache := weights(t), prompt(t), quant.NewCache()
	rows := func(w engine.Weights) [][]float64 {
		e := quant.FromWeights(w, quant.WithCache(cache))
		out, err := e.Emulate(t.Context(), engine.Scheme{}, ids)
		require.NoError(t, err)
		logits, err := e.EmulateLogits(t.Context(), engine.Scheme{}, ids, []int{0})
		require.NoError(t, err)
		return append(out, logits...)
	}
	clean := rows(w)
	for _, m := range engineFaults() {
		faulty, err := m.Weights(w, 9)
		require.NoError(t, err)
		got := rows(faulty)
		first := engineCases[m.Name].first
		for i := range first {
			assert.Equal(t, clean[i], got[i], "%s: row %d, before the fault", m.Name, i)
		}
		if first < len(clean) {
			assert.NotEqual(t, clean[first], got[first], "%s: row %d", m.Name, first)
		}
	}
}

func TestFaultsOfTheFinalNorm(t *testing.T) {
	w := weights(t)
	row := make([]float64, 64)
	for i := range row {
		row[i] = 3*math.Sin(float64(i)) - 1
	}
	gain, err := w.Tensor("model.norm.weight")
	require.NoError(t, err)
	bare := rmsNorm(row, slices.Repeat([]float32{1}, 64), w.Arch().FinalNormEps)
	for name, want := range map[string]func(i int) float64{
		"final-norm-skipped": func(i int) float64 { return row[i] },
		"final-norm-ones":    func(i int) float64 { return bare[i] },
		"final-norm-rolled":  func(i int) float64 { return bare[i] * float64(gain.Data[(i+1)%64]) },
	} {
		m, err := Lookup(name)
		require.NoError(t, err)
		got, err := m.Weights(w, -1)
		require.NoError(t, err)
		normed, err := finalNorm(got)(t.Context(), row)
		require.NoError(t, err)
		for i, v := range normed {
			if !closeTo(v, want(i)) {
				t.Errorf("%s: channel %d: got %v, want %v", name, i, v, want(i))
			}
		}
	}
	// In float32, mean(x²) up to the documented bound is lost beside the epsilon.
	for _, square := range []float32{0, 1, 1 << 20, 1<<36 - 1<<13} {
		if eps := float32(0x1p60); square+eps != eps {
			t.Errorf("mean square %v: %v is not the epsilon alone", square, square+eps)
		}
	}
}

func TestWrongHeads(t *testing.T) {
	w := weights(t)
	m, err := Lookup("wrong-head")
	require.NoError(t, err)
	tied, err := m.Weights(w, -1)
	require.NoError(t, err)
	table, err := w.Tensor("model.embed_tokens.weight")
	require.NoError(t, err)
	head, err := tied.Tensor("lm_head.weight")
	require.NoError(t, err)
	require.Equal(t, table.Shape, head.Shape)
	for id := range 384 {
		next := (id + 1) % 384
		require.Equal(t, table.Data[next*64:(next+1)*64], head.Data[id*64:(id+1)*64], "id %d", id)
	}

	own := &seeded.Memory{
		Architecture: engine.Arch{Layers: 1, PerLayer: make([]engine.LayerParams, 1)},
		Tensors: map[string]engine.Tensor{
			"model.embed_tokens.weight": {Shape: []int{2, 1}, Data: []float32{1, 2}},
			"lm_head.weight":            {Shape: []int{2, 1}, Data: []float32{3, 4}},
		},
	}
	untied, err := m.Weights(own, -1)
	require.NoError(t, err)
	require.Equal(t, own.Arch(), untied.Arch())
	head, err = untied.Tensor("lm_head.weight")
	require.NoError(t, err)
	require.True(t, same(own.Tensors["model.embed_tokens.weight"], head))
}

func prompt(t *testing.T) []int {
	t.Helper()
	cases, err := fixtures.SeededPrompts()
	require.NoError(t, err)
	return cases[2].TokenIDs
}

func TestAllLayers(t *testing.T) {
	w := weights(t)
	for _, c := range []struct {
		name  string
		holds func(w engine.Weights, n int) bool
	}{
		{"rope-base", func(w engine.Weights, n int) bool { return w.Arch().PerLayer[n].RopeTheta == 1e4 }},
		{"q-position-off-by-one", func(w engine.Weights, n int) bool { return w.Arch().PerLayer[n].QueryOffset == 1 }},
		{"norm-eps", func(w engine.Weights, n int) bool { return w.Arch().PerLayer[n].NormEps == 1e-5 }},
		{"norm-gain-ones", func(w engine.Weights, n int) bool {
			g, err := w.Tensor(layerPrefix(n) + "input_layernorm.weight")
			return err == nil && !slices.ContainsFunc(g.Data, func(v float32) bool { return v != 1 })
		}},
		{"q-bias-missing", func(w engine.Weights, n int) bool {
			g, err := w.Tensor(layerPrefix(n) + "self_attn.q_proj.bias")
			return err == nil && !slices.ContainsFunc(g.Data, func(v float32) bool { return v != 0 })
		}},
	} {
		m, err := Lookup(c.name)
		require.NoError(t, err)
		for _, at := range []int{-1, 9} {
			got, err := m.Weights(w, at)
			require.NoError(t, err)
			for n := range w.Arch().Layers {
				assert.Equal(t, at < 0 || n == at, c.holds(got, n), "%s at %d: layer %d", c.name, at, n)
			}
		}
	}
}

// Two heads of two rows: rows 0 1 | 2 3 become 2 3 | 0 1.
func TestKVHeadsAreExchangedWhole(t *testing.T) {
	shape := func(d ...int) []int { return d }
	w := &seeded.Memory{
		Architecture: engine.Arch{Layers: 1, KVHeads: 2, PerLayer: make([]engine.LayerParams, 1)},
		Tensors: map[string]engine.Tensor{
			"model.layers.0.self_attn.k_proj.weight": {Shape: shape(4, 2), Data: []float32{0, 1, 10, 11, 20, 21, 30, 31}},
			"model.layers.0.self_attn.v_proj.bias":   {Shape: shape(4), Data: []float32{0, 1, 2, 3}},
		},
	}
	m, err := Lookup("kv-heads-swapped")
	require.NoError(t, err)
	got, err := m.Weights(w, 0)
	require.NoError(t, err)
	k, err := got.Tensor("model.layers.0.self_attn.k_proj.weight")
	require.NoError(t, err)
	assert.Equal(t, []float32{20, 21, 30, 31, 0, 1, 10, 11}, k.Data)
	v, err := got.Tensor("model.layers.0.self_attn.v_proj.bias")
	require.NoError(t, err)
	assert.Equal(t, []float32{2, 3, 0, 1}, v.Data)
	_, err = got.Tensor("model.layers.0.self_attn.k_proj.bias")
	assert.Error(t, err, "a tensor that the base lacks")

	w.Architecture.KVHeads = 1
	_, err = m.Weights(w, 0)
	assert.ErrorContains(t, err, "got 1 kv heads")
}

func TestSwappedAndSkippedTensors(t *testing.T) {
	w := weights(t)
	at := func(name string, layer int) engine.Weights {
		m, err := Lookup(name)
		require.NoError(t, err)
		got, err := m.Weights(w, layer)
		require.NoError(t, err)
		return got
	}
	get := func(w engine.Weights, name string) engine.Tensor {
		got, err := w.Tensor(name)
		require.NoError(t, err)
		return got
	}
	const gate, up = "model.layers.4.mlp.gate_proj.weight", "model.layers.4.mlp.up_proj.weight"
	down := "model.layers.4.mlp.down_proj.weight"
	scaled, dead, own := get(at("mlp-gain", 4), down), get(at("channel-dead", 4), down), get(w, down)
	for i, x := range own.Data {
		require.InEpsilon(t, 1.1*float64(x), float64(scaled.Data[i]), 1e-6)
		if i < own.Shape[1] {
			x = 0
		}
		require.Equal(t, x, dead.Data[i])
	}
	assert.True(t, same(get(at("gate-up-swapped", 4), gate), get(w, up)))
	assert.True(t, same(get(at("gate-up-swapped", 4), up), get(w, gate)))
	swapped := at("layers-swapped", 1)
	// a prefix must not be mistaken: layer 1 is not layer 10
	for from, to := range map[string]string{"1": "2", "2": "1", "10": "10", "20": "20", "0": "0"} {
		const rest = ".self_attn.o_proj.weight"
		assert.True(t, same(get(swapped, "model.layers."+from+rest), get(w, "model.layers."+to+rest)), "layer %s", from)
	}
	for _, v := range get(at("layer-skipped", 3), "model.layers.3.self_attn.o_proj.weight").Data {
		require.Zero(t, v)
	}
}

func TestConstantsThatAreAlreadyTheBuggyOnes(t *testing.T) {
	w := &seeded.Memory{Architecture: engine.Arch{Layers: 1, PerLayer: []engine.LayerParams{{RopeTheta: 1e4, NormEps: 1e-5}}}}
	for name, want := range map[string]engine.LayerParams{
		"rope-base": {RopeTheta: 1e6, NormEps: 1e-5}, "norm-eps": {RopeTheta: 1e4, NormEps: 1e-6},
	} {
		m, err := Lookup(name)
		require.NoError(t, err)
		got, err := m.Weights(w, 0)
		require.NoError(t, err)
		assert.Equal(t, want, got.Arch().PerLayer[0], name)
	}
}

func TestOpenErrorsComeThrough(t *testing.T) {
	m, err := Lookup("rope-base")
	require.NoError(t, err)
	broken := errors.New("no backend")
	_, err = m.Reference(newReference(t), func(engine.Weights) (engine.Reference, error) { return nil, broken }, 0)
	require.ErrorIs(t, err, broken)
	_, err = m.Candidate(Sides{Weights: weights(t), Open: func(engine.Weights) (engine.Candidate, error) { return nil, broken }}, 0)
	require.ErrorIs(t, err, broken)
}

// A llama has no biases: the fault that drops them can't be planted, and every
// other one can and names no tensor that isn't there.
func TestFaultsOfALlama(t *testing.T) {
	llama := func() *seeded.Memory {
		w := weights(t)
		w.Architecture.Family = "llama"
		for name := range w.Tensors {
			if strings.HasSuffix(name, ".bias") {
				delete(w.Tensors, name)
			}
		}
		return w
	}
	ids := prompt(t)[:4]
	clean, err := quant.FromWeights(llama()).Emulate(t.Context(), engine.Scheme{}, ids)
	require.NoError(t, err)
	for _, m := range engineFaults() {
		got, err := m.Weights(llama(), 9)
		if m.Name == "q-bias-missing" {
			var unsupported *engine.UnsupportedError
			require.ErrorAs(t, err, &unsupported)
			require.ErrorContains(t, err, "mutant: q-bias-missing: ")
			continue
		}
		require.NoError(t, err, m.Name)
		rows, err := quant.FromWeights(got).Emulate(t.Context(), engine.Scheme{}, ids)
		require.NoError(t, err, m.Name)
		first := 0
		for first < len(rows) && slices.Equal(rows[first], clean[first]) {
			first++
		}
		assert.Equal(t, min(engineCases[m.Name].first, len(rows)), first, m.Name)
	}
	biased := llama()
	biased.Architecture.AttentionBias = true
	for _, p := range []string{"q", "k", "v"} {
		name := "model.layers.9.self_attn." + p + "_proj.bias"
		biased.Tensors[name] = weights(t).Tensors[name]
	}
	m, err := Lookup("q-bias-missing")
	require.NoError(t, err)
	got, err := m.Weights(biased, 9)
	require.NoError(t, err)
	bias, err := got.Tensor("model.layers.9.self_attn.q_proj.bias")
	require.NoError(t, err)
	assert.Equal(t, make([]float32, len(bias.Data)), bias.Data)
}
