package quant

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/internal/seeded"
)

// blockSchemes are schemes with sums of float32; blocks of 4 divide no width of
// the tiny model evenly.
func blockSchemes() []engine.Scheme {
	f16, q8 := engine.KVFloat16, engine.KVQ8_0
	return []engine.Scheme{
		{FloatWeights: true},
		{FloatWeights: true, ActivationBlock: 4},
		{FloatWeights: true, ActivationBlock: 32, KVCache: engine.KVCache{K: f16, V: f16}},
		{FloatWeights: true, ActivationBlock: 4, KVCache: engine.KVCache{K: q8, V: f16}, RowsInt8: true},
		{FloatWeights: true, ActivationBlock: 4, KVCache: engine.KVCache{K: f16, V: q8}},
		{ActivationBlock: 4, KVCache: engine.KVCache{K: q8, V: q8}},
	}
}

// float32Sums is how far float32 sums over a few factors may lie from float64:
// three layers of them, each with some roundings of 2^-24.
const float32Sums = 2e-6

// nearTie is how near to a tie float32 sums can turn a code, as a share of the
// largest one: a rounding.
const nearTie = 0x1p-24

func TestBlockSchemesMatchANaiveImplementation(t *testing.T) {
	ids, output := []int{3, 11, 0, 18, 11, 7, 5}, []int{1, 18, 4}
	runs, ties := 0, 0
	cases := append(naiveCases(), naiveCase{name: "embedding per row", opts: []Option{EmbeddingPerRow()}, naive: naive{embedPerRow: true}})
	for _, c := range cases {
		for _, scheme := range blockSchemes() {
			for i, w := range []*seeded.Memory{tiny(0), untied(tiny(1))} {
				m := c.naive.under(scheme)
				nearest := 1.0
				runs++
				m.w, m.nearest = c.of(w), &nearest
				e := FromWeights(w, c.opts...)
				rows, logits := m.run(ids, output)
				got, err := e.Emulate(t.Context(), scheme, ids)
				require.NoError(t, err)
				if nearest < nearTie {
					ties++
					continue // either code is right
				}
				if d := worst(t, got, rows); !(d <= float32Sums) {
					t.Errorf("%s, %+v, model %d: rows: relative L2 %v, want at most %v", c.name, scheme, i, d, float32Sums)
				}
				got, err = e.EmulateLogits(t.Context(), scheme, ids, output)
				require.NoError(t, err)
				if d := worst(t, got, logits); !(d <= float32Sums) {
					t.Errorf("%s, %+v, model %d: logits: relative L2 %v, want at most %v", c.name, scheme, i, d, float32Sums)
				}
			}
		}
	}
	assert.Less(t, 4*ties, runs, "%d of %d runs left out since a code is near a tie", ties, runs)
}

// The candidate decodes from its cache what one run of prompt and output gives.
func TestBlockCandidateIsTheEmulation(t *testing.T) {
	ids := prompts(t)[1].TokenIDs
	e := FromWeights(model(t))
	for _, scheme := range blockSchemes() {
		resp, err := e.Candidate(scheme).Run(t.Context(), engine.Request{Case: engine.Case{TokenIDs: ids}, DecodeSteps: 4})
		require.NoError(t, err)
		want, err := e.EmulateLogits(t.Context(), scheme, ids, resp.OutputIDs)
		require.NoError(t, err)
		for i, row := range logitsOf(t, resp) {
			for j, v := range want[i] {
				require.Equal(t, float64(float32(v)), row[j], "%+v: step %d, id %d", scheme, i, j)
			}
		}
		rows, err := e.Emulate(t.Context(), scheme, ids)
		require.NoError(t, err)
		for i, want := range rows {
			row := make([]float64, len(want))
			step, err := resp.Layers.Row(i, row)
			require.NoError(t, err)
			assert.Equal(t, want, row)
			assert.Equal(t, scheme.RowsInt8, step != 0, "%+v: row %d: step %v", scheme, i, step)
		}
	}
}

func TestBlockCandidateDeclaresItsScheme(t *testing.T) {
	kv := engine.KVCache{K: engine.KVQ8_0, V: engine.KVFloat16}
	for _, c := range []struct {
		scheme engine.Scheme
		opts   []Option
		want   [3]string
	}{
		{engine.Scheme{}, nil, [3]string{"int8", "int8", "float64"}},
		{engine.Scheme{FloatWeights: true, ActivationBlock: 32, KVCache: kv}, nil, [3]string{"f32", "int8-block32", "q8_0 K"}},
		{engine.Scheme{FloatWeights: true, KVCache: kv}, []Option{KVCacheInt8()}, [3]string{"f32", "int8", "int8"}},
	} {
		info, err := FromWeights(tiny(1), c.opts...).Candidate(c.scheme).Info(t.Context())
		require.NoError(t, err)
		assert.Equal(t, c.want, [3]string{info.Weights, info.Activations, info.KVCache}, "%+v", c.scheme)
	}
}

// A row of a product doesn't depend on how many rows there are, however long the
// reduction: gonum splits those of large products.
func TestFloatProductsOfARowAreOfThatRowAlone(t *testing.T) {
	const n, rows, cols = 300, 2*tileRows + 3, 200
	data, x := make([]float32, rows*cols), make([]float64, n*cols)
	for i := range data {
		data[i] = float32(math.Sin(float64(i)))
	}
	for i := range x {
		x[i] = math.Cos(1.7 * float64(i))
	}
	m, err := floatMatrix(data, rows, cols)
	require.NoError(t, err)
	for _, scheme := range []engine.Scheme{{FloatWeights: true}, {FloatWeights: true, ActivationBlock: 32}} {
		all, one := make([]float64, n*rows), make([]float64, rows)
		var s scratch
		require.Equal(t, -1, s.quantise(x, n, cols, halfEven, scheme))
		s.mul(all, m, nil, n)
		for i := range n {
			require.Equal(t, -1, s.quantise(x[i*cols:(i+1)*cols], 1, cols, halfEven, scheme))
			s.mul(one, m, nil, 1)
			require.Equal(t, one, all[i*rows:(i+1)*rows], "%+v: row %d", scheme, i)
		}
	}
}

// A float matrix is the checkpoint's memory.
func TestFloatWeightsAreNotCopied(t *testing.T) {
	w := tiny(1)
	e := FromWeights(w)
	l, err := e.float.layers[1]()
	require.NoError(t, err)
	assert.Same(t, &w.Tensors["model.layers.1.mlp.up_proj.weight"].Data[0], &l.up.m.wide[0])
	h, err := e.float.head()
	require.NoError(t, err)
	assert.Same(t, &w.Tensors["model.embed_tokens.weight"].Data[0], &h.m.wide[0])
	assert.Zero(t, e.opt.cache.Len())
}

func TestBrokenSchemes(t *testing.T) {
	nan := float32(math.NaN())
	plain := func(*seeded.Memory) {}
	set := func(name string, v float32) func(*seeded.Memory) {
		return func(w *seeded.Memory) { w.Tensors[name].Data[0] = v }
	}
	f16 := engine.KVCache{K: engine.KVFloat16, V: engine.KVFloat16}
	for _, c := range []struct {
		name   string
		edit   func(*seeded.Memory)
		scheme engine.Scheme
		want   string
	}{
		{"negative block", plain, engine.Scheme{ActivationBlock: -1}, "activation block: got -1, want at least 0"},
		{"keys", plain, engine.Scheme{KVCache: engine.KVCache{K: "q4_0"}}, `keys of the KV cache: got "q4_0", want "f16"`},
		{"values", plain, engine.Scheme{KVCache: engine.KVCache{V: "q4_0"}}, `values of the KV cache: got "q4_0"`},
		{"NaN weight", set("model.layers.1.mlp.down_proj.weight", nan), engine.Scheme{FloatWeights: true}, "model.layers.1.mlp.down_proj.weight"},
		{"NaN embedding", set("model.embed_tokens.weight", nan), engine.Scheme{FloatWeights: true}, "model.embed_tokens.weight"},
		{"NaN gain", set("model.layers.1.input_layernorm.weight", nan), engine.Scheme{ActivationBlock: 4}, "blocks.1.attn_norm: position 0"},
		{"scale beyond float16", set("model.layers.1.input_layernorm.weight", 1e9), engine.Scheme{ActivationBlock: 4}, "blocks.1.attn_norm: position 0"},
		{"key beyond float16", set("model.layers.1.self_attn.k_proj.bias", 1e6), engine.Scheme{KVCache: f16}, "blocks.1: key cache as f16: position 0"},
		{"value beyond float16", set("model.layers.1.self_attn.v_proj.bias", 1e6), engine.Scheme{KVCache: f16}, "blocks.1: value cache as f16: position 0"},
		{"query beyond float16", set("model.layers.1.self_attn.q_proj.bias", 1e6), engine.Scheme{KVCache: f16}, "blocks.1: query as f16: position 0"},
	} {
		w := tiny(1)
		c.edit(w)
		rows, err := FromWeights(w).Emulate(t.Context(), c.scheme, []int{1, 2})
		require.ErrorContains(t, err, c.want, c.name)
		require.Nil(t, rows)
	}
	for _, scheme := range []engine.Scheme{{FloatWeights: true}, {ActivationBlock: 4}} {
		_, err := FromWeights(tiny(1)).Candidate(scheme, Int32Logits()).Run(t.Context(), engine.Request{Case: engine.Case{TokenIDs: []int{1}}})
		var unsupported *engine.UnsupportedError
		require.ErrorAs(t, err, &unsupported, "%+v", scheme)
	}
}

// Every float16, what lies between two of them, and the ends.
func TestToHalf(t *testing.T) {
	var all []float64
	for exp := range 31 {
		for frac := range 1 << 10 {
			v := math.Ldexp(float64(1<<10+frac), exp-25) // normal: 1.frac * 2^(exp-15)
			if exp == 0 {
				v = math.Ldexp(float64(frac), -24)
			}
			all = append(all, v)
		}
	}
	require.Equal(t, 65504.0, all[len(all)-1])
	require.True(t, slices.IsSorted(all))
	for i, v := range all {
		next := 65536.0
		if i+1 < len(all) {
			next = all[i+1]
		}
		middle, even := (v+next)/2, v
		if i%2 == 1 {
			even = next
		}
		if i+1 == len(all) {
			even, next = math.Inf(1), math.Inf(1)
		}
		for x, want := range map[float64]float64{v: v, middle: even, math.Nextafter(middle, 0): v, math.Nextafter(middle, 1e9): next} {
			if toHalf(x) != want || toHalf(-x) != -want {
				t.Fatalf("%v and its negative: got %v and %v, want %v", x, toHalf(x), toHalf(-x), want)
			}
		}
	}
	for _, x := range []float64{1e300, math.Inf(1)} {
		assert.Equal(t, math.Inf(1), toHalf(x))
		assert.Equal(t, math.Inf(-1), toHalf(-x))
	}
	assert.True(t, math.IsNaN(toHalf(math.NaN())))
}

// Two blocks and a shorter one by hand: the codes are made with the scale, and
// stand for multiples of what float16 keeps of it.
func TestBlocksByHand(t *testing.T) {
	x := []float64{127, -63.6, 0.5, 1.5, 0, 0, 0, 0, -1, 0.25}
	want := []float64{127, -64, 0, 2, 0, 0, 0, 0}
	const third = 0x1.02p-7 // 1/127 = 2^-7 * 1.0000001000000100000010…b, to 11 bits 1.0000001000
	want = append(want, -127*third, 32*third)
	got := slices.Clone(x)
	require.True(t, halfEven.blocks(got, 4))
	assert.Equal(t, want, got)
	values := make([]float32, len(x))
	require.True(t, halfEven.blockValues(values, x, 4))
	for i, v := range values {
		assert.Equal(t, want[i], float64(v), "value %d", i)
	}
	require.True(t, halfAway.blocks(x, 4))
	assert.Equal(t, 1.0, x[2], "a tie away from zero")
	for _, bad := range []float64{math.NaN(), math.Inf(-1), 127 * 65536} {
		assert.False(t, halfEven.blocks([]float64{1, 1, 1, 1, bad}, 4), fmt.Sprint(bad))
		assert.False(t, halfEven.blockValues(values, []float64{1, 1, 1, 1, bad}, 4), fmt.Sprint(bad))
	}
}

// A head of 64 has two blocks of a Q8_0 cache. In a llama's keys the channels
// that turn together share one: here 0 and 32 are large, and what is not in their
// block keeps its value.
func TestHeadBlocksFollowTheOrderOfChannels(t *testing.T) {
	for family, want := range map[string]struct{ keys, values []int }{
		"llama": {[]int{16, 31, 48, 63}, nil}, // channels 0 to 15 and 32 to 47 are with 0 and 32
		"qwen2": {nil, nil},
	} {
		p := newPass(engine.Arch{Family: family, HeadDim: 64}, options{}, engine.Scheme{}, 1)
		rounded := func(paired bool) (kept []int) {
			x := make([]float64, 64)
			for i := range x {
				x[i] = 1
			}
			x[0], x[32] = 508, 508 // a step of 4
			require.NoError(t, p.store(x, engine.KVQ8_0, 1, paired, 0, "key"))
			require.Equal(t, []float64{508, 508}, []float64{x[0], x[32]})
			for _, i := range []int{1, 15, 16, 31, 33, 47, 48, 63} {
				if math.Abs(x[i]-1) < 1e-3 {
					kept = append(kept, i)
				} else {
					require.Zero(t, x[i])
				}
			}
			return kept
		}
		assert.Equal(t, want.keys, rounded(p.paired()), "%s: keys", family)
		assert.Equal(t, want.values, rounded(false), "%s: values", family)
	}
}

// Rows that are no whole number of blocks are of a type with blocks of 32.
func TestBlocksFollowTheWidth(t *testing.T) {
	for _, c := range [][3]int{{256, 512, 256}, {256, 576, 32}, {256, 1536, 256}, {32, 48, 32}, {16, 24, 16}, {0, 64, 0}} {
		require.Equal(t, c[2], blockFor(c[0], c[1]), "%v", c)
	}
}
