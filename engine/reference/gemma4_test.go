package reference_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/fixtures"
	"github.com/plumbline-go/plumbline/golden"
)

// gemma4Budget is how many times the golden's own error from float64 at the place, as
// its manifest has it from the recorder's own forward, or a float32 step where that is
// more, a row may be away from the golden. Two float32 runs stray in independent
// directions. What the engine itself strays is no part of it: an error of the float32
// engine alone must not widen its own bound.
const gemma4Budget = 4

// goldenFloor is a place's figure in the manifest.
func goldenFloor(t testing.TB, name, place string) float64 {
	t.Helper()
	set, err := golden.Gemma4()
	require.NoError(t, err)
	floor, ok := set.Manifest.Precision.Cases[name][place]
	require.True(t, ok, "%s: the manifest has no precision of %s", name, place)
	return max(floor, step32)
}

// step32 is the rounding of one float32 operation, relative.
const step32 = 0x1p-24

var gemma4Checkpoint = sync.OnceValues(func() (*reference.Checkpoint, error) {
	return reference.LoadFS(fixtures.Gemma4Model(), ".")
})

func gemma4Engine(t testing.TB, opts ...reference.Option) *reference.Engine {
	t.Helper()
	c, err := gemma4Checkpoint()
	require.NoError(t, err)
	e, err := reference.New(c, opts...)
	require.NoError(t, err)
	return e
}

func gemma4Golden(t testing.TB) map[string]golden.TensorCase {
	t.Helper()
	set, err := golden.Gemma4()
	require.NoError(t, err)
	cases := map[string]golden.TensorCase{}
	for _, name := range set.Manifest.Cases {
		cases[name], err = set.Case(name)
		require.NoError(t, err)
	}
	return cases
}

// recordedProbes are the probes that the golden has of each layer.
func recordedProbes(layers int) []engine.Probe {
	all := []engine.Probe{engine.ProbeEmbed}
	for n := range layers {
		for _, part := range []engine.Part{engine.PartQ, engine.PartK, engine.PartV, engine.PartAttnOut, engine.PartResidPost} {
			all = append(all, engine.Block(n, part))
		}
	}
	return all
}

type probesOf map[engine.Probe]engine.Matrix

func runGemma4(t testing.TB, e engine.Reference, c golden.TensorCase) probesOf {
	t.Helper()
	got, err := e.(*reference.Engine).CaptureProbes(t.Context(), c.TokenIDs, c.ForcedIDs, recordedProbes(e.Weights().Arch().Layers))
	require.NoError(t, err)
	return got
}

// worstFrom is the largest relative L2 of a probe's recorded rows from the golden,
// and where.
func worstFrom(p engine.Probe, got engine.Matrix, c golden.TensorCase) (worst float64, at int) {
	for i, pos := range c.Positions {
		if d := relL2(widened(got.Row(pos)), widened(c.Tensors[string(p)][i])); !(d <= worst) {
			worst, at = d, pos
		}
	}
	return worst, at
}

func widened(row []float32) []float64 {
	out := make([]float64, len(row))
	for i, v := range row {
		out[i] = float64(v)
	}
	return out
}

// TestGemma4MatchesTransformers holds q, k, v, the output of attention and the
// residual stream of all layers, before, at and behind the edge of the window, in
// positions of a prompt and in decode steps, to what transformers computes.
func TestGemma4MatchesTransformers(t *testing.T) {
	e := gemma4Engine(t)
	exact, err := e.Float64()
	require.NoError(t, err)
	for name, c := range gemma4Golden(t) {
		t.Run(name, func(t *testing.T) {
			got, want := runGemma4(t, e, c), runGemma4(t, exact, c)
			figures := map[string]float64{}
			for _, p := range recordedProbes(e.Weights().Arch().Layers) {
				floor := goldenFloor(t, name, string(p))
				d, pos := worstFrom(p, got[p], c)
				r := d / (gemma4Budget * floor)
				if !(r <= 1) {
					t.Errorf("%s at position %d: %.2f times the bound", p, pos, r)
				}
				// The float64 engine is as far as the golden itself is from float64.
				if d, pos := worstFrom(p, want[p], c); !(d <= floor+2*step32) {
					t.Errorf("%s at position %d: the float64 engine is %.3g away, the golden's own error is %.3g", p, pos, d, floor)
				}
				n, part, _ := p.Block()
				kind := "local "
				if e.Weights().Arch().PerLayer[n].Window == 0 {
					kind = "global "
				}
				for i, pos := range c.Positions {
					figures[kind+string(part)] = max(figures[kind+string(part)],
						relL2(widened(got[p].Row(pos)), widened(c.Tensors[string(p)][i])))
				}
				figures["of the bound"] = max(figures["of the bound"], r)
			}
			t.Log(figures)
		})
	}
}

// TestGemma4Decodes: tokens and capped logits, the prompt run as one batch, in
// chunks that cross the window, and token by token.
func TestGemma4Decodes(t *testing.T) {
	e := gemma4Engine(t)
	for name, c := range gemma4Golden(t) {
		for _, chunk := range []int{0, 1, 3, 16} {
			t.Run(fmt.Sprintf("%s chunk %d", name, chunk), func(t *testing.T) {
				o := engine.DecodeOptions{Forced: c.ForcedIDs, Chunk: chunk}
				got, err := e.Decode(t.Context(), c.TokenIDs, o)
				require.NoError(t, err)
				require.Equal(t, c.OutputIDs, got.OutputIDs)
				bound := gemma4Budget * goldenFloor(t, name, "logits")
				for i, row := range got.Logits {
					if d := relL2(row, widened(c.Tensors["logits"][i])); !(d <= bound) {
						t.Errorf("row %d: got %.2e from the golden, want at most %.2e", i, d, bound)
					}
				}
			})
		}
	}
}

// TestGemma4Compositions: the other ways to run a prompt agree with the one that
// the goldens hold.
func TestGemma4Compositions(t *testing.T) {
	e := gemma4Engine(t)
	ids := gemma4Golden(t)["long"].TokenIDs
	trace, err := e.Capture(t.Context(), ids)
	require.NoError(t, err)
	rows := trace.Rows()

	whole, err := e.CaptureWholeStep(t.Context(), ids)
	require.NoError(t, err)
	require.Equal(t, rows, whole)
	batched, err := e.CaptureBatched(t.Context(), ids)
	require.NoError(t, err)
	hidden, err := e.LastHidden(t.Context(), ids)
	require.NoError(t, err)
	normed, err := e.FinalNorm(t.Context(), rows[len(rows)-1])
	require.NoError(t, err)
	require.Equal(t, normed, hidden)
	for i, row := range rows {
		if d := relL2(batched[i], row); !(d <= 1e-4) {
			t.Errorf("row %d: batched is %v away", i, d)
		}
	}
	embedding, err := e.Embedding(ids[len(ids)-1])
	require.NoError(t, err)
	require.Equal(t, embedding, rows[0])

	// Layers one by one, at the last position and at all.
	all, err := e.CaptureProbes(t.Context(), ids, nil, engine.Probes(e.Weights().Arch()))
	require.NoError(t, err)
	for _, n := range []int{0, 4, 5, 29} {
		out, err := trace.Layer(t.Context(), n, rows[n])
		require.NoError(t, err)
		require.Equal(t, rows[n+1], out)
		var in [][]float64
		for pos := range ids {
			in = append(in, widened(all[engine.RowProbe(n)].Row(pos)))
		}
		run, err := e.LayerAll(t.Context(), n, in, nil)
		require.NoError(t, err)
		mids, err := e.LayerAll(t.Context(), n, in, run[engine.PartResidMid])
		require.NoError(t, err)
		for part, rows := range run {
			for pos, row := range rows {
				if d := relL2(row, widened(all[engine.Block(n, part)].Row(pos))); !(d <= 1e-5) {
					t.Errorf("layer %d %s position %d: %v away", n, part, pos, d)
				}
				if d := relL2(mids[part][pos], row); !(d <= 1e-6) {
					t.Errorf("layer %d %s position %d: from its own resid_mid %v away", n, part, pos, d)
				}
			}
		}
	}

	// A batch of unequal lengths.
	forced := [][]int{{3, 4, 5}, {6, 7, 8}}
	prompts := [][]int{ids, ids[:11]}
	together, err := e.DecodeBatch(t.Context(), prompts, forced)
	require.NoError(t, err)
	for s, prompt := range prompts {
		alone, err := e.Decode(t.Context(), prompt, engine.DecodeOptions{Forced: forced[s]})
		require.NoError(t, err)
		for i := range alone.Logits {
			if d := relL2(together[s][i], alone.Logits[i]); !(d <= 1e-4) {
				t.Errorf("sequence %d row %d: %v away", s, i, d)
			}
		}
	}
}

// TestGemma4SharesPrefixes: continued from copies of their common prefix, longer
// than a window, prompts have the bits of runs of their own; with a quantised cache
// too.
func TestGemma4SharesPrefixes(t *testing.T) {
	ids := gemma4Golden(t)["long"].TokenIDs
	prompts := [][]int{ids[:20], append(slices.Clone(ids[:14]), 9, 10, 11)}
	for _, e := range []*reference.Engine{gemma4Engine(t), gemma4Engine(t, reference.WithKVCache(reference.KVQuant{Bits: 4, Hadamard: true}))} {
		oracle := e.Describe().KVCache == gemma4Engine(t).Describe().KVCache
		shared := 0
		err := e.CaptureMany(t.Context(), prompts, reference.ManyOptions{Oracle: oracle}, func(c reference.Captured) error {
			alone, err := e.Capture(t.Context(), prompts[c.Index])
			require.NoError(t, err)
			require.Equal(t, alone.Rows(), c.Trace.Rows())
			if oracle {
				require.Equal(t, alone.Rows(), c.WholeRows)
			}
			shared += c.Shared
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, 14, shared)
	}
}

// altered is a checkpoint with other constants, and tensors in other places.
type altered struct {
	engine.Weights
	arch  engine.Arch
	other map[string]string
}

func (w altered) Arch() engine.Arch { return w.arch.Clone() }

func (w altered) Tensor(name string) (engine.Tensor, error) {
	if other, ok := w.other[name]; ok {
		name = other
	}
	return w.Weights.Tensor(name)
}

// TestGemma4FaultsMiss: an engine that differs where Gemma 4 is special misses the
// golden by ten times at least, in the place where it differs, and no layer before
// it misses at all.
func TestGemma4FaultsMiss(t *testing.T) {
	sweep(t)
	const local, global = 12, 11
	value := func(n int) string { return fmt.Sprintf("model.layers.%d.self_attn.v_proj.weight", n) }
	for _, f := range []struct {
		name  string
		layer int
		part  engine.Part
		plant func(w *altered)
	}{
		{"window one wider", local, engine.PartAttnOut, func(w *altered) { w.arch.PerLayer[local].Window++ }},
		{"window one narrower", local, engine.PartAttnOut, func(w *altered) { w.arch.PerLayer[local].Window-- }},
		{"no window", local, engine.PartAttnOut, func(w *altered) { w.arch.PerLayer[local].Window = 0 }},
		{"a window in a global layer", global, engine.PartAttnOut, func(w *altered) { w.arch.PerLayer[global].Window = 8 }},
		{"rope base of local layers in a global one", global, engine.PartAttnOut, func(w *altered) { w.arch.PerLayer[global].RopeTheta = 1e4 }},
		{"rope base of global layers in a local one", local, engine.PartAttnOut, func(w *altered) { w.arch.PerLayer[local].RopeTheta = 1e6 }},
		{"the whole head turns", global, engine.PartAttnOut, func(w *altered) { w.arch.PerLayer[global].RopePairs = 0 }},
		{"K=V ignored", global, engine.PartV, func(w *altered) {
			// There is no v projection to be found: one of another layer, of the same shape.
			w.arch.PerLayer[global].KeyIsValue = false
			w.other[value(global)] = value(local)
		}},
		{"q norm skipped", local, engine.PartQ, func(w *altered) { w.arch.PerLayer[local].SkipNorm = engine.PartQ }},
		{"k norm skipped", global, engine.PartK, func(w *altered) { w.arch.PerLayer[global].SkipNorm = engine.PartK }},
		{"v norm skipped", global, engine.PartV, func(w *altered) { w.arch.PerLayer[global].SkipNorm = engine.PartV }},
		{"v norm skipped in a local layer", local, engine.PartV, func(w *altered) { w.arch.PerLayer[local].SkipNorm = engine.PartV }},
		{"embeddings not scaled", -1, "", func(w *altered) { w.arch.EmbedScale = 0 }},
	} {
		t.Run(f.name, func(t *testing.T) {
			c := gemma4Golden(t)["long"]
			clean := gemma4Engine(t)
			w := &altered{clean.Weights(), clean.Weights().Arch(), map[string]string{}}
			f.plant(w)
			e, err := reference.New(w)
			require.NoError(t, err)
			bad, good := runGemma4(t, e, c), runGemma4(t, clean, c)
			probes := recordedProbes(w.arch.Layers)
			place := engine.ProbeEmbed
			if f.layer >= 0 {
				place = engine.Block(f.layer, f.part)
			}
			at := slices.Index(probes, place)
			for _, p := range probes[:at] {
				if n, _, _ := p.Block(); n == f.layer {
					continue // what lies beside it in the layer
				}
				require.Equal(t, good[p], bad[p], p)
			}
			var worst float64
			worst, _ = worstFrom(place, bad[place], c)
			worst /= gemma4Budget * goldenFloor(t, "long", string(place))
			t.Logf("%.3g times the bound", worst)
			if !(worst >= 10) {
				t.Errorf("%s: got %.3g times the bound, want at least 10", place, worst)
			}
		})
	}
	t.Run("logits not capped", func(t *testing.T) {
		c := gemma4Golden(t)["long"]
		clean := gemma4Engine(t)
		w := &altered{clean.Weights(), clean.Weights().Arch(), nil}
		w.arch.LogitCap = 0
		e, err := reference.New(w)
		require.NoError(t, err)
		got, err := e.Decode(t.Context(), c.TokenIDs, engine.DecodeOptions{Forced: c.ForcedIDs})
		require.NoError(t, err)
		if d := relL2(got.Logits[0], widened(c.Tensors["logits"][0])); !(d >= 1e-2) {
			t.Errorf("got %v from the golden", d)
		}
	})
}
