package reference_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/fixtures"
)

type matrices = map[engine.Probe]engine.Matrix

func probe(t testing.TB, e *reference.Engine, ids, output []int, probes ...engine.Probe) matrices {
	t.Helper()
	got, err := e.CaptureProbes(bg, ids, output, probes)
	require.NoError(t, err)
	return got
}

// wide is a probe's row in float64.
func wide(row []float32) []float64 {
	out := make([]float64, len(row))
	for i, v := range row {
		out[i] = float64(v)
	}
	return out
}

// narrow are rows in float32.
func narrow(rows ...[]float64) (out []float32) {
	for _, row := range rows {
		for _, v := range row {
			out = append(out, float32(v))
		}
	}
	return out
}

func residual(a engine.Arch) (all []engine.Probe) {
	for i := range a.Layers + 1 {
		all = append(all, engine.RowProbe(i))
	}
	return all
}

// probes are all places at all positions, by the naive loops.
func (m naive) probes(ids []int) map[engine.Probe][][]float64 {
	all := map[engine.Probe][][]float64{}
	m.see = func(p engine.Probe, _ int, values []float64) { all[p] = append(all[p], values) }
	rows := m.stream(ids)
	for i, xs := range rows {
		all[engine.RowProbe(i)] = xs
	}
	for _, x := range rows[m.a.Layers] {
		all[engine.ProbeFinalNorm] = append(all[engine.ProbeFinalNorm], m.norm(x, m.tensor("model.norm.weight"), m.a.FinalNormEps))
		all[engine.ProbeLogits] = append(all[engine.ProbeLogits], m.logits(x))
	}
	return all
}

func TestProbesMatchNaiveLoops(t *testing.T) {
	w := untied()
	w.arch.PerLayer[2].QueryOffset = 2
	all := engine.Probes(w.arch)
	e := mustNew(t, w)
	double := mustNew(t, w, reference.WithDType(reference.Float64))
	for _, tt := range []struct {
		tokens int
		output []int
		run    int // positions
	}{
		{1, nil, 1}, {1, []int{9}, 1}, {9, nil, 9}, {9, []int{}, 9}, {9, []int{3, 49, 0, 12}, 12}, {60, prompt(10, 50), 69},
	} {
		t.Run(fmt.Sprintf("%d tokens and %d", tt.tokens, len(tt.output)), func(t *testing.T) {
			ids := prompt(tt.tokens, 50)
			sequence := append(ids[:len(ids):len(ids)], tt.output...)[:tt.run]
			want := naive{a: w.arch, w: w}.probes(sequence)
			require.Len(t, want, len(all))
			for _, side := range []struct {
				e     *reference.Engine
				bound float64
			}{{e, logitBound(w.arch)}, {double, float64Bound + 0x1p-24}} { // a rounding to float32
				got := probe(t, side.e, ids, tt.output, all...)
				require.Len(t, got, len(all))
				for p, m := range got {
					width, err := p.Width(w.arch)
					require.NoError(t, err)
					require.Equal(t, []int{tt.run, width, tt.run * width}, []int{m.Rows, m.Width, len(m.Data)}, p)
					for pos := range m.Rows {
						if d := relL2(wide(m.Row(pos)), want[p][pos]); !(d <= side.bound) {
							t.Errorf("%s: position %d: relative L2 %.3g, want at most %.3g", p, pos, d, side.bound)
						}
					}
				}
			}
		})
	}
}

// Each probe follows from the ones before it by the layer's own formulas. The
// probes of a float64 engine are rounded once, which three sums of up to
// Intermediate such values carry on.
func TestProbesAreWhatTheyAreCalled(t *testing.T) {
	w := untied()
	a, m := w.arch, naive{a: w.arch, w: w}
	ids, output := prompt(5, 50), []int{3, 4}
	got := probe(t, mustNew(t, w, reference.WithDType(reference.Float64)), ids, output, engine.Probes(a)...)
	for pos, id := range []int{ids[0], ids[1], ids[2], ids[3], ids[4], 3} {
		at := func(p engine.Probe) []float64 { return wide(got[p].Row(pos)) }
		same := func(p engine.Probe, want []float64) {
			t.Helper()
			if d := relL2(at(p), want); !(d <= 4*0x1p-24*math.Sqrt(float64(a.Intermediate))) {
				t.Errorf("%s: position %d: relative L2 %.3g", p, pos, d)
			}
		}
		plus := func(x, y []float64) []float64 {
			for i := range x {
				x[i] += y[i]
			}
			return x
		}
		require.Equal(t, m.tensor("model.embed_tokens.weight")[id*a.Hidden:(id+1)*a.Hidden], at(engine.ProbeEmbed))
		for n := range a.Layers {
			part := func(p engine.Part) engine.Probe { return engine.Block(n, p) }
			load := func(s string) []float64 { return m.tensor(fmt.Sprintf("model.layers.%d.%s", n, s)) }
			theta := a.PerLayer[n].RopeTheta
			same(part(engine.PartAttnNorm), m.norm(at(engine.RowProbe(n)), load("input_layernorm.weight"), a.PerLayer[n].NormEps))
			for p, name := range map[engine.Part]string{engine.PartQ: "q", engine.PartK: "k", engine.PartV: "v"} {
				same(part(p), m.mul(load("self_attn."+name+"_proj.weight"), at(part(engine.PartAttnNorm)), load("self_attn."+name+"_proj.bias")))
			}
			same(part(engine.PartQRope), m.rope(at(part(engine.PartQ)), pos, theta))
			same(part(engine.PartKRope), m.rope(at(part(engine.PartK)), pos, theta))
			if pos == 0 { // attention to itself alone: each head has its group's v
				v := at(part(engine.PartV))
				var want []float64
				for head := range a.Heads {
					from := head / (a.Heads / a.KVHeads) * a.HeadDim
					want = append(want, v[from:from+a.HeadDim]...)
				}
				same(part(engine.PartAttnOut), want)
			}
			same(part(engine.PartResidMid), plus(m.mul(load("self_attn.o_proj.weight"), at(part(engine.PartAttnOut)), nil), at(engine.RowProbe(n))))
			same(part(engine.PartResidPost), plus(at(part(engine.PartMLPOut)), at(part(engine.PartResidMid))))
		}
		same(engine.ProbeFinalNorm, m.norm(at(engine.RowProbe(a.Layers)), m.tensor("model.norm.weight"), a.FinalNormEps))
		same(engine.ProbeLogits, m.mul(m.tensor("lm_head.weight"), at(engine.ProbeFinalNorm), nil))
	}
}

// Further outputs of a graph leave its bits alone: the rows are those of a
// capture, the logits those of a decode by token, and asking for more changes
// nothing.
func TestProbesHaveTheBitsOfOtherRuns(t *testing.T) {
	trained, err := reference.LoadFS(fixtures.Model(), ".")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, trained.Close()) })
	shifted := untied()
	shifted.arch.Fault = engine.Fault{DecodeShift: 1, DecodeFrom: -1}
	first := untied()
	first.arch.Fault = engine.Fault{EmbedFirst: true}
	stale := untied()
	stale.arch.Fault = engine.Fault{StaleCache: true, StaleLayer: 1, StalePosition: -2}
	for name, w := range map[string]engine.Weights{"trained": trained, "random": untied(), "decode shift": shifted, "embed first": first, "stale cache": stale} {
		t.Run(name, func(t *testing.T) {
			e, a := mustNew(t, w), w.Arch()
			ids, output := prompt(9, 50), []int{3, 49, 0, 12}
			all := probe(t, e, ids, output, engine.Probes(a)...)

			rows := capture(t, e, ids).Rows()
			for i, row := range rows {
				require.Equal(t, narrow(row), all[engine.RowProbe(i)].Row(len(ids)-1), "row %d", i)
			}
			norm, err := e.FinalNorm(bg, rows[a.Layers])
			require.NoError(t, err)
			require.Equal(t, narrow(norm), all[engine.ProbeFinalNorm].Row(len(ids)-1))
			steps := decode(t, e, ids, engine.DecodeOptions{Forced: output, Chunk: 1}).Logits
			require.Len(t, steps, len(output))
			require.Equal(t, narrow(steps...), all[engine.ProbeLogits].Data[(len(ids)-1)*a.Vocab:])

			for _, some := range [][]engine.Probe{residual(a), {engine.ProbeLogits}, {engine.Block(1, engine.PartAttnOut), engine.ResidPost(1), engine.ResidPost(1)}} {
				got := probe(t, e, ids, output, some...)
				for _, p := range some {
					require.Equal(t, all[p], got[p], p)
				}
				require.LessOrEqual(t, len(got), len(some), "nothing that wasn't asked for")
			}
		})
	}
}

func TestProbeRefusals(t *testing.T) {
	embed := []engine.Probe{engine.ProbeEmbed}
	run := func(ids, output []int, probes []engine.Probe) error {
		_, err := small().CaptureProbes(bg, ids, output, probes)
		return err
	}
	require.ErrorContains(t, run([]int{1}, nil, nil), "probes: got none, want at least 1")
	var unknown *engine.ProbeError
	require.ErrorAs(t, run([]int{1}, nil, []engine.Probe{engine.ProbeEmbed, "blocks.3.q"}), &unknown)
	var unsupported *engine.UnsupportedError
	require.ErrorAs(t, run([]int{1}, nil, []engine.Probe{engine.Block(0, engine.PartRouteIDs)}), &unsupported)
	var bad *reference.PromptError
	require.ErrorAs(t, run([]int{50}, nil, embed), &bad)
	require.ErrorAs(t, run(nil, []int{1}, embed), &bad)
	err := run([]int{1}, []int{1, 50}, embed)
	require.ErrorAs(t, err, &bad)
	require.ErrorContains(t, err, "output tokens")
	// 128 positions, and the last output token is never run.
	require.NoError(t, run(prompt(128, 50), []int{1}, embed))
	require.ErrorContains(t, run(prompt(128, 50), []int{1, 2}, embed), "at most 128 positions")

	w := untied()
	delete(w.tensors, "lm_head.weight")
	e := mustNew(t, w)
	probe(t, e, []int{1}, nil, engine.ProbeFinalNorm)
	_, err = e.CaptureProbes(bg, []int{1}, nil, []engine.Probe{engine.ProbeLogits})
	var missing *engine.ConfigError
	require.ErrorAs(t, err, &missing)
}

func TestProbesLookAtTheContext(t *testing.T) {
	for _, calls := range []int{0, 3, 8, 14} { // five tokens of three layers
		_, err := small().CaptureProbes(&errAfter{Context: bg, calls: calls}, prompt(4, 50), []int{1, 2}, engine.Probes(smallArch()))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "reference: ")
	}
}

func ExampleEngine_CaptureProbes() {
	e, err := reference.New(randomWeights(smallArch(), 1)) // or reference.Open(folder)
	if err != nil {
		fmt.Println(err)
		return
	}
	q := engine.Block(1, engine.PartQ)
	probes, err := e.CaptureProbes(context.Background(), []int{7, 3, 21}, []int{40, 2}, []engine.Probe{q})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s: %d positions of %d\n", q, probes[q].Rows, probes[q].Width)
	// Output: blocks.1.q: 4 positions of 32
}
