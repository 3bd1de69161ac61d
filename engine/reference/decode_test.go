package reference_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
)

func decode(t testing.TB, e *reference.Engine, ids []int, o engine.DecodeOptions) engine.Decoded {
	t.Helper()
	d, err := e.Decode(bg, ids, o)
	require.NoError(t, err)
	return d
}

// greedy decodes with the naive loops, each step anew from the whole sequence.
func (m naive) greedy(ids []int, n int) (out []int, logits [][]float64) {
	for range n {
		rows := m.rows(append(ids[:len(ids):len(ids)], out...))
		row := m.logits(rows[m.a.Layers])
		best := 0
		for i, v := range row {
			if v > row[best] {
				best = i
			}
		}
		out, logits = append(out, best), append(logits, row)
	}
	return out, logits
}

func TestDecodeMatchesNaiveLoops(t *testing.T) {
	for _, tied := range []bool{true, false} {
		for _, tokens := range []int{1, 5, 70} {
			t.Run(fmt.Sprintf("tied %v, %d tokens", tied, tokens), func(t *testing.T) {
				a := smallArch()
				a.TiedHead = tied
				w := randomWeights(a, 1)
				ids := prompt(tokens, a.Vocab)
				wantIDs, want := naive{a: a, w: w}.greedy(ids, engine.DefaultMaxNew)

				e := mustNew(t, w)
				got := decode(t, e, ids, engine.DecodeOptions{})
				require.Equal(t, wantIDs, got.OutputIDs)
				require.Equal(t, engine.StopBudget, got.StopReason)
				// The norm and the head are two more sums of Hidden terms.
				requireClose(t, got.Logits, want, float32Bound(a)+float64(2*a.Hidden)*0x1p-24)

				got = decode(t, mustNew(t, w, reference.WithDType(reference.Float64)), ids, engine.DecodeOptions{})
				require.Equal(t, wantIDs, got.OutputIDs)
				requireClose(t, got.Logits, want, float64Bound)
			})
		}
	}
}

func TestDecodeEndsWhereAsked(t *testing.T) {
	a := smallArch()
	a.TiedHead = false // a tied one repeats its input for ever
	e, ids := mustNew(t, randomWeights(a, 1)), prompt(5, a.Vocab)
	all := decode(t, e, ids, engine.DecodeOptions{})
	require.Len(t, all.OutputIDs, 8)
	never := 0
	for slices.Contains(all.OutputIDs, never) {
		never++
	}
	// later is an id that comes first somewhere after the first token.
	at := slices.IndexFunc(all.OutputIDs, func(id int) bool { return id != all.OutputIDs[0] })
	require.Positive(t, at)
	later := all.OutputIDs[at]
	for _, tt := range []struct {
		name string
		o    engine.DecodeOptions
		rows int
		why  engine.StopReason
	}{
		{"one token", engine.DecodeOptions{MaxNew: 1}, 1, engine.StopBudget},
		{"three tokens", engine.DecodeOptions{MaxNew: 3}, 3, engine.StopBudget},
		{"stop ids that never come", engine.DecodeOptions{Stop: []int{never, 1 << 30}}, 8, engine.StopBudget},
		{"the first token stops", engine.DecodeOptions{Stop: []int{never, all.OutputIDs[0]}}, 1, engine.StopToken},
		{"a later token stops", engine.DecodeOptions{Stop: []int{later}}, at + 1, engine.StopToken},
		{"the last token within the budget stops", engine.DecodeOptions{MaxNew: at + 1, Stop: []int{later}}, at + 1, engine.StopToken},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := decode(t, e, ids, tt.o)
			require.Equal(t, all.OutputIDs[:tt.rows], got.OutputIDs)
			require.True(t, sameBits(all.Logits[:tt.rows], got.Logits))
			require.Equal(t, tt.why, got.StopReason)
		})
	}
}

// The head's rows i and i+25 are the same, so every choice is a tie.
func TestDecodeTakesTheLowestOfEqualLogits(t *testing.T) {
	a := smallArch()
	a.TiedHead = false
	w := randomWeights(a, 1)
	head := w.tensors["lm_head.weight"].Data
	copy(head[25*a.Hidden:], head[:25*a.Hidden])
	got := decode(t, mustNew(t, w), prompt(5, a.Vocab), engine.DecodeOptions{})
	for i, id := range got.OutputIDs {
		require.Less(t, id, 25)
		row := got.Logits[i]
		if row[id] != row[id+25] {
			t.Errorf("row %d: ids %d and %d have different logits, so there is no tie", i, id, id+25)
		}
		for other, v := range row {
			if v > row[id] || v == row[id] && other < id {
				t.Errorf("row %d: chose %d, but %d has %v against %v", i, id, other, v, row[id])
			}
		}
	}
}

// A decode step's faults leave the prefill's row alone and change the others.
func TestDecodeFaultsActBehindThePrefill(t *testing.T) {
	ids := prompt(9, smallArch().Vocab)
	clean := decode(t, small(), ids, engine.DecodeOptions{})
	for name, plant := range map[string]func(*engine.Arch){
		"decode shift": func(a *engine.Arch) { a.Fault = engine.Fault{DecodeShift: 3, DecodeFrom: 9} },
		"stale cache":  func(a *engine.Arch) { a.Fault = engine.Fault{StaleCache: true, StaleLayer: 1, StalePosition: 9} },
	} {
		w := randomWeights(smallArch(), 1)
		plant(&w.arch)
		got := decode(t, mustNew(t, w), ids, engine.DecodeOptions{})
		require.True(t, sameBits(clean.Logits[:1], got.Logits[:1]), name)
		require.Equal(t, clean.OutputIDs[0], got.OutputIDs[0], name)
		if d := relL2(got.Logits[1], clean.Logits[1]); !(d > 1e-3) {
			t.Errorf("%s: row 1: relative L2 from the clean run %.3g, want more than 1e-3", name, d)
		}
	}
}

func TestDecodeRefusals(t *testing.T) {
	_, err := small().Decode(bg, []int{1}, engine.DecodeOptions{MaxNew: -1})
	require.ErrorContains(t, err, "decode: got -1 new tokens, want at least 1")

	// 128 positions: the last new token is never run.
	_, err = small().Decode(bg, prompt(121, 50), engine.DecodeOptions{MaxNew: 8})
	require.NoError(t, err)
	_, err = small().Decode(bg, prompt(122, 50), engine.DecodeOptions{MaxNew: 8})
	var bad *reference.PromptError
	require.ErrorAs(t, err, &bad)
	require.ErrorContains(t, err, "got 122 tokens with up to 8 new ones, want at most 128 positions")
	_, err = small().Decode(bg, []int{1}, engine.DecodeOptions{MaxNew: math.MaxInt})
	require.ErrorAs(t, err, &bad)

	a := smallArch()
	a.TiedHead = false
	w := randomWeights(a, 1)
	for i := range a.Hidden { // finite, and their products overflow
		w.tensors["lm_head.weight"].Data[7*a.Hidden+i] = math.MaxFloat32
	}
	_, err = mustNew(t, w).Decode(bg, []int{1, 2}, engine.DecodeOptions{})
	require.ErrorContains(t, err, "reference: logit row 0: id 7: got ")
	require.ErrorContains(t, err, "want a finite value")

	delete(w.tensors, "lm_head.weight")
	_, err = mustNew(t, w).Decode(bg, []int{1, 2}, engine.DecodeOptions{})
	var missing *engine.ConfigError
	require.ErrorAs(t, err, &missing)
}

func TestDecodeStepsLookAtTheContext(t *testing.T) {
	// Three layers are prefilled in three steps; the rest ends in a decode step.
	for _, calls := range []int{3, 5, 8} {
		_, err := small().Decode(&errAfter{Context: bg, calls: calls}, prompt(9, 50), engine.DecodeOptions{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
}

func ExampleEngine_Decode() {
	e, err := reference.New(randomWeights(smallArch(), 1)) // or reference.Open(folder)
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := e.Decode(context.Background(), []int{7, 3, 21}, engine.DecodeOptions{MaxNew: 4, Stop: []int{49}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d tokens, %d logit rows of %d, stop reason %d\n",
		len(out.OutputIDs), len(out.Logits), len(out.Logits[0]), out.StopReason)
	// Output: 4 tokens, 4 logit rows of 50, stop reason 0
}
