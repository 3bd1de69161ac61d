package conformance_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
)

// TestMalformedProbesAreTheCandidatesFault: the case is an error that says which
// file, which probe, what was found and what was wanted; the run goes on.
func TestMalformedProbesAreTheCandidatesFault(t *testing.T) {
	onlyOnEmbedded(t)
	cfg := probing(t, seeded, "arithmetic", "translation")
	broken := cfg.Cases[0]
	clean := inScheme(scaled)(cfg.Reference.Weights())
	v, mid := engine.Block(3, engine.PartV), engine.ResidMid(7)
	for name, tc := range map[string]struct {
		spoil func(resp *engine.Response, p engine.ProbeValues)
		says  []string
	}{
		"unknown name": {func(_ *engine.Response, p engine.ProbeValues) { p["model.layers.3.hook"] = p[v] },
			[]string{`"model.layers.3.hook"`, "resid_post", "from 0 to 27"}},
		"a layer too many": {func(_ *engine.Response, p engine.ProbeValues) { p["blocks.28.v"] = p[v] },
			[]string{`"blocks.28.v"`, "from 0 to 27"}},
		"of a router": {func(_ *engine.Response, p engine.ProbeValues) { p["blocks.3.router_logits"] = p[v] },
			[]string{"blocks.3.router_logits", "have no router"}},
		"wrong width": {func(_ *engine.Response, p engine.ProbeValues) { p[v] = p[mid] },
			[]string{"blocks.3.v", "width: got 64, want 32"}},
		"a position less than its neighbours": {func(_ *engine.Response, p engine.ProbeValues) { p[mid] = cut(p[mid], 8) },
			[]string{"blocks.7.resid_mid", "got 8 positions, want 9"}},
		"more positions than tokens": {func(_ *engine.Response, p engine.ProbeValues) {
			for name, m := range p {
				m.Data = append(append([]float32(nil), m.Data...), m.Row(0)...)
				m.Rows++
				p[name] = m
			}
		}, []string{"blocks.0.k_rope", "got 10 positions, want 9"}},
		"no position": {func(_ *engine.Response, p engine.ProbeValues) { p[v] = engine.Matrix{Width: 32} },
			[]string{"blocks.3.v", "got 0 positions, want 9"}},
		"no probe": {func(_ *engine.Response, p engine.ProbeValues) { clear(p) },
			[]string{"probes", "got no probe, want at least 1"}},
		"values missing": {func(_ *engine.Response, p engine.ProbeValues) {
			m := p[v]
			m.Data = m.Data[1:]
			p[v] = m
		}, []string{"blocks.3.v", "got 287 values, want 9 positions of 32"}},
	} {
		t.Run(name, func(t *testing.T) {
			rep := judge(t, cfg, tampered(t, clean, func(req engine.Request, resp *engine.Response, p engine.ProbeValues) {
				if req.Case.Name == broken.Name {
					tc.spoil(resp, p)
				}
			}))
			assert.Equal(t, conformance.Fails, rep.Conclusion)
			if assert.NotNil(t, rep.Kind) {
				assert.Equal(t, conformance.KindFormat, *rep.Kind)
			}
			failures := rep.Failures()
			if assert.Len(t, failures, 1, "said once") {
				assert.Equal(t, conformance.Error, failures[0].Status)
				assert.Equal(t, broken.Name, failures[0].Case)
				for _, s := range append(tc.says, probeFileName) {
					assert.Contains(t, failures[0].Reason, s)
				}
			}
			assert.False(t, rep.Cases[broken.Name].Judged)
			assert.Equal(t, conformance.Pass, resultOf(t, rep, "ProbeCandidate", cfg.Cases[1].Name).Status, "the other case is judged")
		})
	}
}

// TestProbesWithoutValuesAreFaultsOfTheDump: a row that says nothing is named with
// its position, and what stands before it is judged.
func TestProbesWithoutValuesAreFaultsOfTheDump(t *testing.T) {
	onlyOnEmbedded(t)
	cfg := probing(t, seeded, "arithmetic")
	clean := inScheme(scaled)(cfg.Reference.Weights())
	nan := func(row []float32) { row[5] = float32(math.NaN()) }
	for name, tc := range map[string]struct {
		at     engine.Probe
		row    int
		write  func([]float32)
		detail string
	}{
		"NaN in a residual row": {engine.ResidPost(6), 7, nan, "blocks.6.resid_post at position 4 is non-finite"},
		"NaN in a key":          {engine.Block(6, engine.PartKRope), 7, nan, "blocks.6.k_rope at position 4 is non-finite"},
		"NaN in the embedding":  {engine.ProbeEmbed, 0, nan, "embed at position 4 is non-finite"},
		"an infinite value":     {engine.ResidMid(6), 7, func(r []float32) { r[0] = float32(math.Inf(1)) }, "blocks.6.resid_mid at position 4 is non-finite"},
		"zeros":                 {engine.ResidPost(6), 7, func(r []float32) { clear(r) }, "blocks.6.resid_post at position 4 is all zero"},
	} {
		t.Run(name, func(t *testing.T) {
			rep := judge(t, cfg, tampered(t, clean, func(_ engine.Request, _ *engine.Response, p engine.ProbeValues) {
				p[tc.at] = changed(p[tc.at], 4, tc.write)
			}))
			assert.Equal(t, conformance.Fails, rep.Conclusion)
			if assert.NotNil(t, rep.Kind) {
				assert.Equal(t, conformance.KindDump, *rep.Kind)
			}
			assert.Nil(t, rep.Source)
			if assert.NotNil(t, rep.FirstBadRow) {
				assert.Equal(t, tc.row, *rep.FirstBadRow)
			}
			if assert.NotNil(t, rep.FirstBadPosition) {
				assert.Equal(t, 4, *rep.FirstBadPosition)
			}
			r := resultOf(t, rep, "ProbeCandidate", cfg.Cases[0].Name)
			if assert.Len(t, r.Findings, 1) {
				f := r.Findings[0]
				assert.Equal(t, tc.at, f.Probe)
				assert.Equal(t, tc.detail, f.Detail)
				assert.Equal(t, tc.row, f.At.Row)
				assert.Equal(t, probeFileName, f.At.File)
				if assert.NotNil(t, f.At.Position) {
					assert.Equal(t, 4, *f.At.Position)
				}
			}
			if tc.row > 0 {
				assert.Contains(t, judgedPlaces(rep, cfg.Cases[0].Name), engine.ResidPost(5), "the layers before it are judged")
			}
			assert.Contains(t, judgedPlaces(rep, cfg.Cases[0].Name), engine.ResidPost(20), "and those behind it")
		})
	}
}

// judgedPlaces are the places of a case that have figures in the report.
func judgedPlaces(rep *conformance.Report, name string) []engine.Probe {
	var out []engine.Probe
	for _, p := range rep.Cases[name].Probes {
		out = append(out, p.Probe)
	}
	return out
}

// TestAFaultBeforeABadRowIsStillNamed: a row that says nothing doesn't hide what
// the layers before it show.
func TestAFaultBeforeABadRowIsStillNamed(t *testing.T) {
	onlyOnEmbedded(t)
	cfg := probing(t, seeded, "arithmetic")
	faulty := inScheme(scaled)(faultyWeights(t, cfg.Reference.Weights(), "gate-up-swapped", 3))
	rep := judge(t, cfg, tampered(t, faulty, func(_ engine.Request, _ *engine.Response, p engine.ProbeValues) {
		at := engine.ResidPost(10)
		p[at] = changed(p[at], 4, func(r []float32) { r[5] = float32(math.NaN()) })
	}))
	assertLocus(t, rep, 4, conformance.KindLayer, inLayer(3, engine.PartResidPost), "MLP of layer 3, NaN in row 11")
}

// TestProbesAndLayerDumpAreOneRuns: a layer dump's row that is not the probes' at
// the last prompt position is of another run.
func TestProbesAndLayerDumpAreOneRuns(t *testing.T) {
	onlyOnEmbedded(t)
	cfg := probing(t, seeded, "arithmetic")
	for name, scheme := range schemes {
		clean := inScheme(scheme)(cfg.Reference.Weights())
		rep := judge(t, cfg, tampered(t, clean, func(_ engine.Request, resp *engine.Response, _ engine.ProbeValues) {
			resp.Layers = offByALittle{resp.Layers, 5, 3}
		}))
		assert.Equal(t, conformance.Fails, rep.Conclusion, name)
		r := resultOf(t, rep, "ProbeCandidate", cfg.Cases[0].Name)
		assert.Equal(t, conformance.KindDump, r.Kind, name)
		if assert.Len(t, r.Findings, 1, name) && assert.NotNil(t, r.Findings[0].At.Position, name) {
			at := r.Findings[0].At
			assert.Equal(t, []int{5, 3, len(cfg.Cases[0].TokenIDs) - 1}, []int{at.Row, at.Channel, *at.Position}, name)
			assert.Equal(t, engine.ResidPost(4), r.Findings[0].Probe, name)
		}
		if assert.NotNil(t, rep.FirstBadRow, name) {
			assert.Equal(t, 5, *rep.FirstBadRow, name)
		}
	}
}

// offByALittle moves one channel of one row by a code, or by a hundred-thousandth.
type offByALittle struct {
	engine.RowSource
	row, channel int
}

func (o offByALittle) Row(i int, dst []float64) (float64, error) {
	step, err := o.RowSource.Row(i, dst)
	if i == o.row {
		dst[o.channel] += max(step, 1e-5*(1+math.Abs(dst[o.channel])))
	}
	return step, err
}

// TestMutantsOfProbesAreMalformed: the planted faults of form, as an engine's dumper
// makes them.
func TestMutantsOfProbesAreMalformed(t *testing.T) {
	onlyOnEmbedded(t)
	cfg := probing(t, seeded, "arithmetic", "translation")
	for mutant, says := range map[string]string{"probe-short": "positions, want", "probe-unknown-name": "model.layers.3.hook"} {
		planted, err := cfg.Mutants(cfg, conformance.Control{Mutant: mutant, Side: conformance.SideCandidate, Layer: 3})
		require.NoError(t, err)
		rep, err := conformance.Evaluate(t.Context(), planted)
		require.NoError(t, err)
		assert.Equal(t, conformance.Fails, rep.Conclusion, mutant)
		if assert.NotNil(t, rep.Kind, mutant) {
			assert.Equal(t, conformance.KindFormat, *rep.Kind, mutant)
		}
		assert.Contains(t, rep.Cases[cfg.Cases[0].Name].Reason, says, mutant)
	}
}
