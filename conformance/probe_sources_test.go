package conformance_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
)

// everyPosition multiplies a place by x at all positions.
func everyPosition(m engine.Matrix, x float32) engine.Matrix {
	m.Data = append([]float32(nil), m.Data...)
	for i := range m.Data {
		m.Data[i] *= x
	}
	return m
}

// TestSourcesDontHideEachOther: what is wrong in the input, in all layers or in the
// dump takes no other source away.
func TestSourcesDontHideEachOther(t *testing.T) {
	onlyOnEmbedded(t)
	cfg := probing(t, seeded, "translation")
	a := cfg.Reference.Weights().Arch()
	clean := inScheme(scaled)(cfg.Reference.Weights())
	k0, v9, v10, mid7 := engine.Block(0, engine.PartKRope), engine.Block(9, engine.PartV), engine.Block(10, engine.PartV), engine.ResidMid(7)
	for _, tc := range []struct {
		name    string
		spoil   func(p engine.ProbeValues)
		row     int
		kind    conformance.Kind
		sources []engine.Probe
	}{
		{"an embedding that is wrong in the dump alone, and a wrong v", func(p engine.ProbeValues) {
			p[engine.ProbeEmbed] = changed(p[engine.ProbeEmbed], 3, func(row []float32) { row[0], row[1] = row[0]+9, row[1]-9 })
			p[v9] = everyPosition(p[v9], 2)
		}, 0, conformance.KindDump, []engine.Probe{v9}},
		{"keys of all layers and values of one", func(p engine.ProbeValues) {
			for n := range a.Layers {
				k := engine.Block(n, engine.PartKRope)
				p[k] = everyPosition(p[k], 1.5)
			}
			p[v10] = everyPosition(p[v10], 2)
		}, 1, conformance.KindAllLayers, []engine.Probe{k0, v10}},
		{"a resid_mid that is wrong in the dump alone, and a wrong v", func(p engine.ProbeValues) {
			p[mid7] = everyPosition(p[mid7], 1.3)
			p[v10] = everyPosition(p[v10], 2)
		}, 8, conformance.KindDump, []engine.Probe{v10}},
	} {
		rep := judge(t, cfg, tampered(t, clean, func(_ engine.Request, resp *engine.Response, p engine.ProbeValues) {
			resp.Layers = nil // the places alone
			tc.spoil(p)
		}))
		assert.Equal(t, conformance.Fails, rep.Conclusion, tc.name)
		if assert.NotNil(t, rep.FirstBadRow, tc.name) && assert.NotNil(t, rep.Kind, tc.name) {
			assert.Equal(t, tc.row, *rep.FirstBadRow, "%s; notes %v", tc.name, rep.Notes)
			assert.Equal(t, tc.kind, *rep.Kind, "%s; notes %v", tc.name, rep.Notes)
		}
		assert.Equal(t, tc.sources, rep.Sources, "%s; notes %v", tc.name, rep.Notes)
	}
}

// TestAWrongTokenHidesNoLayer: the engine ran another token, and v of a layer is wrong
// as well.
func TestAWrongTokenHidesNoLayer(t *testing.T) {
	onlyOnEmbedded(t)
	cfg := probing(t, seeded, "translation")
	v9 := engine.Block(9, engine.PartV)
	clean := inScheme(scaled)(cfg.Reference.Weights())
	rep := judge(t, cfg, tampered(t, clean, func(req engine.Request, resp *engine.Response, p engine.ProbeValues) {
		other := req
		other.Case.TokenIDs = slices.Clone(req.Case.TokenIDs)
		other.Case.TokenIDs[3]++
		ran, err := clean.Run(t.Context(), other)
		require.NoError(t, err)
		maps.Copy(p, ran.Probes.(engine.ProbeValues))
		p[v9] = everyPosition(p[v9], 2)
		resp.Layers = nil
	}))
	assertLocus(t, rep, 0, conformance.KindInput, []engine.Probe{engine.ProbeEmbed, v9}, "token 3 is another")
	if assert.NotNil(t, rep.FirstBadPosition) {
		assert.Equal(t, 3, *rep.FirstBadPosition)
	}
}

// TestAFaultOfAllPositionsHasNoDate: where it leaves the noise says nothing.
func TestAFaultOfAllPositionsHasNoDate(t *testing.T) {
	onlyOnEmbedded(t)
	cfg := probing(t, seeded, "translation", "two_halves")
	rep := judge(t, cfg, inScheme(scaled)(faultyWeights(t, cfg.Reference.Weights(), "mlp-gain", 6)))
	assertLocus(t, rep, 7, conformance.KindLayer, []engine.Probe{engine.ResidPost(6)}, "a tenth more of the MLP")
	if rep.FirstBadPosition != nil {
		assert.LessOrEqual(t, *rep.FirstBadPosition, 1)
	}
	for _, n := range rep.Notes {
		assert.NotContains(t, n, "those before it are right")
	}
}

// TestAValueThatNoLayerTakesIsNamed by its channel.
func TestAValueThatNoLayerTakesIsNamed(t *testing.T) {
	onlyOnEmbedded(t)
	cfg := probing(t, seeded, "translation")
	v := engine.Block(7, engine.PartV)
	rep := judge(t, cfg, tampered(t, inScheme(scaled)(cfg.Reference.Weights()), func(_ engine.Request, _ *engine.Response, p engine.ProbeValues) {
		p[v] = changed(p[v], 5, func(row []float32) { row[2] = 1e30 })
	}))
	f := resultOf(t, rep, "ProbeCandidate", cfg.Cases[0].Name).Findings
	if assert.Len(t, f, 1) && assert.NotNil(t, f[0].At.Position) {
		assert.Equal(t, []int{5, 2}, []int{*f[0].At.Position, f[0].At.Channel})
		assert.InEpsilon(t, 1e30, float64(f[0].Got), 1e-6)
		assert.Contains(t, f[0].Detail, "beyond what a float32 layer can take")
	}
}

// TestWhatIsNotJudgedIsSaid: a place without its layer's input row, and an input
// that isn't there.
func TestWhatIsNotJudgedIsSaid(t *testing.T) {
	onlyOnEmbedded(t)
	cfg := probing(t, seeded, "translation")
	rep := judge(t, cfg, tampered(t, inScheme(scaled)(cfg.Reference.Weights()), func(_ engine.Request, _ *engine.Response, p engine.ProbeValues) {
		delete(p, engine.ProbeEmbed)
		delete(p, engine.ResidPost(6))
		p[engine.Block(7, engine.PartV)] = everyPosition(p[engine.Block(7, engine.PartV)], 2) // nobody can see it
	}))
	power := ""
	for _, line := range rep.Power {
		power += line + "\n"
	}
	assert.Contains(t, power, "not seen: a wrong input in 1 of 1 prompts, whose probes lack embed")
	assert.Contains(t, power, "offered and not judged, since the layer's input row is not dumped: blocks.0.")
	assert.Contains(t, power, "and ")
}
