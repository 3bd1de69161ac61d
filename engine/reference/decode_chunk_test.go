package reference_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
)

// Chunks that divide the prompt and that don't, one of a single position at the
// end, the prompt as one chunk, and chunks longer than the prompt.
func TestPromptsInChunksMatchNaiveLoops(t *testing.T) {
	w, forced := untied(), []int{3, 49, 0}
	e := mustNew(t, w)
	double := mustNew(t, w, reference.WithDType(reference.Float64))
	for _, tokens := range []int{1, 9, 70} {
		ids := prompt(tokens, 50)
		want := naive{a: w.arch, w: w}.forced(ids, forced)
		for _, chunk := range []int{1, 2, 3, 64, 69, 70, 100} {
			t.Run(fmt.Sprintf("%d tokens in chunks of %d", tokens, chunk), func(t *testing.T) {
				o := engine.DecodeOptions{Forced: forced, Chunk: chunk}
				requireClose(t, decode(t, e, ids, o).Logits, want, logitBound(w.arch))
				requireClose(t, decode(t, double, ids, o).Logits, want, float64Bound)
			})
		}
	}
}

// In chunks of one the prompt runs through the steps that a capture runs, faults
// included, and in larger ones it doesn't.
func TestChunksOfOneAreCaptureSteps(t *testing.T) {
	ids := prompt(9, 50)
	for name, plant := range map[string]func(*engine.Arch){
		"clean":        func(*engine.Arch) {},
		"decode shift": func(a *engine.Arch) { a.Fault = engine.Fault{DecodeShift: 1, DecodeFrom: -1} },
		"stale cache":  func(a *engine.Arch) { a.Fault = engine.Fault{StaleCache: true, StaleLayer: 1, StalePosition: 4} },
		"embed first":  func(a *engine.Arch) { a.Fault = engine.Fault{EmbedFirst: true} },
	} {
		w := untied()
		plant(&w.arch)
		e := mustNew(t, w)
		want, err := e.Logits(bg, capture(t, e, ids).Rows()[w.arch.Layers])
		require.NoError(t, err)
		one := decode(t, e, ids, engine.DecodeOptions{MaxNew: 1, Chunk: 1}).Logits
		require.True(t, sameBits(one, [][]float64{want}), name)
		three := decode(t, e, ids, engine.DecodeOptions{MaxNew: 1, Chunk: 3}).Logits
		require.False(t, sameBits(three, one), name)
		clean := decode(t, mustNew(t, untied()), ids, engine.DecodeOptions{MaxNew: 1, Chunk: 3}).Logits
		require.True(t, sameBits(three, clean), name)
	}
}

func TestChunkShift(t *testing.T) {
	clean := untied()
	a := clean.arch.Clone()
	a.Fault = engine.Fault{ChunkShift: 1}
	w := &memWeights{a, clean.tensors}
	e, c := mustNew(t, w), mustNew(t, clean)
	double, err := e.Float64()
	require.NoError(t, err)
	ids, forced := prompt(9, 50), []int{3, 49, 0}
	for _, chunk := range []int{0, 1, 4, 8, 9} {
		o := engine.DecodeOptions{Forced: forced, Chunk: chunk}
		got, ref := decode(t, e, ids, o).Logits, decode(t, c, ids, o).Logits
		if acts := chunk == 4 || chunk == 8; !acts {
			require.True(t, sameBits(got, ref), "chunk %d", chunk)
			continue
		}
		for i := range got {
			if d := relL2(got[i], ref[i]); !(d > 1e-3) {
				t.Errorf("chunk %d: row %d: relative L2 from the clean run %.3g, want more than 1e-3", chunk, i, d)
			}
		}
		out, err := double.Decode(bg, ids, o)
		require.NoError(t, err)
		requireClose(t, out.Logits, naive{a: a, w: w, chunk: chunk}.forced(ids, forced), float64Bound)
	}
}

// The first decode of an engine that keeps its cache is clean; each one after it
// sees the keys and values of the one before, and of no other.
func TestKeptCache(t *testing.T) {
	clean := untied()
	arch := clean.arch.Clone()
	arch.Fault = engine.Fault{KeepCache: true}
	w := &memWeights{arch, clean.tensors}
	a, b, forced := prompt(9, 50), prompt(4, 50), []int{3, 49, 0}
	for _, chunk := range []int{0, 1, 4} {
		t.Run(fmt.Sprintf("chunk %d", chunk), func(t *testing.T) {
			o := engine.DecodeOptions{Forced: forced, Chunk: chunk}
			e, c := mustNew(t, w), mustNew(t, clean)
			double := mustNew(t, w, reference.WithDType(reference.Float64))
			var front []heads
			for i, ids := range [][]int{a, b, a, a} {
				m := naive{a: arch, w: w, front: front, behind: make([]heads, arch.Layers)}
				want := m.forced(ids, forced)
				front = m.behind
				got, ref := decode(t, e, ids, o).Logits, decode(t, c, ids, o).Logits
				requireClose(t, got, want, logitBound(arch))
				requireClose(t, decode(t, double, ids, o).Logits, want, float64Bound)
				require.Equal(t, i == 0, sameBits(got, ref), "decode %d: bits of a clean run", i)
				for j := range got {
					if d := relL2(got[j], ref[j]); i > 0 && !(d > 1e-3) {
						t.Errorf("decode %d: row %d: relative L2 from the clean run %.3g, want more than 1e-3", i, j, d)
					}
				}
			}
			// Nothing else keeps or sees anything.
			require.True(t, sameBits(capture(t, e, a).Rows(), capture(t, c, a).Rows()))
		})
	}
}

func TestChunkRefusals(t *testing.T) {
	_, err := small().Decode(bg, []int{1}, engine.DecodeOptions{Chunk: -1})
	require.ErrorContains(t, err, "decode: got chunks of -1 positions, want at least 1")
}

func TestChunksLookAtTheContext(t *testing.T) {
	// Four chunks of three layers, then steps.
	for _, chunk := range []int{1, 3} {
		for _, calls := range []int{3, 5, 8, 13} {
			_, err := small().Decode(&errAfter{Context: bg, calls: calls}, prompt(10, 50), engine.DecodeOptions{Chunk: chunk})
			require.ErrorIs(t, err, context.DeadlineExceeded, "chunk %d, %d calls", chunk, calls)
			require.ErrorContains(t, err, "reference: ")
		}
	}
}
