package reference_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/fixtures"
	"github.com/plumbline-go/plumbline/golden"
)

// routedBudget is how many times the golden's own error from float64 a row may be away
// from it: both stray, in independent directions. 2.4 was seen.
const routedBudget = 4

// goldenV2 is a recorded DeepSeek-V2.
type goldenV2 struct {
	set   *golden.TensorSet
	model *reference.Checkpoint
}

func openGoldenV2(t testing.TB, model fs.FS, of func() (*golden.TensorSet, error)) goldenV2 {
	t.Helper()
	set, err := of()
	require.NoError(t, err)
	c, err := reference.LoadFS(model, ".")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	require.Empty(t, c.UnusedKeys())
	require.Empty(t, c.UnusedTensors())
	return goldenV2{set, c}
}

// routesOfGolden are the recorded experts, with their weights.
func routesOfGolden(t testing.TB, c golden.TensorCase, a engine.Arch) engine.Routes {
	t.Helper()
	src := engine.ProbeValues{}
	for name, rows := range c.Tensors {
		src[engine.Probe(name)] = engine.Matrix{Rows: len(rows), Width: len(rows[0]), Data: slices.Concat(rows...)}
	}
	r, err := engine.RoutesOf(src, a, true)
	require.NoError(t, err)
	return r
}

// runGolden runs cases that ran together, or one alone, with the recorded experts
// forced, and gives each one's places by its own positions.
func (g goldenV2) runGolden(t testing.TB, e *reference.Engine, cases []golden.TensorCase) []probesOf {
	t.Helper()
	a := g.model.Arch()
	var routes []engine.Routes
	var prompts [][]int
	for _, c := range cases {
		routes, prompts = append(routes, routesOfGolden(t, c, a)), append(prompts, c.TokenIDs)
	}
	view := forced(t, e, routes...)
	if len(cases) == 1 {
		c := cases[0]
		return []probesOf{probe(t, view, c.TokenIDs, c.ForcedIDs, engine.Probes(a)...)}
	}
	out := make([]probesOf, len(cases))
	slots := len(slices.MaxFunc(prompts, func(a, b []int) int { return len(a) - len(b) }))
	require.NoError(t, view.TraceBatch(bg, prompts, 0, func(s engine.Stage) error {
		for i, c := range cases {
			if out[i] == nil {
				out[i] = probesOf{}
			}
			require.Equal(t, slots-len(c.TokenIDs), c.Start)
			put := func(p engine.Probe, rows [][]float64) {
				m := engine.Matrix{Rows: len(c.TokenIDs), Width: len(rows[0])}
				for _, row := range rows[i*slots+c.Start : (i+1)*slots] {
					for _, v := range row {
						m.Data = append(m.Data, float32(v))
					}
				}
				out[i][p] = m
			}
			var rows [][]float64
			for r := range s.Rows.Rows {
				rows = append(rows, wide(s.Rows.Row(r)))
			}
			put(s.Probe, rows)
			if n, _, ok := s.Probe.Block(); ok && s.Routing != nil {
				put(engine.Block(n, engine.PartRouterLogits), s.Routing.Logits)
				put(engine.Block(n, engine.PartRouterScores), s.Routing.Scores)
			}
		}
		return nil
	}))
	return out
}

// eachRow calls f with the recorded rows that a run has too. Weights that were forced
// tell nothing.
func eachRow(c golden.TensorCase, got probesOf, f func(p engine.Probe, pos int, got, want []float64)) {
	for name, rows := range c.Tensors {
		p := engine.Probe(name)
		m, have := got[p]
		_, part, inBlock := p.Block()
		if !have || part == engine.PartRouteIDs || part == engine.PartRouteWeights {
			continue
		}
		for i, want := range rows {
			pos := i
			switch {
			case p == engine.ProbeLogits:
				pos += len(c.TokenIDs) - 1
			case !inBlock || !part.Routed():
				pos = c.Positions[i]
			}
			f(p, pos, wide(m.Row(pos)), wide(want))
		}
	}
}

// TestDeepseekMatchesGoldens: at every recorded place, with the recorded experts and
// weights forced, within a multiple of the golden's own error from float64; and the
// experts that the router would choose there are the recorded ones, wherever their
// margin is above what logits may be off by. Without mscale in the softmax scale, as
// transformers' class is by itself, attention misses its bound more than ten times.
func TestDeepseekMatchesGoldens(t *testing.T) {
	sweep(t)
	for name, g := range map[string]goldenV2{
		"27 layers": openGoldenV2(t, fixtures.DeepSeek2Model(), golden.DeepSeek2),
		"groups":    openGoldenV2(t, fixtures.DeepSeek2GroupedModel(), golden.DeepSeek2Grouped),
	} {
		t.Run(name, func(t *testing.T) {
			e, other := mustNew(t, g.model), mustNew(t, g.model, reference.WithTransformersScale())
			batches := map[string][]string{}
			for _, c := range g.set.Manifest.Cases {
				one, err := g.set.Case(c)
				require.NoError(t, err)
				key := c
				if one.Batch != "" {
					key = one.Batch
				}
				batches[key] = append(batches[key], c)
			}
			worst, clear, near := 0.0, 0, 0
			for _, names := range batches {
				var cases []golden.TensorCase
				for _, n := range names {
					c, err := g.set.Case(n)
					require.NoError(t, err)
					cases = append(cases, c)
				}
				runs := g.runGolden(t, e, cases)
				for i, c := range cases {
					floors := g.set.Manifest.Precision.Cases[names[i]]
					bound := func(p engine.Probe) float64 { return routedBudget * math.Max(floors[string(p)], step32) }
					eachRow(c, runs[i], func(p engine.Probe, pos int, got, want []float64) {
						d := relL2(got, want)
						worst = max(worst, d/bound(p)*routedBudget)
						if !(d <= bound(p)) {
							t.Errorf("%s: %s at %d: relative L2 %.3g, want at most %.3g", names[i], p, pos, d, bound(p))
						}
						if n, part, _ := p.Block(); part == engine.PartRouterLogits {
							same, margin := sameChoice(c, n, pos, runs[i])
							if band := 2 * bound(p) * norm(want); margin <= band {
								near++
							} else if clear++; !same {
								t.Errorf("%s: layer %d at %d: other experts at a margin of %.3g, want the same above %.3g", names[i], n, pos, margin, band)
							}
						}
					})
				}
				if len(cases) == 1 {
					layer := g.model.Arch().Layers / 2
					at, missed := engine.Block(layer, engine.PartAttnOut), 0.0
					c := cases[0]
					eachRow(c, g.runGolden(t, other, cases)[0], func(p engine.Probe, _ int, got, want []float64) {
						if p == at {
							missed = max(missed, relL2(got, want))
						}
					})
					require.Greater(t, missed, 10*routedBudget*math.Max(g.set.Manifest.Precision.Cases[names[0]][string(at)], step32), "%s: the other softmax scale", names[0])
				}
			}
			t.Logf("at most %.2g times the golden's own error; %d routes clear, %d near a tie", worst, clear, near)
			require.Greater(t, clear, 10*near)
		})
	}
}

// norm is the Euclidean norm.
func norm(row []float64) float64 {
	sum := 0.0
	for _, v := range row {
		sum += v * v
	}
	return math.Sqrt(sum)
}

// sameChoice reports whether a run's own scores choose the recorded experts, and how
// far the recorded logits of the worst chosen expert are above the best other one's
// that could be chosen.
func sameChoice(c golden.TensorCase, layer, pos int, got probesOf) (same bool, margin float64) {
	logits, ids := c.Tensors[string(engine.Block(layer, engine.PartRouterLogits))][pos], c.Tensors[string(engine.Block(layer, engine.PartRouteIDs))][pos]
	scores := got[engine.Block(layer, engine.PartRouterScores)].Row(pos)
	worst, best := math.Inf(1), math.Inf(-1)
	lowest, highest := math.Inf(1), math.Inf(-1)
	for i := range logits {
		if slices.Contains(ids, float32(i)) {
			worst, lowest = math.Min(worst, float64(logits[i])), math.Min(lowest, float64(scores[i]))
		} else if scores[i] > 0 { // a group that is out counts as 0
			best, highest = math.Max(best, float64(logits[i])), math.Max(highest, float64(scores[i]))
		}
	}
	return lowest > highest, worst - best
}

// TestGatesMatchGoldens: transformers' own gates on the same rows.
func TestGatesMatchGoldens(t *testing.T) {
	set, err := golden.DeepSeekGates()
	require.NoError(t, err)
	for _, name := range set.Manifest.Cases {
		c, err := set.Case(name)
		require.NoError(t, err)
		x, projection, bias := readGate(t, name)
		r, err := reference.NewRouter(x, projection, bias)
		require.NoError(t, err)
		var rows [][]float64
		for _, row := range c.Tensors["hidden"] {
			rows = append(rows, wide(row))
		}
		got, err := r.Route(bg, rows)
		require.NoError(t, err)
		floors := set.Manifest.Precision.Cases[name]
		for i := range rows {
			ids, weights := byID(got.IDs[i], got.Weights[i])
			require.Equal(t, wide(c.Tensors["route_ids"][i]), ids, "%s, row %d", name, i)
			require.LessOrEqual(t, relL2(weights, wide(c.Tensors["route_weights"][i])), routedBudget*floors["route_weights"], "%s, row %d", name, i)
			require.LessOrEqual(t, relL2(got.Logits[i], wide(c.Tensors["router_logits"][i])), routedBudget*floors["router_logits"], "%s, row %d", name, i)
		}
		x.Gate.Groups, x.Gate.TopGroups = 0, 0 // control
		r, err = reference.NewRouter(x, projection, bias)
		require.NoError(t, err)
		plain, err := r.Route(bg, rows)
		require.NoError(t, err)
		others := 0
		for i := range rows {
			ids, _ := byID(plain.IDs[i], plain.Weights[i])
			if !slices.Equal(wide(c.Tensors["route_ids"][i]), ids) {
				others++
			}
		}
		require.Greater(t, others, len(rows)/4, name)
	}
}

// readGate reads a gate of the fixtures.
func readGate(t testing.TB, name string) (engine.Experts, engine.Tensor, []float32) {
	t.Helper()
	data, err := fs.ReadFile(fixtures.DeepSeekGates(), name+".json")
	require.NoError(t, err)
	var c struct {
		Count     int     `json:"n_routed_experts"`
		PerToken  int     `json:"num_experts_per_tok"`
		Groups    int     `json:"n_group"`
		TopGroups int     `json:"topk_group"`
		Normalise bool    `json:"norm_topk_prob"`
		Scale     float64 `json:"routed_scaling_factor"`
	}
	require.NoError(t, json.Unmarshal(data, &c))
	scoring := engine.ScoringSoftmax
	if name == "v3" {
		scoring = engine.ScoringSigmoid
	}
	data, err = fs.ReadFile(fixtures.DeepSeekGates(), name+".safetensors")
	require.NoError(t, err)
	file, err := dumpfmt.NewSafetensors(bytes.NewReader(data), int64(len(data)), name)
	require.NoError(t, err)
	read := func(name string) engine.Tensor {
		info, ok := file.Tensor(name)
		if !ok {
			return engine.Tensor{}
		}
		values, err := file.Float32s(name)
		require.NoError(t, err)
		all := make([]float32, info.Bytes/4)
		_, err = values.ReadValues(all, 0)
		require.NoError(t, err)
		return engine.Tensor{Shape: info.Shape, Data: all}
	}
	return engine.Experts{Count: c.Count, PerToken: c.PerToken, Gate: engine.Gate{Scoring: scoring, Groups: c.Groups, TopGroups: c.TopGroups, Normalise: c.Normalise, Scale: c.Scale}},
		read("weight"), read("e_score_correction_bias").Data
}
