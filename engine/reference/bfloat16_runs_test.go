package reference_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
)

// models16 are float32 checkpoints of each family's shape, whose weights bfloat16
// doesn't hold, but for Gemma's.
func models16(t *testing.T) map[string]engine.Weights {
	t.Helper()
	gemma, err := gemma4Checkpoint()
	require.NoError(t, err)
	return map[string]engine.Weights{
		"qwen2": randomWeights(smallArch(), 1),
		"llama": randomWeights(llamaArch(true, false), 5),
		"gemma": gemma,
	}
}

// requireHeld demands that bfloat16 holds every value.
func requireHeld(t *testing.T, what string, rows ...[]float64) {
	t.Helper()
	require.NotEmpty(t, rows, what)
	for i, row := range rows {
		for j, v := range row {
			if !(bf16(v) == v) {
				t.Fatalf("%s: row %d, value %d: got %v, which bfloat16 does not hold", what, i, j, v)
			}
		}
	}
}

// TestBFloat16Compositions: every way to run a prompt rounds, those of one arithmetic
// have the same bits, and the others stray less than bfloat16 itself.
func TestBFloat16Compositions(t *testing.T) {
	for name, w := range models16(t) {
		t.Run(name, func(t *testing.T) {
			a := w.Arch()
			e, ids := mustNew(t, w, reference.WithDType(reference.BFloat16)), prompt(13, a.Vocab)
			exact, err := e.Float64()
			require.NoError(t, err)
			trace := capture(t, e, ids)
			rows := trace.Rows()
			requireHeld(t, "rows", rows...)
			truth, err := exact.Capture(t.Context(), ids)
			require.NoError(t, err)
			near := func(what string, got, want [][]float64, from int) {
				t.Helper()
				for i := from; i < len(want); i++ {
					if err, far := relL2(got[i], want[i]), relL2(want[i], truth.Rows()[i]); !(err <= far) {
						t.Errorf("%s: row %d: %.3g away, want at most bfloat16's own %.3g", what, i, err, far)
					}
				}
			}

			whole, err := e.CaptureWholeStep(t.Context(), ids)
			require.NoError(t, err)
			require.Equal(t, rows, whole)
			hidden, err := e.LastHidden(t.Context(), ids)
			require.NoError(t, err)
			normed, err := e.FinalNorm(t.Context(), rows[a.Layers])
			require.NoError(t, err)
			require.Equal(t, hidden, normed)
			requireHeld(t, "last hidden", hidden)
			embedding, err := e.Embedding(ids[len(ids)-1])
			require.NoError(t, err)
			require.Equal(t, embedding, rows[0])
			batched, err := e.CaptureBatched(t.Context(), ids)
			require.NoError(t, err)
			requireHeld(t, "batched rows", batched...)
			near("batched", batched, rows, 1)

			// A row is rounded when it is handed in.
			unheld := append([]float64(nil), rows[1]...)
			for i := range unheld {
				unheld[i] *= 1 + 0x1p-10 // less than half a step
			}
			for _, in := range [][]float64{rows[1], unheld} {
				out, err := trace.Layer(t.Context(), 1, in)
				require.NoError(t, err)
				require.Equal(t, rows[2], out)
			}

			// Inside the layers, the cache (k_rope and v) included.
			all := probe(t, e, ids, nil, engine.Probes(a)...)
			for p, m := range all {
				for pos := range m.Rows {
					requireHeld(t, string(p), wide(m.Row(pos)))
				}
			}
			var in [][]float64
			for pos := range ids {
				in = append(in, wide(all[engine.RowProbe(1)].Row(pos)))
			}
			run, err := e.LayerAll(t.Context(), 1, in, in)
			require.NoError(t, err)
			for part, rows := range run {
				requireHeld(t, string(part), rows...)
			}

			many := 0
			require.NoError(t, e.CaptureMany(t.Context(), [][]int{ids, append(ids[:9:9], 1, 2)}, reference.ManyOptions{Oracle: true},
				func(c reference.Captured) error {
					if many += c.Shared; c.Index == 0 {
						require.Equal(t, rows, c.Trace.Rows())
						require.Equal(t, rows, c.WholeRows)
					}
					return nil
				}))
			require.Equal(t, 9, many)
		})
	}
}

// TestBFloat16Decodes: the prompt as one batch, in chunks, token by token, and beside
// a longer one.
func TestBFloat16Decodes(t *testing.T) {
	for name, w := range models16(t) {
		t.Run(name, func(t *testing.T) {
			vocab := w.Arch().Vocab
			e, ids, forced := mustNew(t, w, reference.WithDType(reference.BFloat16)), prompt(13, vocab), prompt(4, vocab)
			exact, err := e.Float64()
			require.NoError(t, err)
			truth, err := exact.Decode(t.Context(), ids, engine.DecodeOptions{Forced: forced})
			require.NoError(t, err)
			want := decode(t, e, ids, engine.DecodeOptions{Forced: forced, Chunk: 1}).Logits
			near := func(what string, got [][]float64) {
				t.Helper()
				requireHeld(t, what, got...)
				for i := range want {
					if err, far := relL2(got[i], want[i]), relL2(want[i], truth.Logits[i]); !(err <= far) {
						t.Errorf("%s: row %d: %.3g away, want at most bfloat16's own %.3g", what, i, err, far)
					}
				}
			}
			near("token by token", want)
			near("one batch", decode(t, e, ids, engine.DecodeOptions{Forced: forced}).Logits)
			near("chunks", decode(t, e, ids, engine.DecodeOptions{Forced: forced, Chunk: 5}).Logits)
			batch, err := e.DecodeBatch(t.Context(), [][]int{prompt(17, vocab), ids}, [][]int{forced, forced})
			require.NoError(t, err)
			near("padded", batch[1])
		})
	}
}

// TestBFloat16OtherArithmetics: an engine gives the checkpoint's model in floats,
// with the weights as they are.
func TestBFloat16OtherArithmetics(t *testing.T) {
	w, ids := randomWeights(smallArch(), 1), prompt(9, 50)
	e := mustNew(t, w, reference.WithDType(reference.BFloat16))
	for dtype, other := range map[reference.DType]func() (engine.Reference, error){reference.Float32: e.Float32, reference.Float64: e.Float64} {
		got, err := other()
		require.NoError(t, err)
		again, err := other()
		require.NoError(t, err)
		require.Same(t, got, again)
		require.Equal(t, string(dtype), got.Describe().DType)
		trace, err := got.Capture(t.Context(), ids)
		require.NoError(t, err)
		require.Equal(t, capture(t, mustNew(t, w, reference.WithDType(dtype)), ids).Rows(), trace.Rows())
		require.NotEqual(t, capture(t, e, ids).Rows(), trace.Rows())
	}

	info := e.Describe()
	require.Equal(t, "bfloat16 (emulated)", info.DType)
	require.Equal(t, []string{"bfloat16", "bfloat16", engine.LayersFloat32, engine.LogitsFloat32},
		[]string{info.Weights, info.Activations, info.Layers, info.Logits})
	require.Contains(t, info.KVCache, "bfloat16")
	fused := mustNew(t, w, reference.WithDType(reference.BFloat16), reference.WithFusedAttention())
	require.Equal(t, "bfloat16, float32 inside attention", fused.Describe().Activations)
	plain := mustNew(t, w, reference.WithFusedAttention())
	require.Equal(t, mustNew(t, w).Describe(), plain.Describe())
	require.Equal(t, capture(t, mustNew(t, w), ids).Rows(), capture(t, plain, ids).Rows())
}

// TestBFloat16Weights: a float32 checkpoint's are rounded, and stay what they are for
// others.
func TestBFloat16Weights(t *testing.T) {
	w := untied()
	before := append([]float32(nil), w.tensors["lm_head.weight"].Data...)
	e := mustNew(t, w, reference.WithDType(reference.BFloat16))
	head, err := e.Head()
	require.NoError(t, err)
	require.Equal(t, before, w.tensors["lm_head.weight"].Data)
	for i, v := range before {
		require.Equal(t, bf16(float64(v)), float64(head.Data[i]))
	}
	row, err := e.Embedding(7)
	require.NoError(t, err)
	for i, v := range w.tensors["model.embed_tokens.weight"].Data[7*w.arch.Hidden : 8*w.arch.Hidden] {
		require.Equal(t, bf16(float64(v)), row[i])
	}

	w.tensors["model.norm.weight"].Data[3] = math.MaxFloat32 // rounds to infinity
	_, err = reference.New(w, reference.WithDType(reference.BFloat16))
	require.EqualError(t, err, "engine: weights: tensor model.norm.weight: element 3: got +Inf, want a finite value")
	mustNew(t, w)
}

func TestBFloat16WithAQuantisedCacheIsRefused(t *testing.T) {
	_, err := reference.New(randomWeights(smallArch(), 1), reference.WithDType(reference.BFloat16), reference.WithKVCache(reference.KVQuant{Bits: 8}))
	var unsupported *engine.UnsupportedError
	require.ErrorAs(t, err, &unsupported)
	require.ErrorContains(t, err, "quantised KV cache in bfloat16")
}

// TestBFloat16CapsLogits: quotient, tanh and product are rounded each. Another cap
// than the recorded model's, which is a power of two and hides it.
func TestBFloat16CapsLogits(t *testing.T) {
	const limit = 3
	c, err := gemma4Checkpoint()
	require.NoError(t, err)
	row := make([]float64, c.Arch().Hidden)
	for i := range row {
		row[i] = math.Sin(float64(i))
	}
	logits := func(limit float64) []float64 {
		w := &altered{c, c.Arch(), nil}
		w.arch.LogitCap = limit
		got, err := mustNew(t, w, reference.WithDType(reference.BFloat16)).Logits(t.Context(), row)
		require.NoError(t, err)
		return got
	}
	free, got := logits(0), logits(limit)
	want := func(quotient, tanh func(float64) float64) [][]float64 {
		out := make([]float64, len(free))
		for i, v := range free {
			out[i] = bf16(tanh(math.Tanh(quotient(v/limit))) * limit)
		}
		return [][]float64{out}
	}
	as := func(x float64) float64 { return x }
	if s := share16(t, [][]float64{got}, want(bf16, bf16)); !(s <= 0.01) {
		t.Errorf("%.4f of the values differ", s)
	}
	for what, control := range map[string][][]float64{"quotient": want(as, bf16), "tanh": want(bf16, as)} {
		if s := share16(t, [][]float64{got}, control); !(s >= 0.1) {
			t.Errorf("without the rounding of the %s: %.4f of the values differ", what, s)
		}
	}
}
