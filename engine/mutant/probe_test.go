package mutant

import (
	"context"
	"errors"
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/quant"
)

// probeSide answers as a toySide does, and with probes.
type probeSide struct {
	toySide
	probes engine.ProbeSource
}

func (c probeSide) Run(ctx context.Context, req engine.Request) (*engine.Response, error) {
	resp, err := c.toySide.Run(ctx, req)
	if err == nil {
		resp.Probes = c.probes
	}
	return resp, err
}

func matrix(rows int, data ...float32) engine.Matrix {
	return engine.Matrix{Rows: rows, Width: len(data) / rows, Data: data}
}

// toyProbes are two layers' at 3 positions.
func toyProbes() engine.ProbeValues {
	return engine.ProbeValues{
		"embed":              matrix(3, 1, 2, 3, 4, 5, 6),
		"blocks.0.k_rope":    matrix(3, 7, 8, 9),
		"blocks.0.v":         matrix(3, 10, 11, 12),
		"blocks.1.attn_out":  matrix(3, 13, 14, 15, 16, 17, 18),
		"blocks.1.attn_norm": matrix(3, 19, 20, 21),
		"blocks.1.v":         matrix(3, 22, 23, 24),
	}
}

func probesOf(t *testing.T, name string, at int, clean engine.ProbeSource, req engine.Request) engine.ProbeSource {
	t.Helper()
	m, err := Lookup(name)
	require.NoError(t, err)
	c, err := m.Candidate(Sides{Candidate: probeSide{probes: clean}, Weights: threeLayers(), Cases: twoCases()}, at)
	require.NoError(t, err)
	if req.Case.Name == "" {
		req.Case = twoCases()[0]
	}
	resp, err := c.Run(t.Context(), req)
	require.NoError(t, err, name)
	require.NoError(t, resp.Close())
	return resp.Probes
}

func TestProbeFaults(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range []struct {
		name   string
		at     int
		change engine.ProbeValues // replaced or added
		gone   engine.Probe
	}{
		{"probe-k-v-exchanged", 0, engine.ProbeValues{"blocks.0.k_rope": matrix(3, 10, 11, 12), "blocks.0.v": matrix(3, 7, 8, 9)}, ""},
		{"probe-k-v-exchanged", 1, nil, ""}, // no k_rope there
		{"probe-k-v-exchanged", 2, nil, ""},
		{"probe-positions-shifted", 1, engine.ProbeValues{"blocks.1.attn_out": matrix(3, 13, 14, 13, 14, 15, 16)}, ""},
		{"probe-positions-shifted", 0, engine.ProbeValues{"blocks.0.k_rope": matrix(3, 7, 7, 8)}, ""}, // the first by name
		{"probe-positions-shifted", 2, nil, ""},
		{"probe-short", 1, engine.ProbeValues{"blocks.1.attn_out": matrix(2, 13, 14, 15, 16)}, ""},
		{"probe-short", 0, engine.ProbeValues{"blocks.0.k_rope": matrix(2, 7, 8)}, ""},
		{"probe-short", 2, nil, ""},
		{"probe-unknown-name", 1, engine.ProbeValues{"model.layers.1.hook": matrix(3, 13, 14, 15, 16, 17, 18)}, "blocks.1.attn_out"},
		{"probe-unknown-name", 2, nil, ""},
	} {
		clean, want := toyProbes(), toyProbes()
		maps.Copy(want, c.change)
		delete(want, c.gone)
		seen[c.name] = true
		assert.Equal(t, engine.ProbeSource(want), probesOf(t, c.name, c.at, clean, engine.Request{}), "%s at %d", c.name, c.at)
		assert.Equal(t, toyProbes(), clean, "%s: the clean answer's memory was written", c.name)
	}
	for _, m := range probeFaults() {
		assert.True(t, seen[m.Name], "%s: add it to the table above", m.Name)
		assert.True(t, m.InCandidate() && !m.InReference() && !m.InWeights(), m.Name)
		assert.Nil(t, probesOf(t, m.Name, 0, nil, engine.Request{}), "%s: an answer without probes", m.Name)
	}
	one := engine.ProbeValues{"blocks.0.q": matrix(1, 1, 2)}
	assert.Equal(t, engine.ProbeSource(one), probesOf(t, "probe-positions-shifted", 0, one, engine.Request{}))
	assert.Equal(t, engine.ProbeSource(engine.ProbeValues{"blocks.0.q": {Width: 2, Data: []float32{}}}), probesOf(t, "probe-short", 0, one, engine.Request{}))
}

// brokenProbes can't be read, or closed.
type brokenProbes struct {
	engine.ProbeValues
	read, close error
}

func (b brokenProbes) Matrix(p engine.Probe) (engine.Matrix, error) {
	m, _ := b.ProbeValues.Matrix(p)
	return m, b.read
}

func (b brokenProbes) Close() error { return b.close }

func TestProbesThatCantBeRead(t *testing.T) {
	why := errors.New("half a file")
	for _, b := range []brokenProbes{{toyProbes(), why, nil}, {toyProbes(), nil, why}} {
		for _, name := range []string{"probe-short", "stop-dropped"} {
			m, err := Lookup(name)
			require.NoError(t, err)
			c, err := m.Candidate(Sides{Candidate: probeSide{probes: b}, Weights: threeLayers()}, 0)
			require.NoError(t, err)
			_, err = c.Run(t.Context(), engine.Request{Case: engine.Case{TokenIDs: []int{0}, Stop: []int{3}}})
			require.ErrorIs(t, err, why, name)
			require.ErrorContains(t, err, "mutant: "+name)
		}
	}
}

// After 0 the toy says 2, 1, 3, 0, so its probes are at 1+3 positions. A fault of
// the decode leaves those of the tokens that are still its.
func TestOutputFaultsKeepTheProbesOfTheirTokens(t *testing.T) {
	four := engine.ProbeValues{"embed": matrix(4, 1, 2, 3, 4, 5, 6, 7, 8)}
	for _, c := range []struct {
		name string
		stop []int
		want int
	}{
		{"temperature", nil, 4},
		{"logit-rows-shifted", nil, 4},
		{"flipped-clear-call", nil, 1},            // the first token is another one
		{"logits-constant", nil, 1},               // 0, 0, 0, 0
		{"last-position-logits-repeated", nil, 2}, // 2, 2, 2, 2
		{"stop-dropped", []int{0}, 4},             // the last token is gone, which had no position
		{"runs-past-stop", []int{0}, 4},
	} {
		req := engine.Request{Case: engine.Case{Name: "toy", TokenIDs: []int{0}, Stop: c.stop}, DecodeSteps: 4}
		want := matrix(c.want, four["embed"].Data[:2*c.want]...)
		assert.Equal(t, engine.ProbeSource(engine.ProbeValues{"embed": want}), probesOf(t, c.name, 0, four, req), c.name)
	}
}

// Every wrapped or opened candidate is asked for the probes, and only the probe
// faults spoil them; those of a fault in the engine are the faulty engine's.
func TestProbesGoThroughEveryCandidate(t *testing.T) {
	w := weights(t)
	asked := []engine.Probe{engine.Block(9, engine.PartKRope), engine.Block(9, engine.PartV), engine.Block(9, engine.PartAttnOut), engine.ResidPost(27)}
	cases := []engine.Case{{Name: "a", Text: "one", TokenIDs: []int{5, 17, 300}}, {Name: "b", Text: "three", TokenIDs: []int{9, 8, 7}}}
	open := func(w engine.Weights) (engine.Candidate, error) {
		return quant.FromWeights(w, quant.WithCache(shared)).Candidate(engine.Scheme{}), nil
	}
	answer := func(c engine.Candidate, ids []int) *engine.Response {
		req := engine.Request{Case: cases[0], DecodeSteps: 2, Probes: asked}
		req.Case.TokenIDs = ids
		resp, err := c.Run(t.Context(), req)
		require.NoError(t, err)
		return resp
	}
	clean, err := open(w)
	require.NoError(t, err)
	want := answer(clean, cases[0].TokenIDs)
	require.Len(t, want.Probes.Probes(), len(asked))
	for _, m := range All() {
		if !m.InCandidate() || ofHybrids(m) {
			continue
		}
		c, err := m.Candidate(Sides{Candidate: clean, Weights: w, Open: open, Cases: cases}, 9)
		require.NoError(t, err)
		switch {
		case m.Name == "no-cases" || m.Name == "answers-nothing":
		case m.weights != nil:
			faulty, err := m.Weights(w, 9)
			require.NoError(t, err)
			opened, err := open(faulty)
			require.NoError(t, err)
			assert.Equal(t, answer(opened, cases[0].TokenIDs).Probes, answer(c, cases[0].TokenIDs).Probes, m.Name)
		case m.answer != nil:
			got := answer(c, cases[0].TokenIDs)
			require.Len(t, got.Probes.Probes(), len(asked), m.Name)
			ids := map[string][]int{"another-prompt": cases[1].TokenIDs, "bos-doubled": {5, 5, 17, 300}}[m.Name]
			ref, err := clean.Run(t.Context(), engine.Request{Case: engine.Case{TokenIDs: ids}, DecodeSteps: len(got.OutputIDs), Probes: asked})
			require.NoError(t, err)
			assert.Equal(t, ref.Probes, got.Probes, m.Name)
		case m.probes != nil:
			assert.NotEqual(t, want.Probes, answer(c, cases[0].TokenIDs).Probes, m.Name)
			assert.Equal(t, want.Layers, answer(c, cases[0].TokenIDs).Layers, m.Name)
		case m.rows != nil:
			assert.Equal(t, want.Probes, answer(c, cases[0].TokenIDs).Probes, m.Name)
		default:
			got := answer(c, cases[0].TokenIDs).Probes
			for _, p := range asked {
				whole, err := want.Probes.Matrix(p)
				require.NoError(t, err)
				part, err := got.Matrix(p)
				require.NoError(t, err)
				require.True(t, part.Rows >= 3 && part.Rows <= 4, "%s: %d positions", m.Name, part.Rows)
				assert.Equal(t, whole.Data[:len(part.Data)], part.Data, m.Name)
			}
		}
	}
}
