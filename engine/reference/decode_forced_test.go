package reference_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
)

// untied is the small model with a head of its own: a tied random one repeats
// its input for ever.
func untied() *memWeights {
	a := smallArch()
	a.TiedHead = false
	return randomWeights(a, 1)
}

// logitBound is float32Bound with the final norm and the head, two more sums of
// Hidden terms.
func logitBound(a engine.Arch) float64 {
	return float32Bound(a) + float64(2*a.Hidden)*0x1p-24
}

func TestForcedAlongTheGreedyTokensIsGreedy(t *testing.T) {
	e, ids := mustNew(t, untied()), prompt(5, 50)
	greedy := decode(t, e, ids, engine.DecodeOptions{MaxNew: 6})
	forced := decode(t, e, ids, engine.DecodeOptions{Forced: greedy.OutputIDs, MaxNew: 2, Stop: greedy.OutputIDs})
	require.Equal(t, greedy.OutputIDs, forced.OutputIDs)
	require.True(t, sameBits(greedy.Logits, forced.Logits))
	require.Equal(t, engine.StopBudget, forced.StopReason, "stop ids mean nothing")
}

// Row i is the first row behind the prompt and Forced[:i], and the output is
// what the rows choose, not what was forced.
func TestForcedRowsAreThoseOfTheLongerPrompt(t *testing.T) {
	w := untied()
	e, ids := mustNew(t, w), prompt(5, 50)
	forced := []int{49, 0, 0, 17}
	got := decode(t, e, ids, engine.DecodeOptions{Forced: forced})
	require.Len(t, got.Logits, len(forced))
	require.NotEqual(t, forced, got.OutputIDs)

	want := naive{a: w.arch, w: w}.forced(ids, forced)
	for i, row := range got.Logits {
		longer := append(ids[:len(ids):len(ids)], forced[:i]...)
		again := decode(t, e, longer, engine.DecodeOptions{MaxNew: 1})
		require.Equal(t, again.OutputIDs[0], got.OutputIDs[i], "row %d", i)
		requireClose(t, [][]float64{row}, again.Logits, 2*logitBound(w.arch))
		requireClose(t, [][]float64{row}, want[i:i+1], logitBound(w.arch))
		if i > 0 { // the forced token matters
			require.False(t, relL2(row, got.Logits[i-1]) < 1e-2, "row %d", i)
		}
	}
}

func TestForcedRefusals(t *testing.T) {
	_, err := small().Decode(bg, []int{1}, engine.DecodeOptions{Forced: []int{}})
	require.ErrorContains(t, err, "got no forced tokens, want at least 1")

	for _, id := range []int{50, -1} {
		_, err = small().Decode(bg, []int{1}, engine.DecodeOptions{Forced: []int{1, id}})
		var bad *reference.PromptError
		require.ErrorAs(t, err, &bad)
		require.Equal(t, 1, bad.Index)
		require.ErrorContains(t, err, "forced tokens")
	}
	// 128 positions, and the last forced token is never run.
	_, err = small().Decode(bg, prompt(126, 50), engine.DecodeOptions{Forced: []int{1, 2, 3}})
	require.NoError(t, err)
	_, err = small().Decode(bg, prompt(127, 50), engine.DecodeOptions{Forced: []int{1, 2, 3}})
	require.ErrorContains(t, err, "got 127 tokens with up to 3 new ones")
}

// The output projection of a tied checkpoint is the embedding table, and of an
// untied one its own tensor.
func TestHeadIsTheOutputProjection(t *testing.T) {
	for name, tied := range map[string]bool{"model.embed_tokens.weight": true, "lm_head.weight": false} {
		a := smallArch()
		a.TiedHead = tied
		w := randomWeights(a, 1)
		got, err := mustNew(t, w).Head()
		require.NoError(t, err)
		require.Equal(t, []int{50, 24}, got.Shape)
		require.Equal(t, w.tensors[name].Data, got.Data)
	}
	w := untied()
	delete(w.tensors, "lm_head.weight")
	_, err := mustNew(t, w).Head()
	var missing *engine.ConfigError
	require.ErrorAs(t, err, &missing)
}
