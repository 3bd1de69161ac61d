package quant

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/internal/seeded"
)

func answerOf(t testing.TB, e *Emulation, scheme engine.Scheme, req engine.Request, opts ...CandidateOption) *engine.Response {
	t.Helper()
	resp, err := e.Candidate(scheme, opts...).Run(t.Context(), req)
	require.NoError(t, err)
	return resp
}

// probeRows is a probe of an answer in float64.
func probeRows(t testing.TB, resp *engine.Response, p engine.Probe) (rows [][]float64) {
	t.Helper()
	m, err := resp.Probes.Matrix(p)
	require.NoError(t, err, p)
	for i := range m.Rows {
		rows = append(rows, wide(m.Row(i)))
	}
	return rows
}

func wide(row []float32) (out []float64) {
	for _, v := range row {
		out = append(out, float64(v))
	}
	return out
}

func asFloat32(row []float64) (out []float64) {
	for _, v := range row {
		out = append(out, float64(float32(v)))
	}
	return out
}

// All probes at all positions are those of a naive implementation, which runs the
// prompt and the tokens behind it from the start.
func TestProbesMatchANaiveImplementation(t *testing.T) {
	ids := []int{3, 11, 0, 18, 11, 7, 5}
	for _, c := range naiveCases() {
		for i, w := range []*seeded.Memory{tiny(4), untied(tiny(5))} {
			c.of(w)
			for _, int8Rows := range []bool{false, true} {
				m, all := c.naive, engine.Probes(w.Architecture)
				resp := answerOf(t, FromWeights(w, c.opts...), engine.Scheme{RowsInt8: int8Rows},
					engine.Request{Case: engine.Case{TokenIDs: ids}, DecodeSteps: 4, Probes: all})
				require.Len(t, resp.OutputIDs, 4)
				require.ElementsMatch(t, all, resp.Probes.Probes())
				m.w, m.rowsInt8 = w, int8Rows
				want := map[engine.Probe][][]float64{}
				m.see = func(n int, part engine.Part, x []float64) {
					p := engine.Block(n, part)
					if n < 0 {
						p = engine.ProbeEmbed
					}
					want[p] = append(want[p], x)
				}
				_, logits := m.run(ids, resp.OutputIDs)
				for _, x := range want[engine.ResidPost(2)] {
					want[engine.ProbeFinalNorm] = append(want[engine.ProbeFinalNorm], m.norm("model.norm.weight", x, w.Architecture.FinalNormEps))
					want[engine.ProbeLogits] = append(want[engine.ProbeLogits], m.logits(x))
				}
				require.Equal(t, logits, want[engine.ProbeLogits][len(ids)-1:])
				for _, p := range all {
					got := probeRows(t, resp, p)
					require.Len(t, got, len(ids)+3, p)
					if d := worst(t, got, want[p]); !(d <= 0x1p-23) {
						t.Errorf("%s, model %d, int8 rows %v: %s: relative L2 %v, want float32 precision", c.name, i, int8Rows, p, d)
					}
				}
			}
		}
	}
}

// Dumps and probes are of one run, and a layer on its own makes one probe of
// another.
func TestProbesAreThoseOfTheDumps(t *testing.T) {
	ids := prompts(t)[2].TokenIDs[:9]
	for _, scheme := range layerSchemes() {
		e := FromWeights(model(t), WithCache(partsCache))
		req := engine.Request{Case: engine.Case{TokenIDs: ids}, DecodeSteps: 3}
		plain := answerOf(t, e, scheme, req)
		require.Nil(t, plain.Probes, "nobody asked")
		req.Probes = engine.Probes(e.arch)
		resp := answerOf(t, e, scheme, req)
		require.Equal(t, plain.OutputIDs, resp.OutputIDs)
		require.Equal(t, plain.Layers, resp.Layers)
		logits := logitsOf(t, resp)
		require.Equal(t, logitsOf(t, plain), logits)
		assert.Equal(t, logits, probeRows(t, resp, engine.ProbeLogits)[len(ids)-1:], "%+v", scheme)
		row := make([]float64, e.arch.Hidden)
		for i := range e.arch.Layers + 1 {
			_, err := resp.Layers.Row(i, row)
			require.NoError(t, err)
			assert.Equal(t, asFloat32(row), probeRows(t, resp, engine.RowProbe(i))[len(ids)-1], "%+v: row %d", scheme, i)
		}
		// the rows of the run itself, whose float32 the probes are
		all := append(slices.Clone(ids), resp.OutputIDs[:2]...)
		rows := allRows(t, e, scheme, all)
		for _, n := range []int{0, 3, e.arch.Layers - 1} {
			for part, want := range emulateLayer(t, e, scheme, n, rows[n], nil) {
				got := probeRows(t, resp, engine.Block(n, part))
				require.Len(t, got, len(all))
				for i := range want {
					assert.Equal(t, asFloat32(want[i]), got[i], "%+v: layer %d: %s: position %d", scheme, n, part, i)
				}
			}
		}
	}
}

func TestProbePositions(t *testing.T) {
	e, ids := FromWeights(tiny(3)), []int{3, 11, 0}
	asked := []engine.Probe{engine.Block(1, engine.PartKRope), engine.ProbeEmbed, engine.ProbeEmbed}
	free := answerOf(t, e, engine.Scheme{}, engine.Request{Case: engine.Case{TokenIDs: ids}}).OutputIDs
	require.NotContains(t, free[:2], free[2])
	for name, c := range map[string]struct {
		req  engine.Request
		want int
	}{
		"the candidate's own length": {engine.Request{}, 3 + engine.DefaultMaxNew - 1},
		"one token":                  {engine.Request{DecodeSteps: 1}, 3},
		"a stop id":                  {engine.Request{Case: engine.Case{Stop: free[2:3]}}, 5},
		"the prompt alone":           {engine.Request{NoLogits: true, DecodeSteps: 4}, 3},
	} {
		c.req.Case.TokenIDs, c.req.Probes = ids, asked
		for _, opts := range [][]CandidateOption{nil, {Int32Logits()}} {
			resp := answerOf(t, e, engine.Scheme{}, c.req, opts...)
			require.Equal(t, []engine.Probe{"blocks.1.k_rope", "embed"}, resp.Probes.Probes(), name)
			for p, width := range map[engine.Probe]int{"blocks.1.k_rope": 12, "embed": 10} {
				n, w := resp.Probes.Shape(p)
				assert.Equal(t, []int{c.want, width}, []int{n, w}, "%s: %s", name, p)
				assert.Len(t, probeRows(t, resp, p), c.want, name)
			}
			if !c.req.NoLogits {
				assert.Equal(t, c.want, len(ids)+len(resp.OutputIDs)-1, name)
			}
			require.NoError(t, resp.Close())
		}
	}
}

// More positions than are computed at a time.
func TestLogitProbeOfALongPrompt(t *testing.T) {
	ids := make([]int, logitRows+7)
	for i := range ids {
		ids[i] = i * 5 % 19
	}
	for _, scheme := range blockSchemes() {
		e := FromWeights(tiny(2))
		want, err := e.EmulateLogits(t.Context(), scheme, ids[:1], append(slices.Clone(ids[1:]), 0))
		require.NoError(t, err)
		got := probeRows(t, answerOf(t, e, scheme, engine.Request{Case: engine.Case{TokenIDs: ids}, NoLogits: true, Probes: []engine.Probe{engine.ProbeLogits}}), engine.ProbeLogits)
		require.Len(t, got, len(ids))
		for i := range want {
			require.Equal(t, asFloat32(want[i]), got[i], "%+v: position %d", scheme, i)
		}
	}
}

func TestProbesThatAreNotThere(t *testing.T) {
	var unknown *engine.ProbeError
	var unsupported *engine.UnsupportedError
	for _, noLogits := range []bool{false, true} {
		for _, c := range []struct {
			asked  engine.Probe
			opts   []CandidateOption
			target any
		}{
			{"blocks.3.q", nil, &unknown}, // three layers
			{"nowhere", nil, &unknown},
			{"blocks.01.q", nil, &unknown},
			{"blocks.1.route_ids", nil, &unsupported},
			{"logits", []CandidateOption{Int32Logits()}, &unsupported},
		} {
			req := engine.Request{Case: engine.Case{TokenIDs: []int{1, 2}}, NoLogits: noLogits, Probes: []engine.Probe{engine.ProbeEmbed, c.asked}}
			resp, err := FromWeights(tiny(1)).Candidate(engine.Scheme{}, c.opts...).Run(t.Context(), req)
			require.ErrorAs(t, err, c.target, c.asked)
			require.Nil(t, resp)
		}
	}
	w := tiny(1)
	delete(w.Tensors, "model.norm.weight")
	req := engine.Request{Case: engine.Case{TokenIDs: []int{1, 2}}, NoLogits: true, Probes: []engine.Probe{engine.ProbeFinalNorm}}
	_, err := FromWeights(w).Candidate(engine.Scheme{}).Run(t.Context(), req)
	require.ErrorContains(t, err, "model.norm.weight")
	w.Architecture.Family = "gemma4"
	_, err = FromWeights(w).Candidate(engine.Scheme{}).Run(t.Context(), req)
	require.ErrorAs(t, err, &unsupported)
	require.ErrorContains(t, err, "gemma4", "the model comes before its probes")
}

func TestProbeOfLogitsHonoursContext(t *testing.T) {
	why := errors.New("deadline of the case")
	ctx, cancel := context.WithCancelCause(t.Context())
	e := FromWeights(tiny(1))
	c, err := e.probes([]engine.Probe{engine.ProbeLogits}, 1, false)
	require.NoError(t, err)
	visits := 0
	err = e.run(ctx, engine.Scheme{}, []int{1}, c, func(_, _ []float64) {
		if visits++; visits == 4 { // behind the last layer
			cancel(why)
		}
	})
	require.ErrorIs(t, err, why)
}
