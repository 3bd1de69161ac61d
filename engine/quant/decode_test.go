package quant

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/internal/seeded"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// untied gives the tiny model a head of its own.
func untied(w *seeded.Memory) *seeded.Memory {
	w.Architecture.TiedHead = false
	return w
}

func TestLogitsMatchANaiveImplementation(t *testing.T) {
	ids, output := []int{3, 11, 0, 18, 11, 7, 5}, []int{1, 18, 4, 9}
	cases := append(naiveCases(), naiveCase{name: "stale cache behind the prompt", fault: engine.Fault{StaleCache: true, StaleLayer: 2, StalePosition: 8}},
		naiveCase{name: "decode shift behind the prompt", fault: engine.Fault{DecodeShift: 3, DecodeFrom: 7}},
		naiveCase{name: "per tensor, embedding per row", opts: []Option{WeightsPerTensor(), EmbeddingPerRow()}, naive: naive{perTensor: true, embedPerRow: true}})
	for _, c := range cases {
		for i, w := range []*seeded.Memory{tiny(0), untied(tiny(1)), tiny(2), untied(tiny(3))} {
			c.of(w)
			for _, int8Rows := range []bool{false, true} {
				m := c.naive
				m.w, m.rowsInt8 = w, int8Rows
				_, want := m.run(ids, output)
				got, err := FromWeights(w, c.opts...).EmulateLogits(t.Context(), engine.Scheme{RowsInt8: int8Rows}, ids, output)
				require.NoError(t, err)
				// as for the residual stream
				if e := worst(t, got, want); !(e <= 1e-9) {
					t.Errorf("%s, model %d, int8 rows %v: relative L2 %v, want at most 1e-9", c.name, i, int8Rows, e)
				}
			}
		}
	}
}

// The tokens and the integers of a decode, from the naive implementation: what it
// says after each token is run anew from the start.
func TestDecodeMatchesANaiveImplementation(t *testing.T) {
	ids := []int{3, 11, 0, 18, 11, 7, 5}
	for _, c := range naiveCases() {
		for i, w := range []*seeded.Memory{tiny(4), untied(tiny(5))} {
			c.of(w)
			for _, codes := range []bool{false, true} {
				m := c.naive
				m.w, m.rowsInt8, m.codes = w, true, codes
				var opts []CandidateOption
				if codes {
					opts = append(opts, Int32Logits())
				}
				resp, err := FromWeights(w, c.opts...).Candidate(engine.Scheme{RowsInt8: true}, opts...).
					Run(t.Context(), engine.Request{Case: engine.Case{TokenIDs: ids}, DecodeSteps: 4})
				require.NoError(t, err)
				rows := logitsOf(t, resp)
				require.Len(t, rows, 4)
				var output []int
				for step := range 4 {
					_, logits := m.run(ids, append(slices.Clone(output), 0))
					want := logits[step]
					best := 0
					for id, v := range want {
						if v > want[best] {
							best = id
						}
					}
					output = append(output, best)
					if e := worst(t, rows[step:step+1], [][]float64{want}); codes && e != 0 || !(e <= 0x1p-23) {
						t.Errorf("%s, model %d, codes %v, step %d: relative L2 %v, want float32 precision, and none in integers", c.name, i, codes, step, e)
					}
				}
				assert.Equal(t, output, resp.OutputIDs, "%s, model %d, codes %v", c.name, i, codes)
			}
		}
	}
}

func logitsOf(t testing.TB, resp *engine.Response) [][]float64 {
	t.Helper()
	n, vocab := resp.Logits.Shape()
	rows := make([][]float64, n)
	for i := range rows {
		rows[i] = make([]float64, vocab)
		require.NoError(t, resp.Logits.Row(i, rows[i]))
	}
	return rows
}

// A row depends on what stands before it alone: a longer prompt, or a shorter one
// and forced tokens, are the same bits.
func TestForcedTokensAreALongerPrompt(t *testing.T) {
	ids := prompts(t)[2].TokenIDs
	for name, e := range map[string]*Emulation{
		"plain": FromWeights(model(t)), "kv int8": FromWeights(model(t), KVCacheInt8()), "untied": FromWeights(untied(tiny(1))),
	} {
		ids := ids
		if e.arch.Vocab < 100 {
			ids = []int{3, 11, 0, 18, 11, 7, 5, 2}
		}
		for _, scheme := range []engine.Scheme{{}, {RowsInt8: true}} {
			const cut = 3
			forced, err := e.EmulateLogits(t.Context(), scheme, ids[:cut], append(slices.Clone(ids[cut:]), 0))
			require.NoError(t, err)
			require.Len(t, forced, len(ids)-cut+1)
			for n := cut; n <= len(ids); n++ {
				longer, err := e.EmulateLogits(t.Context(), scheme, ids[:n], []int{0})
				require.NoError(t, err)
				require.Len(t, longer, 1)
				if !slices.Equal(longer[0], forced[n-cut]) {
					t.Errorf("%s, %+v: after %d tokens: a longer prompt differs in bits from forced tokens", name, scheme, n)
				}
			}
		}
	}
}

// However the tokens are fed, and whatever is planted, no bit changes.
func TestStepsAreTheWholeRunInParts(t *testing.T) {
	ids, output := prompts(t)[2].TokenIDs, []int{5, 17, 300, 2, 2}
	all := append(slices.Clone(ids), output...)
	for name, f := range map[string]engine.Fault{
		"none":         {},
		"stale":        {StaleCache: true, StaleLayer: 3, StalePosition: -1},
		"stale behind": {StaleCache: true, StaleLayer: 3, StalePosition: len(ids) + 1},
		"shift":        {DecodeShift: 1, DecodeFrom: -1},
		"embed first":  {EmbedFirst: true},
	} {
		w := *model(t).(*seeded.Memory)
		w.Architecture.Fault = f
		e := FromWeights(&w, KVCacheInt8(), WithCache(partsCache))
		collect := func(cuts ...int) [][]float64 {
			s, err := e.start(engine.Scheme{RowsInt8: true}, ids, true)
			require.NoError(t, err)
			rows := make([][]float64, e.arch.Layers+1)
			from := 0
			for _, to := range append(cuts, len(all)) {
				n := 0
				require.NoError(t, s.feed(t.Context(), all[from:to], func(x, _ []float64) {
					rows[n] = append(rows[n], x...)
					n++
				}))
				from = to
			}
			return rows
		}
		whole := collect()
		require.Len(t, whole[0], len(all)*e.arch.Hidden)
		for _, cuts := range [][]int{{len(ids), len(ids) + 1, len(ids) + 2, len(ids) + 3, len(ids) + 4}, {1, 2, 3}, {len(ids) - 1}, {5, len(ids) + 2}} {
			assert.Equal(t, whole, collect(cuts...), "%s, fed in parts that end at %v", name, cuts)
		}
	}
}

var partsCache = NewCache()

// A candidate's logits are the yardstick's, as float32; its capture that of a run
// without a decode.
func TestCandidateDecodesWhatTheYardstickSays(t *testing.T) {
	for _, opts := range [][]Option{nil, {KVCacheInt8(), RoundHalfAway()}} {
		e, scheme := FromWeights(model(t), append(opts, WithCache(partsCache))...), engine.Scheme{RowsInt8: true}
		for _, c := range prompts(t)[:4] {
			resp, err := e.Candidate(scheme).Run(t.Context(), engine.Request{Case: c})
			require.NoError(t, err)
			require.Len(t, resp.OutputIDs, engine.DefaultMaxNew)
			require.Equal(t, c.TokenIDs, resp.PromptIDs)
			want, err := e.EmulateLogits(t.Context(), scheme, c.TokenIDs, resp.OutputIDs)
			require.NoError(t, err)
			for i, row := range logitsOf(t, resp) {
				for j := range row {
					if row[j] != float64(float32(want[i][j])) {
						t.Fatalf("%s, row %d, id %d: got %v, want %v as float32", c.Name, i, j, row[j], want[i][j])
					}
				}
			}
			rows, steps, err := e.lastRows(t.Context(), scheme, c.TokenIDs, nil)
			require.NoError(t, err)
			for i := range rows {
				row := make([]float64, len(rows[i]))
				step, err := resp.Layers.Row(i, row)
				require.NoError(t, err)
				require.Equal(t, rows[i], row)
				require.Equal(t, steps[i], step)
			}
		}
	}
}

func TestDecodeEnds(t *testing.T) {
	e, ids := FromWeights(tiny(3)), []int{3, 11, 0}
	run := func(steps int, stop ...int) *engine.Response {
		resp, err := e.Candidate(engine.Scheme{}).Run(t.Context(), engine.Request{Case: engine.Case{TokenIDs: ids, Stop: stop}, DecodeSteps: steps})
		require.NoError(t, err)
		return resp
	}
	free := run(0).OutputIDs
	require.Len(t, free, engine.DefaultMaxNew)
	require.NotEqual(t, free[0], free[2], "a model that repeats itself shows nothing here")
	require.NotContains(t, free[:2], free[2])
	for steps := 1; steps <= 5; steps++ {
		require.Equal(t, free[:min(steps, 8)], run(steps).OutputIDs)
	}
	absent := 0
	for slices.Contains(free, absent) {
		absent++
	}
	for _, c := range []struct {
		steps int
		stop  []int
		want  int
	}{{0, []int{free[2]}, 3}, {0, []int{absent, free[2], 1 << 30}, 3}, {2, []int{free[2]}, 2}, {3, []int{free[2]}, 3}, {0, []int{free[0]}, 1}, {0, []int{absent}, 8}} {
		resp := run(c.steps, c.stop...)
		require.Equal(t, free[:c.want], resp.OutputIDs, "stop ids %v, %d steps: the stop id is kept and is the last", c.stop, c.steps)
		n, vocab := resp.Logits.Shape()
		require.Equal(t, []int{c.want, 19}, []int{n, vocab})
	}
	_, err := e.Candidate(engine.Scheme{}).Run(t.Context(), engine.Request{Case: engine.Case{TokenIDs: ids}, DecodeSteps: -1})
	require.ErrorContains(t, err, "got -1 new tokens")
}

// Where several ids are equal the lowest is chosen, in either kind of logits.
func TestTheLowestOfEqualsIsChosen(t *testing.T) {
	for _, opts := range [][]CandidateOption{nil, {Int32Logits()}} {
		w := untied(tiny(3))
		run := func() []int {
			resp, err := FromWeights(w).Candidate(engine.Scheme{}, opts...).Run(t.Context(), engine.Request{Case: engine.Case{TokenIDs: []int{3, 11}}, DecodeSteps: 1})
			require.NoError(t, err)
			return resp.OutputIDs
		}
		best := run()[0]
		require.True(t, best > 0 && best < 18, "got id %d, which has no neighbour on both sides", best)
		head := w.Tensors["lm_head.weight"].Data
		row := slices.Clone(head[best*10 : (best+1)*10])
		copy(head[18*10:], row)
		require.Equal(t, []int{best}, run(), "a higher id is equal")
		copy(head[:10], row)
		require.Equal(t, []int{0}, run(), "a lower id is equal")
	}
}

func TestInt32LogitsAreTheFloatOnesWithoutTheirScale(t *testing.T) {
	e, c := FromWeights(model(t), WithCache(partsCache)), prompts(t)[2]
	var rows [2][][]float64
	var ids [2][]int
	for i, opts := range [][]CandidateOption{nil, {Int32Logits()}} {
		resp, err := e.Candidate(engine.Scheme{}, opts...).Run(t.Context(), engine.Request{Case: c})
		require.NoError(t, err)
		rows[i], ids[i] = logitsOf(t, resp), resp.OutputIDs
	}
	require.Equal(t, ids[0], ids[1])
	own := NewCache()
	w := tiny(1)
	for _, opts := range [][]CandidateOption{nil, {Int32Logits()}} {
		_, err := FromWeights(w, WithCache(own)).Candidate(engine.Scheme{}, opts...).Run(t.Context(), engine.Request{Case: engine.Case{TokenIDs: []int{1}}})
		require.NoError(t, err)
	}
	require.Equal(t, 7*3+1, own.Len(), "a tied head has the table's one scale, with or without the option")
	for i, row := range rows[1] {
		scale := rows[0][i][ids[0][i]] / row[ids[0][i]]
		for j, v := range row {
			require.Equal(t, math.Trunc(v), v)
			if want := rows[0][i][j]; !(math.Abs(v*scale-want) <= 0x1p-22*math.Abs(want)) {
				t.Fatalf("row %d, id %d: %v times %v, want %v", i, j, v, scale, want)
			}
		}
	}
}

func TestBrokenHeadsAreErrors(t *testing.T) {
	var config *engine.ConfigError
	for _, c := range []struct {
		name   string
		edit   func(w *seeded.Memory)
		output []int
		want   string
		config bool
	}{
		{"no output", nil, []int{}, "got no output tokens", false},
		{"output outside the vocabulary", nil, []int{19, 0}, "token id 2: got 19, want 0 to 18", false},
		{"no norm", func(w *seeded.Memory) { delete(w.Tensors, "model.norm.weight") }, nil, "model.norm.weight", true},
		{"no head", func(w *seeded.Memory) { delete(untied(w).Tensors, "lm_head.weight") }, nil, "lm_head.weight", true},
		{"head of another size", func(w *seeded.Memory) {
			untied(w).Tensors["lm_head.weight"] = engine.Tensor{Shape: []int{18, 10}, Data: make([]float32, 180)}
		}, nil, "want shape [19 10]", true},
		{"NaN in the head", func(w *seeded.Memory) { untied(w).Tensors["lm_head.weight"].Data[25] = float32(math.NaN()) }, nil, "lm_head.weight: got a NaN or infinity in row 2", true},
		{"NaN in the gain", func(w *seeded.Memory) { w.Tensors["model.norm.weight"].Data[1] = float32(math.NaN()) }, nil, "final_norm: logit row 0", false},
		{"negative eps", func(w *seeded.Memory) { w.Architecture.FinalNormEps = -1 }, nil, "final norm: got -1", true},
	} {
		w := tiny(1)
		if c.edit != nil {
			c.edit(w)
		}
		output := c.output
		if output == nil {
			output = []int{1, 2}
		}
		rows, err := FromWeights(w).EmulateLogits(t.Context(), engine.Scheme{}, []int{1, 2}, output)
		require.ErrorContains(t, err, c.want, c.name)
		require.Nil(t, rows)
		require.Equal(t, c.config, errors.As(err, &config), c.name)
		if c.edit != nil {
			for _, opts := range [][]CandidateOption{nil, {Int32Logits()}} {
				_, err = FromWeights(w).Candidate(engine.Scheme{}, opts...).Run(t.Context(), engine.Request{Case: engine.Case{TokenIDs: []int{1, 2}}})
				require.ErrorContains(t, err, c.want, c.name)
			}
		}
	}

	w := tiny(1)
	w.Architecture.Hidden = maxCodesHidden + 1
	_, err := FromWeights(w).Candidate(engine.Scheme{}, Int32Logits()).Run(t.Context(), engine.Request{Case: engine.Case{TokenIDs: []int{1}}})
	var unsupported *engine.UnsupportedError
	require.ErrorAs(t, err, &unsupported)
}

func TestMaxCodesHiddenIsTheBoundOfInt32(t *testing.T) {
	for hidden, fits := range map[int64]bool{maxCodesHidden: true, maxCodesHidden + 1: false} {
		if sum := hidden * maxCode * maxCode; (sum <= math.MaxInt32) != fits {
			t.Errorf("hidden size %d: sum %d, want it to fit: %v", hidden, sum, fits)
		}
	}
}

func TestDecodeHonoursContext(t *testing.T) {
	why := errors.New("deadline of the case")
	ctx, cancel := context.WithCancelCause(t.Context())
	e := FromWeights(tiny(1))
	s, err := e.start(engine.Scheme{}, []int{1}, true)
	require.NoError(t, err)
	require.NoError(t, s.feed(ctx, []int{1}, func(_, _ []float64) {}))
	cancel(why)
	require.ErrorIs(t, s.feed(ctx, []int{2}, func(_, _ []float64) {}), why)
	_, err = e.Candidate(engine.Scheme{}).Run(ctx, engine.Request{Case: engine.Case{TokenIDs: []int{1}}})
	require.ErrorIs(t, err, why)
	_, err = e.EmulateLogits(ctx, engine.Scheme{}, []int{1}, []int{1})
	require.ErrorIs(t, err, why)
}

// BenchmarkAnswer is a candidate's answer to all fixture prompts with so many
// tokens: its growth per token is the cost of a step.
func BenchmarkAnswer(b *testing.B) {
	e, cases := FromWeights(model(b)), prompts(b)
	for _, n := range []int{1, 8} {
		b.Run(fmt.Sprintf("%d-tokens", n), func(b *testing.B) {
			for b.Loop() {
				for _, c := range cases {
					if _, err := e.Candidate(engine.Scheme{RowsInt8: true}).Run(b.Context(), engine.Request{Case: c, DecodeSteps: n}); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(cases)), "us/answer")
		})
	}
}
