package reference_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/mutant"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/fixtures"
	"github.com/plumbline-go/plumbline/golden"
)

// goldenBudget is how many times what a row strays from float64, see straying, it may
// be away from the golden: two runs stray in independent directions. In bfloat16 that
// is after the first tie that falls otherwise; before it they have the same bits.
func goldenBudget(d reference.DType) float64 {
	if d == reference.BFloat16 {
		return 2
	}
	return 4
}

// straying is how far the rows of a place stray from float64, by position: what the
// golden does there, by its manifest, or what the golden's error of the layer's input
// makes of it, where that is more. A head whose query is nearly perpendicular to its
// keys reads a small difference of large terms, and its norm brings that to the size
// of the others: there a run is as far away as it happens to be, and the golden may
// have been near by luck. All of it is measured in float64, from the golden's errors:
// what the engine itself strays is no part of it.
func straying(t testing.TB, exact *reference.Engine, c golden.TensorCase, floor func(place string) float64) func(p engine.Probe, pos int) float64 {
	t.Helper()
	const tries = 4
	rng := rand.New(rand.NewPCG(1, 2))
	amplified := map[engine.Probe][]float64{}
	var rows [][]float64
	for _, id := range append(slices.Clone(c.TokenIDs), c.ForcedIDs[:len(c.ForcedIDs)-1]...) {
		row, err := exact.Embedding(id)
		require.NoError(t, err)
		rows = append(rows, row)
	}
	for n := range exact.Weights().Arch().Layers {
		clean, err := exact.LayerAll(bg, n, rows, nil)
		require.NoError(t, err)
		for range tries {
			moved, err := exact.LayerAll(bg, n, shaken(rng, rows, floor(string(engine.RowProbe(n)))), nil)
			require.NoError(t, err)
			for part, places := range clean {
				p := engine.Block(n, part)
				if amplified[p] == nil {
					amplified[p] = make([]float64, len(places))
				}
				for pos, row := range places {
					amplified[p][pos] = max(amplified[p][pos], relL2(moved[part][pos], row))
				}
			}
		}
		rows = clean[engine.PartResidPost]
	}
	return func(p engine.Probe, pos int) float64 {
		stray := floor(string(p))
		if of := amplified[p]; of != nil {
			stray = max(stray, of[pos])
		}
		return stray
	}
}

// shaken are rows, each moved by so much of its length in a random direction.
func shaken(rng *rand.Rand, rows [][]float64, by float64) [][]float64 {
	out := make([][]float64, len(rows))
	for i, row := range rows {
		moved := make([]float64, len(row))
		var size, length float64
		for k, v := range row {
			moved[k] = rng.NormFloat64()
			size, length = size+moved[k]*moved[k], length+v*v
		}
		for k, v := range row {
			moved[k] = v + by*math.Sqrt(length/size)*moved[k]
		}
		out[i] = moved
	}
	return out
}

var qwen35Checkpoint = sync.OnceValues(func() (*reference.Checkpoint, error) {
	return reference.LoadFS(fixtures.Qwen35Model(), ".")
})

func qwen35Engine(t testing.TB, opts ...reference.Option) *reference.Engine {
	t.Helper()
	c, err := qwen35Checkpoint()
	require.NoError(t, err)
	return mustNew(t, c, opts...)
}

// hybridRun are the places of a run by position: those of the prompt, run as one
// batch, and where steps is set those of the tokens behind it too, all run one by
// one.
type hybridRun struct {
	prompt int
	batch  map[engine.Probe][][]float64
	steps  probesOf
	logits [][]float64
}

// runHybrid runs a case of a golden set: the layers on all positions of the prompt,
// one after the other, the prompt and the forced tokens token by token, and the
// logits of a decode behind the prompt as one batch.
func runHybrid(t testing.TB, e *reference.Engine, c golden.TensorCase) hybridRun {
	t.Helper()
	a := e.Weights().Arch()
	out := hybridRun{prompt: len(c.TokenIDs), batch: map[engine.Probe][][]float64{}}
	var rows [][]float64
	for _, id := range c.TokenIDs {
		row, err := e.Embedding(id)
		require.NoError(t, err)
		rows = append(rows, row)
	}
	out.batch[engine.ProbeEmbed] = rows
	for n := range a.Layers {
		run, err := e.LayerAll(bg, n, rows, nil)
		require.NoError(t, err)
		for part, values := range run {
			out.batch[engine.Block(n, part)] = values
		}
		rows = run[engine.PartResidPost]
	}
	for _, row := range rows {
		normed, err := e.FinalNorm(bg, row)
		require.NoError(t, err)
		out.batch[engine.ProbeFinalNorm] = append(out.batch[engine.ProbeFinalNorm], normed)
	}
	out.steps = probe(t, e, c.TokenIDs, c.ForcedIDs, engine.Probes(a)...)
	out.logits = decode(t, e, c.TokenIDs, engine.DecodeOptions{Forced: c.ForcedIDs}).Logits
	return out
}

// eachHybridCase runs a test for each case of a set, with the golden's own error at a
// place.
func eachHybridCase(t *testing.T, open func() (*golden.TensorSet, error), test func(t *testing.T, c golden.TensorCase, floor func(place string) float64)) {
	t.Helper()
	set, err := open()
	require.NoError(t, err)
	for _, name := range set.Manifest.Cases {
		c, err := set.Case(name)
		require.NoError(t, err)
		t.Run(name, func(t *testing.T) {
			test(t, c, func(place string) float64 {
				floor, ok := set.Manifest.Precision.Cases[name][place]
				require.True(t, ok, place)
				return max(floor, step32)
			})
		})
	}
}

// rowsOf are a place's rows in the order of the golden's positions: those of the
// prompt run as one batch, or all of them token by token.
func (r hybridRun) rowsOf(p engine.Probe, positions []int, batch bool) (rows [][]float64, of []int) {
	for i, pos := range positions {
		switch {
		case !batch:
			rows, of = append(rows, wide(r.steps[p].Row(pos))), append(of, i)
		case pos < r.prompt:
			rows, of = append(rows, r.batch[p][pos]), append(of, i)
		}
	}
	return rows, of
}

// timesBound is how many times its bound the worst row of a place is away from the
// golden.
func (r hybridRun) timesBound(c golden.TensorCase, p engine.Probe, bound func(p engine.Probe, pos int) float64) (worst float64) {
	for _, batch := range []bool{true, false} {
		rows, of := r.rowsOf(p, c.Positions, batch)
		for i, row := range rows {
			d := relL2(row, wide(c.Tensors[string(p)][of[i]])) / bound(p, c.Positions[of[i]])
			if math.IsNaN(d) {
				return d // the next row would be "worse"
			}
			worst = max(worst, d)
		}
	}
	return worst
}

// recordedOf are the probes that a case has, in the order of computation, the
// logits left out.
func recordedOf(a engine.Arch, c golden.TensorCase) []engine.Probe {
	return slices.DeleteFunc(engine.Probes(a), func(p engine.Probe) bool {
		_, ok := c.Tensors[string(p)]
		return !ok || p == engine.ProbeLogits
	})
}

// TestQwen35MatchesTransformers: every recorded place, at positions of the prompt as
// one batch and token by token, behind it in decode steps, and the logits of all
// steps, in both arithmetics that transformers was recorded in.
func TestQwen35MatchesTransformers(t *testing.T) {
	sweep(t)
	for d, open := range map[reference.DType]func() (*golden.TensorSet, error){reference.Float32: golden.Qwen35, reference.BFloat16: golden.Qwen35BFloat16} {
		e := qwen35Engine(t, reference.WithDType(d))
		exact, err := e.Float64()
		require.NoError(t, err)
		t.Run(string(d), func(t *testing.T) {
			eachHybridCase(t, open, func(t *testing.T, c golden.TensorCase, floor func(string) float64) {
				run := runHybrid(t, e, c)
				stray := straying(t, exact.(*reference.Engine), c, floor)
				bound := func(p engine.Probe, pos int) float64 { return goldenBudget(d) * stray(p, pos) }
				probes := recordedOf(e.Weights().Arch(), c)
				require.GreaterOrEqual(t, len(probes), 2+2*8)
				for _, p := range probes {
					if times := run.timesBound(c, p, bound); !(times <= 1) {
						t.Errorf("%s: %s: %.2f times the bound", d, p, times)
					}
				}
				clear := 0
				for i, row := range run.logits {
					want := wide(c.Tensors["logits"][i])
					if err, bound := relL2(row, want), goldenBudget(d)*floor("logits"); !(err <= bound) {
						t.Errorf("%s: logits %d: %.3g away, want at most %.3g", d, i, err, bound)
					}
					// Whichever token is ahead by more than the bound is chosen.
					if best, margin, size := leader(want); margin > goldenBudget(d)*floor("logits")*size {
						clear++
						got, _, _ := leader(row)
						require.Equal(t, best, got, "%s: token %d", d, i)
					}
				}
				require.GreaterOrEqual(t, clear, len(run.logits)/2, "tokens whose choice is clear")
			})
		})
	}
}

// leader is the id of a row's largest value, what it is ahead of the next by, and the
// root mean square of the row.
func leader(row []float64) (id int, margin, size float64) {
	sorted := slices.Sorted(slices.Values(row))
	for _, v := range row {
		size += v * v / float64(len(row))
	}
	return slices.Index(row, sorted[len(row)-1]), sorted[len(row)-1] - sorted[len(row)-2], math.Sqrt(size)
}

// TestQwen35HasTransformersBits: in bfloat16, on prompts short enough that hardly a
// sum falls next to a tie, the values are transformers' own; an engine that doesn't
// round has others everywhere.
func TestQwen35HasTransformersBits(t *testing.T) {
	e, single := qwen35Engine(t, reference.WithDType(reference.BFloat16)), qwen35Engine(t)
	set, err := golden.Qwen35BFloat16()
	require.NoError(t, err)
	for _, name := range []string{"one_token", "short"} {
		c, err := set.Case(name)
		require.NoError(t, err)
		run, plain := runHybrid(t, e, c), runHybrid(t, single, c)
		share := func(r hybridRun, p engine.Probe, batch bool) float64 {
			rows, of := r.rowsOf(p, c.Positions, batch)
			var want [][]float64
			for _, i := range of {
				want = append(want, wide(c.Tensors[string(p)][i]))
			}
			return share16(t, rows, want)
		}
		for _, p := range recordedOf(e.Weights().Arch(), c) {
			// Token by token a prompt has other sums than as one batch, and torch rounds
			// the roots of single positions twice: of one token the two are the same.
			for _, batch := range []bool{true, name != "one_token"} {
				if s := share(run, p, batch); !(s <= 0.02) {
					t.Errorf("%s: %s: %.3f of the values differ", name, p, s)
				}
				if s := share(plain, p, batch); p != engine.ProbeEmbed && !(s >= 0.2) {
					t.Errorf("%s: %s in float32: %.3f of the values differ", name, p, s)
				}
			}
		}
		for i, row := range run.logits {
			if s := share16(t, [][]float64{row}, [][]float64{wide(c.Tensors["logits"][i])}); !(s <= 0.1) {
				t.Errorf("%s: logits %d: %.3f of the values differ", name, i, s)
			}
		}
	}
}

// TestQwen35FaultsMiss: an engine with a fault misses the golden by ten times its
// bound in the place where it differs, in prompts of every length that have it, and
// no layer before it misses at all.
func TestQwen35FaultsMiss(t *testing.T) {
	sweep(t)
	clean := qwen35Engine(t)
	a := clean.Weights().Arch()
	exact, err := clean.Float64()
	require.NoError(t, err)
	strays := map[string]func(p engine.Probe, pos int) float64{} // by case
	for _, f := range []struct {
		mutant string
		layer  int
		part   engine.Part
		from   int // the first position that shows it, counted from the end of the prompt
	}{
		{"recurrent-state-stale", 4, engine.PartAttnOut, 0},
		{"conv-state-off-by-one", 1, engine.PartAttnOut, 1},
		{"attention-gate-missing", 3, engine.PartAttnOut, 0},
		{"beta-wrong-row", 5, engine.PartAttnOut, 0},
		{"stale-cache-row", 7, engine.PartAttnOut, 0},
		{"norm-gain-ones", 3, engine.PartAttnNorm, 0},
	} {
		m, err := mutant.Lookup(f.mutant)
		require.NoError(t, err)
		w, err := m.Weights(clean.Weights(), f.layer)
		require.NoError(t, err)
		e := mustNew(t, w)
		t.Run(f.mutant, func(t *testing.T) {
			eachHybridCase(t, golden.Qwen35, func(t *testing.T, c golden.TensorCase, floor func(string) float64) {
				place := engine.Block(f.layer, f.part)
				if strays[c.Why] == nil {
					strays[c.Why] = straying(t, exact.(*reference.Engine), c, floor)
				}
				got := probe(t, e, c.TokenIDs, c.ForcedIDs, engine.Probes(a)...)
				times := func(p engine.Probe, i int) float64 {
					pos := c.Positions[i]
					return relL2(wide(got[p].Row(pos)), wide(c.Tensors[string(p)][i])) / (goldenBudget(reference.Float32) * strays[c.Why](p, pos))
				}
				for _, p := range recordedOf(a, c) {
					if n, _, ok := p.Block(); ok && n < f.layer {
						for i := range c.Positions {
							require.LessOrEqual(t, times(p, i), 1.0, "%s: %s", f.mutant, p) // which NaN fails
						}
					}
				}
				var worst float64
				for i, pos := range c.Positions {
					if pos >= len(c.TokenIDs)-1+f.from {
						worst = max(worst, times(place, i))
					}
				}
				if !(worst >= 10) {
					t.Errorf("%s: %.3g times the bound, want at least 10", place, worst)
				}
			})
		})
	}
}
