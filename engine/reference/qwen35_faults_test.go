package reference_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/mutant"
	"github.com/plumbline-go/plumbline/engine/reference"
)

// requireMiss demands that float32 rows miss the bound of the clean ones by ten
// times.
func requireMiss(t *testing.T, what string, got, clean64, clean [][]float64) {
	t.Helper()
	for i := range clean {
		if err, bound := relL2(got[i], clean[i]), 10*hybridBound(clean64[i], clean[i]); !(err >= bound) {
			t.Errorf("%s: row %d: %.3g away from the clean loops, want at least %.3g", what, i, err, bound)
		}
	}
}

func only(layer int) func(int) bool { return func(n int) bool { return n == layer } }

// TestHybridMutants: each mutant is what the naive loops compute with the same
// fault, in the runs where it acts; it misses the clean loops by ten times the bound
// there, from its layer on, and leaves other runs alone.
func TestHybridMutants(t *testing.T) {
	sweep(t)
	const tokens = 9
	ids, forced := prompt(tokens, 50), prompt(6, 50)
	clean := hybridPair(t)
	cleanRows, cleanForced := clean.naive.rows(ids), clean.naive.forced(clean.naive.fresh(), ids, forced, nil)
	rows64 := capture(t, clean.double, ids).Rows()
	forced64 := decode(t, clean.double, ids, engine.DecodeOptions{Forced: forced}).Logits
	from := func(pos int, f planted) func(int) planted {
		return func(at int) planted {
			if at < pos {
				return planted{}
			}
			return f
		}
	}
	at := func(pos int, f planted) func(int) planted {
		return func(p int) planted {
			if p != pos {
				return planted{}
			}
			return f
		}
	}
	for _, c := range []struct {
		mutant string
		layer  int
		// steps is what deviates in a run token by token; nil for a fault of the
		// constants or the weights, which all runs have.
		steps func(pos int) planted
		// behind, where it isn't as in steps, is what deviates behind a prompt that
		// runs as one batch; none is a fault that has no effect there.
		none bool
	}{
		{mutant: "recurrent-state-stale", layer: 3, steps: from(tokens-1, planted{stale: only(3)})},
		{mutant: "conv-state-off-by-one", layer: 1, steps: from(0, planted{late: only(1)})},
		{mutant: "conv-state-off-by-one", layer: -1, steps: from(0, planted{late: func(int) bool { return true }})},
		{mutant: "attention-gate-missing", layer: 2},
		{mutant: "attention-gate-missing", layer: -1},
		{mutant: "beta-wrong-row", layer: 4},
		{mutant: "beta-wrong-row", layer: -1},
		{mutant: "stale-cache-row", layer: 3, steps: at(tokens-1, planted{stale: only(3)}), none: true},
		{mutant: "stale-cache-row", layer: 2, steps: at(tokens-1, planted{stale: only(2)}), none: true},
		{mutant: "decode-position-shift", layer: 2, steps: from(tokens-1, planted{turn: 1})},
		{mutant: "q-position-off-by-one", layer: 5},
		{mutant: "kv-heads-swapped", layer: 2},
		{mutant: "layer-skipped", layer: 3},
		{mutant: "norm-gain-ones", layer: 0},
		{mutant: "gate-up-swapped", layer: 0},
	} {
		t.Run(fmt.Sprintf("%s at %d", c.mutant, c.layer), func(t *testing.T) {
			m, err := mutant.Lookup(c.mutant)
			require.NoError(t, err)
			w, err := m.Weights(clean.single.Weights(), c.layer)
			require.NoError(t, err)
			p := newPair(t, w)
			first := c.layer
			if c.layer < 0 {
				first = slices.IndexFunc(hybridArch().PerLayer, func(l engine.LayerParams) bool { return l.Linear == (c.mutant != "attention-gate-missing") })
			}

			want := p.naive.stream(p.naive.fresh(), ids, c.steps)[tokens-1]
			p.require(t, "Capture", want, func(e *reference.Engine) [][]float64 { return capture(t, e, ids).Rows() })
			tr := capture(t, p.single, ids)
			rows := tr.Rows()
			require.True(t, sameBits(rows[:first+1], capture(t, clean.single, ids).Rows()[:first+1]), "rows before the fault")
			requireMiss(t, "Capture", rows[first+1:], rows64[first+1:], cleanRows[first+1:])
			whole, err := p.single.CaptureWholeStep(bg, ids)
			require.NoError(t, err)
			require.True(t, sameBits(whole, rows), "whole step")
			for n := range hybridArch().Layers {
				got, err := tr.Layer(bg, n, rows[n])
				require.NoError(t, err)
				require.True(t, sameBits([][]float64{got}, rows[n+1:n+2]), "layer %d", n)
			}

			require.Equal(t, c.steps != nil, sameBits(batched(t, ids)(p.single), batched(t, ids)(clean.single)), "a batched run is the clean one's")
			require.Equal(t, c.steps != nil, sameBits(decodeBatch(t, p.single, [][]int{ids}, [][]int{forced})[0],
				decodeBatch(t, clean.single, [][]int{ids}, [][]int{forced})[0]), "a batch of sequences is the clean one's")

			// Behind a prompt that ran as one batch, and token by token.
			for _, chunk := range []int{0, 1} {
				plant := c.steps
				if plant != nil && chunk == 0 {
					plant = func(pos int) planted {
						if pos < tokens {
							return planted{}
						}
						return c.steps(pos)
					}
				}
				logits := func(e *reference.Engine) [][]float64 {
					return decode(t, e, ids, engine.DecodeOptions{Forced: forced, Chunk: chunk}).Logits
				}
				p.require(t, fmt.Sprintf("Decode, chunk %d", chunk), p.naive.forced(p.naive.fresh(), ids, forced, plant), logits)
				skip := 0
				if plant != nil && chunk == 0 {
					skip = 1 // the prompt is clean
					require.True(t, sameBits(logits(p.single)[:1], logits(clean.single)[:1]))
				}
				if c.none && chunk == 0 {
					require.True(t, sameBits(logits(p.single), logits(clean.single)))
					continue
				}
				requireMiss(t, fmt.Sprintf("Decode, chunk %d", chunk), logits(p.single)[skip:], forced64[skip:], cleanForced[skip:])
			}
		})
	}
}

// TestHybridFinalNorms: what stands in for a final norm that is skipped, or has its
// weight from before training.
func TestHybridFinalNorms(t *testing.T) {
	clean := hybridPair(t)
	row := capture(t, clean.single, prompt(5, 50)).Rows()[7]
	for name, want := range map[string][]float64{
		"final-norm-skipped": row,
		"final-norm-ones":    naive{}.norm(row, slices.Repeat([]float64{1}, len(row)), 1e-5),
	} {
		m, err := mutant.Lookup(name)
		require.NoError(t, err)
		w, err := m.Weights(clean.single.Weights(), 0)
		require.NoError(t, err)
		for _, d := range []reference.DType{reference.Float32, reference.Float64} {
			got, err := mustNew(t, w, reference.WithDType(d)).FinalNorm(bg, row)
			require.NoError(t, err)
			if err := relL2(got, want); !(err <= 1e-6) {
				t.Errorf("%s in %s: %.3g away", name, d, err)
			}
		}
		good, err := clean.single.FinalNorm(bg, row)
		require.NoError(t, err)
		require.False(t, relL2(good, want) <= 1e-2)
	}
}

// TestHybridFaultsOfOtherRuns: chunks that are rotated too far, a cache and a state
// that the next request finds, padding that isn't masked, sequences of a batch whose
// cache and state aren't written.
func TestHybridFaultsOfOtherRuns(t *testing.T) {
	sweep(t)
	clean := hybridPair(t)
	ids, forced := prompt(9, 50), prompt(5, 50)
	faulty := func(f engine.Fault) pair {
		a := hybridArch()
		a.Fault = f
		return newPair(t, &memWeights{a, clean.single.Weights().(*memWeights).tensors})
	}
	want := clean.naive.forced(clean.naive.fresh(), ids, forced, nil)
	want64 := decode(t, clean.double, ids, engine.DecodeOptions{Forced: forced}).Logits

	t.Run("chunk shift", func(t *testing.T) {
		p := faulty(engine.Fault{ChunkShift: 1})
		bad := p.naive.forced(p.naive.fresh(), ids, forced, func(pos int) planted {
			if pos >= 4 && pos < len(ids) {
				return planted{turn: 1}
			}
			return planted{}
		})
		run := func(e *reference.Engine) [][]float64 {
			return decode(t, e, ids, engine.DecodeOptions{Forced: forced, Chunk: 4}).Logits
		}
		p.require(t, "chunks", bad, run)
		requireMiss(t, "chunks", run(p.single), want64, want)
	})

	t.Run("cache kept", func(t *testing.T) {
		for _, chunk := range []int{0, 1, 4} {
			p := faulty(engine.Fault{KeepCache: true})
			before := prompt(6, 50)
			for _, e := range []*reference.Engine{p.single, p.double} {
				decode(t, e, before, engine.DecodeOptions{Forced: []int{3, 4, 5}, Chunk: chunk})
			}
			st := p.naive.fresh()
			p.naive.forced(st, before, []int{3, 4, 5}, nil) // its last token is never run
			require.Equal(t, 8, st.length)
			bad := p.naive.forced(st, ids, forced, nil)
			rows := map[*reference.Engine][][]float64{}
			for _, e := range []*reference.Engine{p.single, p.double} {
				rows[e] = decode(t, e, ids, engine.DecodeOptions{Forced: forced, Chunk: chunk}).Logits
			}
			p.require(t, "the second request", bad, func(e *reference.Engine) [][]float64 { return rows[e] })
			requireMiss(t, "the second request", rows[p.single], want64, want)
		}
	})

	prompts, lists := crowd()
	longest := 0
	for _, ids := range prompts {
		longest = max(longest, len(ids))
	}
	t.Run("padding unmasked", func(t *testing.T) {
		p := faulty(engine.Fault{BatchPaddingUnmasked: true})
		rows := map[*reference.Engine][][][]float64{p.single: decodeBatch(t, p.single, prompts, lists), p.double: decodeBatch(t, p.double, prompts, lists)}
		for i, ids := range prompts {
			st := p.naive.fresh()
			for range longest - len(ids) {
				p.naive.step(st, 0, 0, planted{}) // the padding is token 0 at position 0
			}
			bad := p.naive.forced(st, ids, lists[i], nil)
			p.require(t, fmt.Sprintf("sequence %d", i), bad, func(e *reference.Engine) [][]float64 { return rows[e][i] })
			if len(ids) == longest {
				continue
			}
			good := clean.naive.forced(clean.naive.fresh(), ids, lists[i], nil)
			good64 := decode(t, clean.double, ids, engine.DecodeOptions{Forced: lists[i]}).Logits
			// The state forgets: of the longest paddings in front of short prompts
			// alone enough is left.
			requireMiss(t, fmt.Sprintf("sequence %d", i), rows[p.single][i], good64, good)
		}
	})

	t.Run("batch row stale", func(t *testing.T) {
		p := faulty(engine.Fault{BatchRowStale: true})
		rows := map[*reference.Engine][][][]float64{p.single: decodeBatch(t, p.single, prompts, lists), p.double: decodeBatch(t, p.double, prompts, lists)}
		require.True(t, sameBits(rows[p.single][0], decodeBatch(t, clean.single, prompts, lists)[0]), "the first sequence is clean")
		for i, ids := range prompts[1:] {
			i++
			bad := p.naive.forced(p.naive.fresh(), ids, lists[i], func(pos int) planted {
				if pos < len(ids) {
					return planted{}
				}
				return planted{stale: func(int) bool { return true }}
			})
			p.require(t, fmt.Sprintf("sequence %d", i), bad, func(e *reference.Engine) [][]float64 { return rows[e][i] })
			good := clean.naive.forced(clean.naive.fresh(), ids, lists[i], nil)
			good64 := decode(t, clean.double, ids, engine.DecodeOptions{Forced: lists[i]}).Logits
			requireMiss(t, fmt.Sprintf("sequence %d", i), rows[p.single][i][1:], good64[1:], good[1:])
		}
	})
}
