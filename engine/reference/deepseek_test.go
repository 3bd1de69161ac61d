package reference_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
)

// latentSpread is how many times the error of one float32 composition, measured in
// the run, another may have: their roundings go in independent directions, and
// some compositions add in another order.
const latentSpread = 4

// latentModel is a small DeepSeek-V2: the engine in both arithmetics, its places by
// the naive loops on one prompt, and how far Capture's float32 strays.
type latentModel struct {
	w        *memWeights
	single   *reference.Engine
	double   *reference.Engine
	ids      []int
	want     map[engine.Probe][][]float64
	budget   []float64 // per row of the residual stream
	allowed  float64   // of logits
	sequence latentNaive
}

func newLatentModel(a engine.Arch) *latentModel {
	m := &latentModel{w: latentWeights(a, 1), ids: prompt(21, a.Vocab)}
	m.sequence = latentNaive{a: a, w: m.w}
	for _, side := range []struct {
		to **reference.Engine
		d  reference.DType
	}{{&m.single, reference.Float32}, {&m.double, reference.Float64}} {
		e, err := reference.New(m.w, reference.WithDType(side.d))
		if err != nil {
			panic(err)
		}
		*side.to = e
	}
	m.want = m.sequence.places(m.ids)
	all, err := m.single.CaptureProbes(bg, m.ids, nil, append(residual(a), engine.ProbeLogits))
	if err != nil {
		panic(err)
	}
	worst := func(p engine.Probe) float64 {
		w := 0.0
		for pos, row := range m.want[p] {
			w = max(w, relL2(wide(all[p].Row(pos)), row))
		}
		return latentSpread * max(w, step32)
	}
	for i := range a.Layers + 1 {
		m.budget = append(m.budget, worst(engine.RowProbe(i)))
	}
	m.allowed = worst(engine.ProbeLogits)
	return m
}

var latentModels = map[string]func() *latentModel{
	"softmax gates, YaRN":           sync.OnceValue(func() *latentModel { return newLatentModel(latentArch()) }),
	"rank of queries, sigmoid gate": sync.OnceValue(func() *latentModel { return newLatentModel(otherLatentArch()) }),
}

func eachLatent(t *testing.T, f func(t *testing.T, m *latentModel)) {
	for name, m := range latentModels {
		t.Run(name, func(t *testing.T) { f(t, m()) })
	}
}

// rows are the residual stream's at the last position of the first n tokens.
func (m *latentModel) rows(n int) (rows [][]float64) {
	for i := range m.w.arch.Layers + 1 {
		rows = append(rows, m.want[engine.RowProbe(i)][n-1])
	}
	return rows
}

// near demands rows of the residual stream within the budget, in float64 within
// float64's.
func (m *latentModel) near(t *testing.T, e *reference.Engine, what string, got, want [][]float64) {
	t.Helper()
	require.Len(t, got, len(want), what)
	for i := range want {
		bound := float64Bound
		if e == m.single {
			bound = m.budget[i]
		}
		if d := relL2(got[i], want[i]); !(d <= bound) {
			t.Errorf("%s: row %d: relative L2 %.3g, want at most %.3g", what, i, d, bound)
		}
	}
}

func (m *latentModel) nearLogits(t *testing.T, e *reference.Engine, what string, got, want [][]float64) {
	t.Helper()
	bound := float64Bound
	if e == m.single {
		bound = m.allowed
	}
	require.Len(t, got, len(want), what)
	for i := range want {
		if d := relL2(got[i], want[i]); !(d <= bound) {
			t.Errorf("%s: logit row %d: relative L2 %.3g, want at most %.3g", what, i, d, bound)
		}
	}
}

func (m *latentModel) engines() []*reference.Engine { return []*reference.Engine{m.single, m.double} }

// TestLatentRunsMatchNaiveLoops: all runs of one sequence.
func TestLatentRunsMatchNaiveLoops(t *testing.T) {
	eachLatent(t, func(t *testing.T, m *latentModel) {
		last := len(m.ids)
		for _, e := range m.engines() {
			for _, n := range []int{1, 2, last} {
				ids := m.ids[:n]
				tr := capture(t, e, ids)
				m.near(t, e, "capture", tr.Rows(), m.rows(n))
				whole, err := e.CaptureWholeStep(bg, ids)
				require.NoError(t, err)
				require.True(t, sameBits(whole, tr.Rows()), "whole step of %d tokens", n)
				batched, err := e.CaptureBatched(bg, ids)
				require.NoError(t, err)
				m.near(t, e, "batched", batched, m.rows(n))
				for layer := range e.Weights().Arch().Layers {
					got, err := tr.Layer(bg, layer, tr.Rows()[layer])
					require.NoError(t, err)
					require.True(t, sameBits([][]float64{got}, tr.Rows()[layer+1:layer+2]), "layer %d", layer)
				}
			}
			hidden, err := e.LastHidden(bg, m.ids)
			require.NoError(t, err)
			m.nearLogits(t, e, "last hidden", [][]float64{hidden}, m.want[engine.ProbeFinalNorm][last-1:])
			logits, err := e.Logits(bg, capture(t, e, m.ids).Rows()[m.w.arch.Layers])
			require.NoError(t, err)
			m.nearLogits(t, e, "logits", [][]float64{logits}, m.want[engine.ProbeLogits][last-1:])
		}
	})
}

func TestLatentDecodesMatchNaiveLoops(t *testing.T) {
	eachLatent(t, func(t *testing.T, m *latentModel) {
		forced := []int{3, 49, 0, 17}
		want := m.sequence.decoded(m.ids, forced)
		for _, e := range m.engines() {
			for _, chunk := range []int{0, 1, 2, 8} {
				got := decode(t, e, m.ids, engine.DecodeOptions{Forced: forced, Chunk: chunk})
				m.nearLogits(t, e, fmt.Sprintf("chunk %d", chunk), got.Logits, want)
			}
			s, err := e.NewSession(len(m.ids) + len(forced))
			require.NoError(t, err)
			row, err := s.Prefill(bg, m.ids)
			require.NoError(t, err)
			session := [][]float64{wide(row)}
			for _, id := range forced[:len(forced)-1] {
				row, err := s.Step(bg, id)
				require.NoError(t, err)
				session = append(session, wide(row))
			}
			require.NoError(t, s.Close())
			for i, row := range decode(t, e, m.ids, engine.DecodeOptions{Forced: forced}).Logits {
				require.Equal(t, narrow(row), narrow(session[i]), "session, row %d", i)
			}

			prompts := [][]int{m.ids[:4], m.ids, {7}}
			batch := [][]int{{1, 2, 3}, {5, 6, 7}, {9, 9, 0}}
			for i, rows := range decodeBatch(t, e, prompts, batch) {
				m.nearLogits(t, e, fmt.Sprintf("sequence %d of a batch", i), rows, m.sequence.decoded(prompts[i], batch[i]))
			}
		}
	})
}

// TestLatentCaptureManySharesPrefixes: bit for bit what a run alone gives.
func TestLatentCaptureManySharesPrefixes(t *testing.T) {
	eachLatent(t, func(t *testing.T, m *latentModel) {
		prompts := [][]int{m.ids[:9], m.ids[:12], append(slices.Clone(m.ids[:7]), 3, 4)}
		err := m.single.CaptureMany(bg, prompts, reference.ManyOptions{Oracle: true}, func(c reference.Captured) error {
			want := capture(t, m.single, prompts[c.Index]).Rows()
			require.True(t, sameBits(c.Trace.Rows(), want), "prompt %d", c.Index)
			require.True(t, sameBits(c.WholeRows, want), "prompt %d: whole step", c.Index)
			return nil
		})
		require.NoError(t, err)
	})
}

// TestLatentPlacesMatchNaiveLoops: every place at every position.
func TestLatentPlacesMatchNaiveLoops(t *testing.T) {
	eachLatent(t, func(t *testing.T, m *latentModel) {
		for _, e := range m.engines() {
			got := probe(t, e, m.ids, nil, engine.Probes(m.w.arch)...)
			require.Len(t, got, len(m.want))
			for p, rows := range m.want {
				require.Equal(t, len(rows[0]), got[p].Width, p)
				n, part, _ := p.Block()
				bound := 2 * step32 // rounded once
				if e == m.single {
					bound = max(m.budget[min(n+1, len(m.budget)-1)], m.allowed)
				}
				for pos, row := range rows {
					if part == engine.PartRouteIDs {
						require.Equal(t, row, wide(got[p].Row(pos)), "%s at position %d", p, pos)
					} else if d := relL2(finite(wide(got[p].Row(pos))), finite(row)); !(d <= bound) {
						t.Errorf("%s at position %d: relative L2 %.3g, want at most %.3g", p, pos, d, bound)
					}
				}
			}
		}
	})
}

// finite has a number that no score is in place of -Inf.
func finite(x []float64) []float64 {
	out := slices.Clone(x)
	for i, v := range out {
		if v < -1e300 {
			out[i] = 1e3
		}
	}
	return out
}

// TestLatentLayersOnGivenRows: LayerAll and RouteRows on rows that no layer made.
func TestLatentLayersOnGivenRows(t *testing.T) {
	eachLatent(t, func(t *testing.T, m *latentModel) {
		a := m.w.arch
		for _, e := range m.engines() {
			for _, tokens := range []int{1, 9} {
				for n := range a.Layers {
					in, mid := otherRows(tokens, a.Hidden, 0.7), otherRows(tokens, a.Hidden, 1.3)
					s, want := m.sequence, engine.LayerRun{}
					s.see = func(p engine.Probe, _ int, values []float64) {
						_, part, _ := p.Block()
						want[part] = append(want[part], values)
					}
					want[engine.PartResidPost] = s.layer(n, in)
					bound := float64Bound
					if e == m.single {
						bound = m.budget[a.Layers]
					}
					near := func(got engine.LayerRun) {
						t.Helper()
						for part, rows := range want {
							if part.Routed() {
								require.NotContains(t, got, part)
								continue
							}
							require.Len(t, got[part], tokens, "%s", part)
							for pos, row := range rows {
								if d := relL2(got[part][pos], row); !(d <= bound) {
									t.Errorf("layer %d: %s: position %d: relative L2 %.3g, want at most %.3g", n, part, pos, d, bound)
								}
							}
						}
					}
					got, err := e.LayerAll(bg, n, in, nil)
					require.NoError(t, err)
					near(got)

					got, err = e.LayerAll(bg, n, in, mid)
					require.NoError(t, err)
					before := want
					want = engine.LayerRun{}
					for pos, row := range mid {
						want[engine.PartResidPost] = append(want[engine.PartResidPost], s.second(n, pos, row, func(p engine.Part, values []float64) { want[p] = append(want[p], values) }))
					}
					for _, part := range []engine.Part{engine.PartAttnNorm, engine.PartQRope, engine.PartV, engine.PartResidMid} {
						want[part] = before[part]
					}
					near(got)

					route, err := e.RouteRows(bg, n, mid)
					if !a.RoutedAt(n) {
						var unsupported *engine.UnsupportedError
						require.ErrorAs(t, err, &unsupported)
						continue
					}
					require.NoError(t, err)
					for pos := range mid {
						require.Equal(t, want[engine.PartRouteIDs][pos], asFloats(route.IDs[pos]))
						for _, v := range []struct{ got, want []float64 }{{route.Logits[pos], want[engine.PartRouterLogits][pos]},
							{finite(route.Scores[pos]), finite(want[engine.PartRouterScores][pos])}, {route.Weights[pos], want[engine.PartRouteWeights][pos]}} {
							require.LessOrEqual(t, relL2(v.got, v.want), bound)
						}
					}
				}
			}
		}
	})
}

// TestTraceOfAPaddedBatch: positions are those of the slots, padding included, and
// no prompt sees padding.
func TestTraceOfAPaddedBatch(t *testing.T) {
	eachLatent(t, func(t *testing.T, m *latentModel) {
		prompts := [][]int{m.ids[:4], m.ids, {7}, m.ids[3:15]}
		for _, e := range m.engines() {
			for _, pad := range []int{0, 33} {
				var seen []engine.Probe
				err := e.TraceBatch(bg, prompts, pad, func(s engine.Stage) error {
					seen = append(seen, s.Probe)
					require.Equal(t, len(prompts)*len(m.ids), s.Rows.Rows)
					for i, ids := range prompts {
						q := m.sequence
						q.first = len(m.ids) - len(ids)
						want := q.places(ids)
						bound := 2 * step32 // rounded once
						if e == m.single {
							bound = m.budget[min(len(seen), len(m.budget))-1]
						}
						n, _, _ := s.Probe.Block()
						require.Equal(t, s.Probe != engine.ProbeEmbed && s.Probe != engine.ProbeFinalNorm && m.w.arch.RoutedAt(n), s.Routing != nil)
						for pos := range ids {
							row := (i+1)*len(m.ids) - len(ids) + pos
							if d := relL2(wide(s.Rows.Row(row)), want[s.Probe][pos]); !(d <= bound) {
								t.Errorf("%s: prompt %d at position %d: relative L2 %.3g, want at most %.3g", s.Probe, i, pos, d, bound)
							}
							if s.Routing != nil {
								require.Equal(t, want[engine.Block(n, engine.PartRouteIDs)][pos], asFloats(s.Routing.IDs[row]))
								require.LessOrEqual(t, relL2(s.Routing.Weights[row], want[engine.Block(n, engine.PartRouteWeights)][pos]), max(bound, m.allowed))
							}
						}
					}
					return nil
				})
				require.NoError(t, err)
				require.Equal(t, append(residual(m.w.arch), engine.ProbeFinalNorm), seen)
			}
		}
	})
}
