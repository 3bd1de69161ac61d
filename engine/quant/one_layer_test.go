package quant

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/internal/seeded"
)

// layerParts are the parts of a layer without a router.
var layerParts = []engine.Part{engine.PartAttnNorm, engine.PartQ, engine.PartK, engine.PartV, engine.PartQRope, engine.PartKRope,
	engine.PartAttnOut, engine.PartResidMid, engine.PartMLPOut, engine.PartResidPost}

// layerSchemes are those of the format: int8, its rows, and ggml's.
func layerSchemes() []engine.Scheme {
	return append(blockSchemes(), engine.Scheme{}, engine.Scheme{RowsInt8: true},
		engine.Scheme{FloatWeights: true, ActivationBlock: 32, KVCache: engine.KVCache{K: engine.KVQ8_0, V: engine.KVQ8_0}})
}

// allRows is the residual stream of a run at every position, [layers+1][ids][hidden].
func allRows(t testing.TB, e *Emulation, scheme engine.Scheme, ids []int) (rows [][][]float64) {
	t.Helper()
	require.NoError(t, e.run(t.Context(), scheme, ids, nil, func(x, _ []float64) {
		var at [][]float64
		for row := range slices.Chunk(x, e.arch.Hidden) {
			at = append(at, slices.Clone(row))
		}
		rows = append(rows, at)
	}))
	return rows
}

func emulateLayer(t testing.TB, e *Emulation, scheme engine.Scheme, n int, in, mid [][]float64) engine.LayerRun {
	t.Helper()
	run, err := e.EmulateLayer(t.Context(), scheme, n, in, mid)
	require.NoError(t, err)
	return run
}

// A layer that is given a run's rows makes the run's next rows, bit for bit, and
// the embedding is the first of them: with options and whatever is planted.
func TestOneLayerIsThatOfARun(t *testing.T) {
	const last = -1
	for name, c := range map[string]struct {
		fault engine.Fault
		opts  []Option
	}{
		"plain":       {},
		"kv int8":     {opts: []Option{KVCacheInt8()}},
		"stale":       {fault: engine.Fault{StaleCache: true, StaleLayer: 3, StalePosition: last}},
		"shift":       {fault: engine.Fault{DecodeShift: 2, DecodeFrom: -3}},
		"embed first": {fault: engine.Fault{EmbedFirst: true}, opts: []Option{EmbeddingPerRow()}},
	} {
		for _, scheme := range layerSchemes() {
			w := *model(t).(*seeded.Memory)
			w.Architecture.Fault = c.fault
			e, ids := FromWeights(&w, append(c.opts, WithCache(partsCache))...), prompts(t)[2].TokenIDs[:9]
			rows := allRows(t, e, scheme, ids)
			embed, err := e.EmulateEmbedding(t.Context(), scheme, ids)
			require.NoError(t, err)
			require.Equal(t, rows[0], embed, "%s, %+v: embedding", name, scheme)
			for n := range 5 {
				run := emulateLayer(t, e, scheme, n, rows[n], nil)
				require.Equal(t, rows[n+1], run[engine.PartResidPost], "%s, %+v: layer %d", name, scheme, n)
				require.Equal(t, run, emulateLayer(t, e, scheme, n, rows[n], run[engine.PartResidMid]), "%s, %+v: layer %d on its own resid_mid", name, scheme, n)
			}
		}
	}
}

// Every part is what a naive implementation has at its place, token by token.
func TestLayerPartsMatchANaiveImplementation(t *testing.T) {
	ids := []int{3, 11, 0, 18, 11, 7, 5}
	layers, ties := 0, 0
	for _, c := range naiveCases() {
		for _, scheme := range layerSchemes() {
			for i, w := range []*seeded.Memory{tiny(0), tiny(1)} {
				nearest := 1.0
				m := c.naive.under(scheme)
				m.w, m.nearest = c.of(w), &nearest
				var embed [][]float64
				parts, near := make([]engine.LayerRun, w.Architecture.Layers), []float64{1, 1, 1}
				m.see = func(n int, part engine.Part, x []float64) {
					if n < 0 {
						embed, nearest = append(embed, x), 1
						return
					}
					if parts[n] == nil {
						parts[n] = engine.LayerRun{}
					}
					parts[n][part] = append(parts[n][part], x)
					near[n], nearest = min(near[n], nearest), 1
				}
				m.rows(ids)
				e := FromWeights(w, c.opts...)
				got, err := e.EmulateEmbedding(t.Context(), scheme, ids)
				require.NoError(t, err)
				if d := worst(t, got, embed); !(d <= 1e-9) {
					t.Errorf("%s, %+v, model %d: embedding: relative L2 %v, want at most 1e-9", c.name, scheme, i, d)
				}
				in := embed
				for n, want := range parts {
					run := emulateLayer(t, e, scheme, n, in, nil)
					require.Len(t, run, len(layerParts))
					in, layers = want[engine.PartResidPost], layers+1
					// each part is looked at: the scores behind attention's weights
					// have the rounding of several sums
					if near[n] < 4*nearTie {
						ties++
						continue // either code is right
					}
					for _, part := range layerParts {
						if d := worst(t, run[part], want[part]); !(d <= float32Sums) {
							t.Errorf("%s, %+v, model %d, layer %d: %s: relative L2 %v, want at most %v", c.name, scheme, i, n, part, d, float32Sums)
						}
					}
				}
			}
		}
	}
	assert.Less(t, 4*ties, layers, "%d of %d layers left out since a code is near a tie", ties, layers)
}

// The MLP works on each position alone: on rows in another order it gives its
// results in that order, whatever went into attention.
func TestMLPHalfFollowsMid(t *testing.T) {
	for _, scheme := range layerSchemes() {
		e, ids := FromWeights(model(t), WithCache(partsCache)), prompts(t)[1].TokenIDs[:6]
		in := allRows(t, e, scheme, ids)[2]
		own := emulateLayer(t, e, scheme, 2, in, nil)
		mid := slices.Clone(own[engine.PartResidMid])
		slices.Reverse(mid)
		got := emulateLayer(t, e, scheme, 2, in, mid)
		for _, part := range layerParts {
			want := slices.Clone(own[part])
			if part == engine.PartMLPOut || part == engine.PartResidPost {
				slices.Reverse(want)
			}
			assert.Equal(t, want, got[part], "%+v: %s", scheme, part)
		}
	}
}

// Rows that are handed in are an engine's own: a scheme with int8 rows takes them
// as they are, and nobody writes them.
func TestRowsHandedInAreNotRounded(t *testing.T) {
	e := FromWeights(tiny(1))
	in, mid := [][]float64{make([]float64, 10), make([]float64, 10)}, [][]float64{make([]float64, 10), make([]float64, 10)}
	for i := range 10 {
		in[0][i], in[1][i] = math.Sin(float64(i)), math.Cos(1.7*float64(i))
		mid[0][i], mid[1][i] = math.Cos(float64(i)), math.Sin(2.3*float64(i))
	}
	float, int8Rows := emulateLayer(t, e, engine.Scheme{}, 1, in, mid), emulateLayer(t, e, engine.Scheme{RowsInt8: true}, 1, in, mid)
	for _, part := range layerParts {
		rounded := part == engine.PartResidMid || part == engine.PartResidPost
		assert.Equal(t, !rounded, slices.EqualFunc(float[part], int8Rows[part], slices.Equal), "%s: the same with float and int8 rows", part)
	}
	for i, row := range float[engine.PartResidPost] {
		for j, v := range row {
			assert.Equal(t, v, mid[i][j]+float[engine.PartMLPOut][i][j], "position %d, value %d", i, j)
		}
	}
	assert.Equal(t, []float64{0, 1}, []float64{in[0][0], in[1][0]})
	assert.Equal(t, math.Cos(9), mid[0][9])
	float[engine.PartQ][0][0], int8Rows[engine.PartResidMid][0] = 1e9, nil
	assert.NotEqual(t, 1e9, float[engine.PartQRope][0][0], "parts share memory")
}

func TestBrokenLayerInput(t *testing.T) {
	rows := func(n, width int) (out [][]float64) {
		for range n {
			out = append(out, make([]float64, width))
		}
		return out
	}
	nan := rows(3, 10)
	nan[2][4] = math.NaN()
	for _, c := range []struct {
		name    string
		n       int
		in, mid [][]float64
		scheme  engine.Scheme
		want    string
	}{
		{"negative layer", -1, rows(1, 10), nil, engine.Scheme{}, "quant: layer: got -1, want 0 to 2"},
		{"layer behind the last", 3, rows(1, 10), nil, engine.Scheme{}, "quant: layer: got 3, want 0 to 2"},
		{"no rows", 1, nil, nil, engine.Scheme{}, "quant: layer 1: got no input rows, want at least one"},
		{"narrow row", 1, append(rows(1, 10), rows(1, 9)...), nil, engine.Scheme{}, "quant: layer 1: input: row 1: got 9 values, want 10"},
		{"wide row", 1, rows(1, 11), nil, engine.Scheme{}, "quant: layer 1: input: row 0: got 11 values, want 10"},
		{"fewer mid rows", 1, rows(2, 10), rows(1, 10), engine.Scheme{}, "quant: layer 1: resid_mid: got 1 rows, want 2"},
		{"no mid rows", 1, rows(2, 10), [][]float64{}, engine.Scheme{}, "quant: layer 1: resid_mid: got 0 rows, want 2"},
		{"narrow mid row", 1, rows(2, 10), rows(2, 9), engine.Scheme{}, "quant: layer 1: resid_mid: row 0: got 9 values, want 10"},
		{"NaN", 1, nan, nil, engine.Scheme{}, "blocks.1.attn_norm: position 2: got a NaN or infinity"},
		{"NaN in mid", 1, rows(3, 10), nan, engine.Scheme{}, "blocks.1.mlp_norm: position 2: got a NaN or infinity"},
		{"scheme", 1, rows(1, 10), nil, engine.Scheme{ActivationBlock: -1}, "activation block: got -1"},
	} {
		run, err := FromWeights(tiny(1)).EmulateLayer(t.Context(), c.scheme, c.n, c.in, c.mid)
		require.ErrorContains(t, err, c.want, c.name)
		require.Nil(t, run, c.name)
	}

	w := tiny(1)
	delete(w.Tensors, "model.layers.2.mlp.gate_proj.weight")
	var config *engine.ConfigError
	_, err := FromWeights(w).EmulateLayer(t.Context(), engine.Scheme{}, 2, rows(1, 10), nil)
	require.ErrorAs(t, err, &config)
	emulateLayer(t, FromWeights(w), engine.Scheme{}, 1, rows(1, 10), nil) // only the layer that was asked for

	w.Architecture.Family = "gemma4"
	var unsupported *engine.UnsupportedError
	_, err = FromWeights(w).EmulateLayer(t.Context(), engine.Scheme{}, 0, rows(1, 10), nil)
	require.ErrorAs(t, err, &unsupported)
	_, err = FromWeights(w).EmulateEmbedding(t.Context(), engine.Scheme{}, []int{1})
	require.ErrorAs(t, err, &unsupported)
}

func TestBrokenEmbeddingInput(t *testing.T) {
	e := FromWeights(tiny(1))
	_, err := e.EmulateEmbedding(t.Context(), engine.Scheme{}, nil)
	require.ErrorContains(t, err, "got no token ids")
	_, err = e.EmulateEmbedding(t.Context(), engine.Scheme{}, []int{3, 19})
	require.ErrorContains(t, err, "token id 1: got 19, want 0 to 18")
	_, err = e.EmulateEmbedding(t.Context(), engine.Scheme{ActivationBlock: -1}, []int{3})
	require.ErrorContains(t, err, "activation block: got -1")
}

func TestOneLayerHonoursContext(t *testing.T) {
	why := errors.New("deadline of the case")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	e := FromWeights(tiny(1))
	_, err := e.EmulateLayer(ctx, engine.Scheme{}, 0, [][]float64{make([]float64, 10)}, nil)
	require.ErrorIs(t, err, why)
	_, err = e.EmulateEmbedding(ctx, engine.Scheme{}, []int{1})
	require.ErrorIs(t, err, why)
}
