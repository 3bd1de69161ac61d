package quant

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/internal/seeded"
	"github.com/plumbline-go/plumbline/fixtures"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// worst is the largest relative L2 difference of two captures, row by row; NaN
// counts as infinite.
func worst(t *testing.T, got, want [][]float64) float64 {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %d rows, want %d", len(got), len(want))
	}
	out := 0.0
	for i := range got {
		if len(got[i]) != len(want[i]) {
			t.Fatalf("row %d: got %d values, want %d", i, len(got[i]), len(want[i]))
		}
		diff, norm := 0.0, 0.0
		for j := range got[i] {
			d := got[i][j] - want[i][j]
			diff, norm = diff+d*d, norm+want[i][j]*want[i][j]
		}
		e := math.Sqrt(diff / norm)
		if !(e <= out) {
			out = e
		}
		if math.IsNaN(e) {
			return math.Inf(1)
		}
	}
	return out
}

// naiveCases are the variants and planted faults that a naive implementation
// follows; positions are those of a prompt of 7 tokens.
func naiveCases() []naiveCase {
	return []naiveCase{
		{name: "plain"},
		{name: "kv int8", opts: []Option{KVCacheInt8()}, naive: naive{kv8: true}},
		{name: "half away", opts: []Option{RoundHalfAway()}, naive: naive{away: true}},
		{name: "embedding per row", opts: []Option{EmbeddingPerRow()}, naive: naive{embedPerRow: true}},
		{name: "weights per tensor", opts: []Option{WeightsPerTensor()}, naive: naive{perTensor: true}},
		{name: "stale cache", fault: engine.Fault{StaleCache: true, StaleLayer: 1, StalePosition: 4}},
		{name: "stale cache from the end", fault: engine.Fault{StaleCache: true, StaleLayer: 0, StalePosition: -1}},
		{name: "stale cache outside the prompt", fault: engine.Fault{StaleCache: true, StaleLayer: 0, StalePosition: 7}},
		{name: "decode shift", fault: engine.Fault{DecodeShift: 2, DecodeFrom: 3}},
		{name: "decode shift from the end", fault: engine.Fault{DecodeShift: -1, DecodeFrom: -2}},
		{name: "first token embedded", fault: engine.Fault{EmbedFirst: true}},
		{name: "llama", model: asLlama},
		{name: "llama with biases", model: asBiasedLlama},
	}
}

// asBiasedLlama gives o a bias as well, here the values of another tensor.
func asBiasedLlama(w *seeded.Memory) {
	w.Architecture.Family, w.Architecture.AttentionBias = "llama", true
	for n := range w.Architecture.Layers {
		p := fmt.Sprintf("model.layers.%d.", n)
		w.Tensors[p+"self_attn.o_proj.bias"] = w.Tensors[p+"post_attention_layernorm.weight"]
	}
}

// asLlama takes the biases away.
func asLlama(w *seeded.Memory) {
	w.Architecture.Family = "llama"
	for name := range w.Tensors {
		if strings.HasSuffix(name, ".bias") {
			delete(w.Tensors, name)
		}
	}
}

type naiveCase struct {
	name  string
	opts  []Option
	naive naive
	fault engine.Fault
	// model, when not nil, makes another of the tiny one.
	model func(w *seeded.Memory)
}

// of makes the tiny model that of the case.
func (c naiveCase) of(w *seeded.Memory) *seeded.Memory {
	w.Architecture.Fault = c.fault
	if c.model != nil {
		c.model(w)
	}
	return w
}

func TestEmulationMatchesANaiveImplementation(t *testing.T) {
	ids := []int{3, 11, 0, 18, 11, 7, 5}
	for _, c := range naiveCases() {
		for _, int8Rows := range []bool{false, true} {
			for seed := range uint64(3) {
				w := c.of(tiny(seed))
				m := c.naive
				m.w, m.rowsInt8 = w, int8Rows
				got, err := FromWeights(w, c.opts...).Emulate(t.Context(), engine.Scheme{RowsInt8: int8Rows}, ids)
				require.NoError(t, err)
				// int8 rows: the 31-bit scale alone moves values by 2^-32
				if e := worst(t, got, m.rows(ids)); !(e <= 1e-9) {
					t.Errorf("%s, int8 rows %v, seed %d: relative L2 %v, want at most 1e-9", c.name, int8Rows, seed, e)
				}
			}
		}
	}
}

//go:embed testdata/numpy_rows.json
var numpyRows []byte

func TestEmulationMatchesNumpy(t *testing.T) {
	var recorded []struct {
		Prompt   string               `json:"prompt"`
		RowsInt8 bool                 `json:"rows_int8"`
		Rows     map[string][]float64 `json:"rows"`
		Logits   []float64            `json:"every_8th_logit"`
	}
	require.NoError(t, json.Unmarshal(numpyRows, &recorded))
	require.Len(t, recorded, 8)
	e, cases := FromWeights(model(t)), prompts(t)
	for _, r := range recorded {
		i := slices.IndexFunc(cases, func(c engine.Case) bool { return c.Name == r.Prompt })
		require.GreaterOrEqual(t, i, 0, r.Prompt)
		rows, err := e.Emulate(t.Context(), engine.Scheme{RowsInt8: r.RowsInt8}, cases[i].TokenIDs)
		require.NoError(t, err)
		require.Len(t, r.Rows, 4)
		for name, want := range r.Rows {
			n, err := strconv.Atoi(name)
			require.NoError(t, err)
			// recorded with nine digits
			if e := worst(t, rows[n:n+1], [][]float64{want}); !(e <= 1e-8) {
				t.Errorf("%s, int8 rows %v, row %d: relative L2 %v, want at most 1e-8", r.Prompt, r.RowsInt8, n, e)
			}
		}
		logits, err := e.EmulateLogits(t.Context(), engine.Scheme{RowsInt8: r.RowsInt8}, cases[i].TokenIDs, []int{0})
		require.NoError(t, err)
		require.Len(t, r.Logits, 48)
		var got []float64
		for id := 0; id < len(logits[0]); id += 8 {
			got = append(got, logits[0][id])
		}
		if e := worst(t, [][]float64{got}, [][]float64{r.Logits}); !(e <= 1e-8) {
			t.Errorf("%s, int8 rows %v, logits: relative L2 %v, want at most 1e-8", r.Prompt, r.RowsInt8, e)
		}
	}
}

func model(t testing.TB) engine.Weights {
	w, err := seeded.Weights()
	require.NoError(t, err)
	return w
}

func prompts(t testing.TB) []engine.Case {
	cases, err := fixtures.SeededPrompts()
	require.NoError(t, err)
	return cases
}

// A batched run must be a token-by-token run: the state at position t is what
// the prompt cut after t gives, bit for bit.
func TestBatchEqualsTokenByToken(t *testing.T) {
	ids := prompts(t)[2].TokenIDs
	e := FromWeights(model(t))
	scheme := engine.Scheme{RowsInt8: true}
	var all [][]float64
	require.NoError(t, e.run(t.Context(), scheme, ids, nil, func(x, _ []float64) { all = append(all, slices.Clone(x)) }))
	for n := 1; n <= len(ids); n++ {
		rows, err := e.Emulate(t.Context(), scheme, ids[:n])
		require.NoError(t, err)
		h := len(rows[0])
		for i := range rows {
			if !slices.Equal(rows[i], all[i][(n-1)*h:n*h]) {
				t.Fatalf("position %d, row %d: the batched run differs in bits", n-1, i)
			}
		}
	}
}

func TestInt8RowsAreCodes(t *testing.T) {
	e := FromWeights(model(t))
	rows, steps, err := e.lastRows(t.Context(), engine.Scheme{RowsInt8: true}, prompts(t)[1].TokenIDs, nil)
	require.NoError(t, err)
	for i, row := range rows {
		top := 0.0
		for j, v := range row {
			c := math.Round(v / steps[i])
			if c*steps[i] != v {
				t.Fatalf("row %d, value %d: %v is no multiple of %v", i, j, v, steps[i])
			}
			top = math.Max(top, math.Abs(c))
		}
		assert.Equal(t, 127.0, top, "row %d: largest code", i)
	}
	_, steps, err = e.lastRows(t.Context(), engine.Scheme{}, prompts(t)[1].TokenIDs, nil)
	require.NoError(t, err)
	for i, s := range steps {
		assert.Zero(t, s, "float row %d has a step", i)
	}
}

func TestVariantsDifferFromThePlainEmulationAndFromEachOther(t *testing.T) {
	w, ids := model(t), prompts(t)[4].TokenIDs
	cache := NewCache()
	seen := map[string][][]float64{}
	var err error
	seen["plain"], err = FromWeights(w, WithCache(cache)).Emulate(t.Context(), engine.Scheme{RowsInt8: true}, ids)
	require.NoError(t, err)
	for _, v := range Variants() {
		rows, err := FromWeights(w, append(v.Options, WithCache(cache))...).Emulate(t.Context(), engine.Scheme{RowsInt8: true}, ids)
		require.NoError(t, err)
		for name, other := range seen {
			if e := worst(t, rows, other); !(e > 1e-3 && e < 0.5) {
				t.Errorf("%s against %s: relative L2 %v, want honest differences in (0.001, 0.5)", v.Name, name, e)
			}
		}
		seen[v.Name] = rows
	}
}

func TestCacheIsSharedByMemory(t *testing.T) {
	w := tiny(1)
	ids := []int{1, 2, 3}
	emulate := func(w engine.Weights, opts ...Option) [][]float64 {
		rows, err := FromWeights(w, opts...).Emulate(t.Context(), engine.Scheme{}, ids)
		require.NoError(t, err)
		return rows
	}
	base := NewCache()
	clean := emulate(w, WithCache(base))
	require.Equal(t, 7*3, base.Len())
	emulate(w, WithCache(base))
	require.Equal(t, 7*3, base.Len())

	changed := &seeded.Memory{Architecture: w.Architecture, Tensors: map[string]engine.Tensor{}}
	for k, v := range w.Tensors {
		changed.Tensors[k] = v
	}
	const name = "model.layers.1.mlp.up_proj.weight"
	changed.Tensors[name] = engine.Tensor{Shape: w.Tensors[name].Shape, Data: make([]float32, len(w.Tensors[name].Data))}
	fork := base.Fork()
	got := emulate(changed, WithCache(fork))
	require.Equal(t, 1, fork.Len(), "only the changed tensor is quantised anew")
	require.Equal(t, 7*3, base.Len())
	require.Equal(t, emulate(changed), got, "a shared cache must not change results")
	require.Equal(t, clean[:2], got[:2])
	require.NotEqual(t, clean[2], got[2])
	emulate(w, WithCache(base), RoundHalfAway())
	require.Equal(t, 2*7*3, base.Len(), "another rounding is another entry")
}

func TestConcurrentUse(t *testing.T) {
	e := FromWeights(model(t))
	cases := prompts(t)
	want, err := FromWeights(model(t)).Emulate(t.Context(), engine.Scheme{RowsInt8: true}, cases[1].TokenIDs)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			got, err := e.Emulate(t.Context(), engine.Scheme{RowsInt8: true}, cases[1].TokenIDs)
			assert.NoError(t, err)
			assert.Equal(t, want, got)
		})
	}
	wg.Wait()
}

func TestBrokenInputIsAnError(t *testing.T) {
	type edit func(w *seeded.Memory)
	set := func(name string, i int, v float32) edit {
		return func(w *seeded.Memory) { w.Tensors[name].Data[i] = v }
	}
	nan := float32(math.NaN())
	var config *engine.ConfigError
	var unsupported *engine.UnsupportedError
	for _, c := range []struct {
		name   string
		edit   edit
		ids    []int
		want   string
		target any
	}{
		{"no ids", nil, []int{}, "got no token ids", nil},
		{"negative id", nil, []int{1, -1}, "token id 1: got -1, want 0 to 18", nil},
		{"id outside the vocabulary", nil, []int{19}, "token id 0: got 19", nil},
		{"missing tensor", func(w *seeded.Memory) { delete(w.Tensors, "model.layers.2.mlp.gate_proj.weight") }, nil, "model.layers.2.mlp.gate_proj.weight", &config},
		{"missing bias", func(w *seeded.Memory) { delete(w.Tensors, "model.layers.0.self_attn.q_proj.bias") }, nil, "self_attn.q_proj.bias", &config},
		{"wrong shape", func(w *seeded.Memory) {
			const n = "model.layers.1.self_attn.o_proj.weight"
			w.Tensors[n] = engine.Tensor{Shape: []int{24, 10}, Data: w.Tensors[n].Data}
		}, nil, "got shape [24 10] with 240 values, want shape [10 24]", &config},
		{"NaN weight", set("model.layers.1.mlp.down_proj.weight", 30, nan), nil, "a NaN or infinity in row 2", &config},
		{"NaN embedding", set("model.embed_tokens.weight", 0, nan), nil, "model.embed_tokens.weight", &config},
		{"NaN gain", set("model.layers.1.input_layernorm.weight", 0, nan), nil, "blocks.1.attn_norm: position 0", nil},
		{"infinite bias", set("model.layers.1.self_attn.v_proj.bias", 0, float32(math.Inf(1))), nil, "blocks.1.attn_out", nil},
		{"another family", func(w *seeded.Memory) { w.Architecture.Family = "gemma4" }, nil, `model family "gemma4" not supported`, &unsupported},
		{"odd head dimension", func(w *seeded.Memory) { w.Architecture.HeadDim = 5 }, nil, "head dimension", &config},
		{"heads and groups", func(w *seeded.Memory) { w.Architecture.KVHeads = 3 }, nil, "a multiple of 3", &config},
		{"no layers", func(w *seeded.Memory) { w.Architecture.Layers = 0 }, nil, "layers", &config},
		{"stale layer outside the model", func(w *seeded.Memory) { w.Architecture.Fault = engine.Fault{StaleCache: true, StaleLayer: 3} }, nil, "stale layer", &config},
		{"negative base", func(w *seeded.Memory) { w.Architecture.PerLayer[1].RopeTheta = -1 }, nil, "layer 1: got rope_theta -1", &config},
		{"constants missing", func(w *seeded.Memory) { w.Architecture.PerLayer = nil }, nil, "per-layer constants", &config},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := tiny(1)
			if c.edit != nil {
				c.edit(w)
			}
			ids := c.ids
			if ids == nil {
				ids = []int{1, 2}
			}
			rows, err := FromWeights(w).Emulate(t.Context(), engine.Scheme{RowsInt8: true}, ids)
			require.ErrorContains(t, err, c.want)
			require.Nil(t, rows)
			if c.target != nil {
				require.ErrorAs(t, err, c.target)
			}
		})
	}
}

func TestContextIsHonoured(t *testing.T) {
	why := errors.New("deadline of the case")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	_, err := FromWeights(tiny(1)).Emulate(ctx, engine.Scheme{}, []int{1})
	require.ErrorIs(t, err, why)

	// in the middle of a run: after the embedding and one layer
	ctx, cancel = context.WithCancelCause(t.Context())
	visits := 0
	err = FromWeights(tiny(1)).run(ctx, engine.Scheme{}, []int{1}, nil, func(_, _ []float64) {
		if visits++; visits == 2 {
			cancel(why)
		}
	})
	require.ErrorIs(t, err, why)
	require.Equal(t, 2, visits)
}
