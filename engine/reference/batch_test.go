package reference_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
)

func decodeBatch(t testing.TB, e engine.Reference, prompts, forced [][]int) [][][]float64 {
	t.Helper()
	out, err := e.DecodeBatch(bg, prompts, forced)
	require.NoError(t, err)
	require.Len(t, out, len(prompts))
	return out
}

// crowd is prompts of unequal lengths, across a capacity step, two of one length
// among them, and what to go on with.
func crowd() (prompts, forced [][]int) {
	other := prompt(9, 50)
	slices.Reverse(other)
	return [][]int{prompt(9, 50), {7}, prompt(63, 50), other, prompt(4, 50)},
		[][]int{{3, 49, 0, 1}, {0, 0, 0, 0}, {5, 6, 7, 8}, {3, 49, 0, 1}, {49, 2, 49, 2}}
}

func TestBatchesMatchNaiveLoops(t *testing.T) {
	w := untied()
	w.arch.PerLayer[1].QueryOffset = 1 // a constant of a layer holds here too
	e := mustNew(t, w)
	double := mustNew(t, w, reference.WithDType(reference.Float64))
	prompts, forced := crowd()
	for _, members := range [][]int{{0, 1, 2, 3, 4}, {0, 3}, {2}, {1}, {4, 2}} {
		t.Run(fmt.Sprint(members), func(t *testing.T) {
			var ps, fs [][]int
			for _, m := range members {
				ps, fs = append(ps, prompts[m]), append(fs, forced[m])
			}
			got, got64 := decodeBatch(t, e, ps, fs), decodeBatch(t, double, ps, fs)
			for i := range ps {
				want := naive{a: w.arch, w: w}.forced(ps[i], fs[i])
				requireClose(t, got[i], want, logitBound(w.arch))
				requireClose(t, got64[i], want, float64Bound)
			}
		})
	}
}

// A sequence is the same, within two float32 bounds, alone, in the batch and in
// the batch in another order; its company's tokens don't change a bit.
func TestCompanyDoesNotMatter(t *testing.T) {
	w := untied()
	e, bound := mustNew(t, w), 2*logitBound(w.arch)
	prompts, forced := crowd()
	together := decodeBatch(t, e, prompts, forced)
	for i := range prompts {
		alone := decode(t, e, prompts[i], engine.DecodeOptions{Forced: forced[i]})
		requireClose(t, together[i], alone.Logits, bound)
	}
	for _, order := range [][]int{{4, 3, 2, 1, 0}, {2, 0, 1, 4, 3}} {
		var ps, fs [][]int
		for _, m := range order {
			ps, fs = append(ps, prompts[m]), append(fs, forced[m])
		}
		for i, rows := range decodeBatch(t, e, ps, fs) {
			requireClose(t, rows, together[order[i]], bound)
		}
	}
	prompts[1], prompts[3] = []int{8}, prompt(9, 50)
	other := decodeBatch(t, e, prompts, forced)
	require.True(t, sameBits(other[0], together[0]))
	require.True(t, sameBits(other[2], together[2]))
	require.False(t, sameBits(other[1], together[1]))
}

func TestUnmaskedPadding(t *testing.T) {
	clean := untied()
	a := clean.arch.Clone()
	a.Fault = engine.Fault{BatchPaddingUnmasked: true}
	w := &memWeights{a, clean.tensors}
	e := mustNew(t, w)
	double, err := e.Float64()
	require.NoError(t, err)
	prompts, forced := crowd()
	ref, got := decodeBatch(t, mustNew(t, clean), prompts, forced), decodeBatch(t, e, prompts, forced)
	got64 := decodeBatch(t, double, prompts, forced)

	// The padding is token 0 at position 0 throughout, and attends to itself:
	// copies of one position lie in front of the prompt.
	one := naive{a: a, w: w, behind: make([]heads, a.Layers)}
	one.stream([]int{0})
	for i, ids := range prompts {
		if len(ids) == 63 {
			require.True(t, sameBits(got[i], ref[i]), "the longest has no padding")
			continue
		}
		m := naive{a: a, w: w}
		for _, h := range one.behind {
			m.front = append(m.front, heads{slices.Repeat(h.k, 63-len(ids)), slices.Repeat(h.v, 63-len(ids))})
		}
		requireClose(t, got64[i], m.forced(ids, forced[i]), float64Bound)
		for j := range got[i] {
			if d := relL2(got[i][j], ref[i][j]); !(d > 1e-3) {
				t.Errorf("sequence %d: row %d: relative L2 from the clean run %.3g, want more than 1e-3", i, j, d)
			}
		}
	}
	same := [][]int{prompts[0], prompts[3]}
	require.Equal(t, decodeBatch(t, mustNew(t, clean), same, forced[:2]), decodeBatch(t, e, same, forced[:2]), "no padding, no fault")
}

func TestStaleRowsOfABatch(t *testing.T) {
	clean := untied()
	a := clean.arch.Clone()
	a.Fault = engine.Fault{BatchRowStale: true}
	w := &memWeights{a, clean.tensors}
	e := mustNew(t, w)
	double, err := e.Float64()
	require.NoError(t, err)
	prompts, forced := crowd()
	ref, got := decodeBatch(t, mustNew(t, clean), prompts, forced), decodeBatch(t, e, prompts, forced)
	got64 := decodeBatch(t, double, prompts, forced)
	require.True(t, sameBits(got[0], ref[0]), "the first sequence is clean")
	for i, ids := range prompts[1:] {
		i++
		require.True(t, sameBits(got[i][:1], ref[i][:1]), "sequence %d: the prefill is clean", i)
		requireClose(t, got64[i], naive{a: a, w: w, unwritten: true}.forced(ids, forced[i]), float64Bound)
		for j := 1; j < len(got[i]); j++ {
			if d := relL2(got[i][j], ref[i][j]); !(d > 1e-3) {
				t.Errorf("sequence %d: row %d: relative L2 from the clean run %.3g, want more than 1e-3", i, j, d)
			}
		}
	}
}

// Faults of single sequences leave batches alone, and those of batches single
// sequences.
func TestFaultsActWhereTheyAreSaidTo(t *testing.T) {
	clean := untied()
	c := mustNew(t, clean)
	prompts, forced := crowd()
	single, batched := clean.arch.Clone(), clean.arch.Clone()
	single.Fault = engine.Fault{StaleCache: true, StalePosition: 2, DecodeShift: 1, DecodeFrom: 3, EmbedFirst: true, ChunkShift: 1, KeepCache: true}
	batched.Fault = engine.Fault{BatchPaddingUnmasked: true, BatchRowStale: true}

	e := mustNew(t, &memWeights{single, clean.tensors})
	decode(t, e, prompts[0], engine.DecodeOptions{}) // leaves its cache
	require.Equal(t, decodeBatch(t, c, prompts, forced), decodeBatch(t, e, prompts, forced))

	e = mustNew(t, &memWeights{batched, clean.tensors})
	require.True(t, sameBits(capture(t, e, prompts[0]).Rows(), capture(t, c, prompts[0]).Rows()))
	for _, chunk := range []int{0, 1, 4} {
		o := engine.DecodeOptions{Forced: forced[0], Chunk: chunk}
		require.Equal(t, decode(t, c, prompts[0], o), decode(t, e, prompts[0], o))
	}
}

func TestBatchRefusals(t *testing.T) {
	for _, c := range []struct {
		prompts, forced [][]int
		text            string
	}{
		{nil, nil, "batch: got no prompts, want at least 1"},
		{[][]int{{1}, {2}}, [][]int{{1}}, "batch: got 1 lists of forced tokens, want one per prompt, 2"},
		{[][]int{{1}, {2}}, [][]int{{1}, {1, 2}}, "batch: sequence 1: got 2 forced tokens, want at least 1 and as many as sequence 0, 1"},
		{[][]int{{1}}, [][]int{{}}, "batch: sequence 0: got 0 forced tokens, want at least 1"},
		{[][]int{{1}, {}}, [][]int{{1}, {1}}, "batch: sequence 1: reference: prompt: got 0 tokens, want at least 1"},
		{[][]int{{1}, {2, 50}}, [][]int{{1}, {1}}, "batch: sequence 1: reference: prompt: token 1: got id 50"},
		{[][]int{{1}, {2}}, [][]int{{1, 1}, {1, -3}}, "batch: sequence 1: reference: forced tokens: reference: prompt: token 1: got id -3"},
		{[][]int{{1}, prompt(128, 50)}, [][]int{{1, 2}, {1, 2}}, "batch: sequence 1: reference: prompt: got 128 tokens with up to 2 new ones"},
	} {
		_, err := small().DecodeBatch(bg, c.prompts, c.forced)
		require.ErrorContains(t, err, c.text)
	}

	w := untied()
	for i := range w.arch.Hidden { // finite, and their products overflow
		w.tensors["lm_head.weight"].Data[7*w.arch.Hidden+i] = 3e38
	}
	_, err := mustNew(t, w).DecodeBatch(bg, [][]int{{1, 2}, {3}}, [][]int{{1}, {1}})
	require.ErrorContains(t, err, "reference: batch: sequence 0: logit row 0: id 7: got ")
}

func TestBatchesLookAtTheContext(t *testing.T) {
	prompts, forced := crowd()
	// Three layers are prefilled in three steps; the rest ends in a decode step.
	for _, calls := range []int{0, 3, 5, 8} {
		_, err := small().DecodeBatch(&errAfter{Context: bg, calls: calls}, prompts, forced)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "reference: ")
	}
}

func ExampleEngine_DecodeBatch() {
	e, err := reference.New(randomWeights(smallArch(), 1)) // or reference.Open(folder)
	if err != nil {
		fmt.Println(err)
		return
	}
	rows, err := e.DecodeBatch(context.Background(), [][]int{{7, 3, 21}, {40}}, [][]int{{1, 2}, {3, 4}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d sequences, %d rows of %d each\n", len(rows), len(rows[0]), len(rows[0][0]))
	// Output: 2 sequences, 2 rows of 50 each
}
