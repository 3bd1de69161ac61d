package conformance_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
)

// withoutLayers has a candidate give its probes and no layer dump.
func withoutLayers(t *testing.T, c engine.Candidate) engine.Candidate {
	t.Helper()
	return tampered(t, c, func(_ engine.Request, resp *engine.Response, _ engine.ProbeValues) { resp.Layers = nil })
}

// TestProbesStandInForALayerDump: the rows at the last prompt position are judged
// as a layer dump's. The form of a file that isn't there is not.
func TestProbesStandInForALayerDump(t *testing.T) {
	onlyOnEmbedded(t)
	cfg := probing(t, seeded, "arithmetic", "translation")
	cfg.Only = nil
	open := inScheme(scaled)
	rep := judge(t, cfg, withoutLayers(t, open(cfg.Reference.Weights())))
	for _, c := range cfg.Cases {
		for id, want := range map[string]conformance.Status{
			"ResidualCandidate": conformance.Pass, "LocalError": conformance.Pass, "ProbeCandidate": conformance.Pass,
			"ResidualShape": conformance.Unsupported,
		} {
			r := resultOf(t, rep, id, c.Name)
			assert.Equal(t, want, r.Status, "%s on %s: %s %v", id, c.Name, r.Reason, r.Findings)
		}
		depth := rep.Cases[c.Name].Depth
		if assert.Len(t, depth, cfg.Reference.Weights().Arch().Layers+1) {
			assert.True(t, depth[5].LocalAllPositions, "the local error is over all positions")
		}
	}
	assert.Empty(t, rep.Failures())
	assert.Equal(t, conformance.Partial, rep.Conclusion)
	if assert.Len(t, rep.NotJudged, 1) {
		assert.Equal(t, "ResidualShape", rep.NotJudged[0].ID)
	}

	gate := cfg
	gate.Candidate, gate.AllowPartial = withoutLayers(t, open(cfg.Reference.Weights())), true
	conformance.Run(t, gate)

	rep = judge(t, cfg, withoutLayers(t, open(faultyWeights(t, cfg.Reference.Weights(), "gate-up-swapped", 6))))
	assertLocus(t, rep, 7, conformance.KindLayer, inLayer(6, engine.PartResidPost), "a fault without a layer dump")
	for _, id := range []string{"ResidualCandidate", "LocalError", "ProbeCandidate"} {
		r := resultOf(t, rep, id, "arithmetic")
		if assert.Equal(t, conformance.Fail, r.Status, id) {
			assert.Equal(t, probeFileName, r.Findings[0].At.File, "%s names the file that the rows came from", id)
			assert.Equal(t, 7, r.Findings[0].At.Row, id)
		}
	}
}
