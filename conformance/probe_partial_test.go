package conformance_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
)

// TestEmbeddingOfAnotherToken: the engine ran another id at one position. That is
// the input's fault, and no layer's.
func TestEmbeddingOfAnotherToken(t *testing.T) {
	onlyOnEmbedded(t)
	cfg := probing(t, seeded, "arithmetic")
	const position = 4
	for name, scheme := range schemes {
		clean := inScheme(scheme)(cfg.Reference.Weights())
		info, err := clean.Info(t.Context())
		assert.NoError(t, err)
		rep := judge(t, cfg, engine.Func{Side: info, Answer: answerAs(clean, func(ids []int) { ids[position]++ })})
		assertLocus(t, rep, 0, conformance.KindInput, []engine.Probe{engine.ProbeEmbed}, name)
		if assert.NotNil(t, rep.FirstBadPosition, name) {
			assert.Equal(t, position, *rep.FirstBadPosition, name)
		}
		r := resultOf(t, rep, "ProbeCandidate", cfg.Cases[0].Name)
		if assert.Len(t, r.Findings, 1, "%s: the layers are right on their own rows: %v", name, r.Findings) {
			assert.Equal(t, engine.ProbeEmbed, r.Findings[0].Probe, name)
		}
	}
}

// TestProbesWithoutTheEmbedding: layer 0 has no input rows to be judged on, all
// others have.
func TestProbesWithoutTheEmbedding(t *testing.T) {
	onlyOnEmbedded(t)
	cfg := probing(t, seeded, "arithmetic")
	without := func(layer int) *conformance.Report {
		faulty := inScheme(scaled)(faultyWeights(t, cfg.Reference.Weights(), "gate-up-swapped", layer))
		return judge(t, cfg, tampered(t, faulty, func(_ engine.Request, resp *engine.Response, p engine.ProbeValues) {
			delete(p, engine.ProbeEmbed)
			resp.Layers = nil
		}))
	}
	rep := without(1)
	assertLocus(t, rep, 2, conformance.KindLayer, inLayer(1, engine.PartResidPost), "a fault in layer 1")
	for _, p := range judgedPlaces(rep, cfg.Cases[0].Name) {
		n, _, _ := p.Block()
		assert.Positive(t, n, "%s was judged without its input", p)
	}
	assert.Equal(t, conformance.Unsupported, resultOf(t, rep, "LocalError", cfg.Cases[0].Name).Status, "row 0 is not there to make a layer dump")

	rep = without(0) // not seen, and nothing says that it was
	assert.Equal(t, conformance.Partial, rep.Conclusion)
	assert.Empty(t, rep.Failures())
}

// TestPlacesWithoutRowsJudgeNothing: keys alone can't be held to anything, and
// don't count as judged.
func TestPlacesWithoutRowsJudgeNothing(t *testing.T) {
	onlyOnEmbedded(t)
	cfg := probing(t, seeded, "arithmetic")
	cfg.Only = nil
	cfg.Probes = nil
	for n := range cfg.Reference.Weights().Arch().Layers {
		cfg.Probes = append(cfg.Probes, engine.Block(n, engine.PartKRope))
	}
	clean := inScheme(scaled)(cfg.Reference.Weights())
	rep := judge(t, cfg, tampered(t, clean, func(req engine.Request, resp *engine.Response, p engine.ProbeValues) {
		resp.Layers, resp.Logits, resp.OutputIDs = nil, nil, nil // its prompt ids stay: they are judged, and no value is
		for name, m := range p {
			p[name] = cut(m, len(req.Case.TokenIDs))
		}
	}))
	assert.Equal(t, conformance.NothingJudged, rep.Conclusion, "%v", rep.Failures())
	assert.False(t, rep.Cases[cfg.Cases[0].Name].Judged)
	r := resultOf(t, rep, "ProbeCandidate", cfg.Cases[0].Name)
	assert.Equal(t, conformance.Skip, r.Status)
	assert.Contains(t, r.Reason, "no layer has both its input rows and a place to judge")
	for _, c := range rep.Checks {
		if c.ID == "NoVacuousPass" {
			assert.Equal(t, conformance.Fail, c.Status, "keys alone were taken for something judged")
		}
	}
	// Beside layers and logits they take nothing away.
	rep = judge(t, cfg, clean)
	assert.Equal(t, conformance.Skip, resultOf(t, rep, "ProbeCandidate", cfg.Cases[0].Name).Status)
	assert.Equal(t, conformance.Conforms, rep.Conclusion, "%v", rep.Failures())
}

// TestProbesBehindThePromptAreJudged: the places of decode steps are held to the
// tokens that were fed back, and a fault of decode alone is dated there.
func TestProbesBehindThePromptAreJudged(t *testing.T) {
	onlyOnEmbedded(t)
	cfg := probing(t, seeded, "arithmetic")
	cfg.Only = append(cfg.Only, "LogitRowContract")
	cfg.DecodeSteps = 4
	prompt := len(cfg.Cases[0].TokenIDs)
	const layer = 9
	for name, scheme := range schemes {
		open := inScheme(scheme)
		rep := judge(t, cfg, open(cfg.Reference.Weights()))
		assert.Empty(t, rep.Failures(), name)
		assert.Equal(t, conformance.Pass, resultOf(t, rep, "ProbeCandidate", cfg.Cases[0].Name).Status, name)
		for _, position := range []int{prompt, prompt + 1} {
			rep := judge(t, cfg, open(withFault{cfg.Reference.Weights(), engine.Fault{StaleCache: true, StaleLayer: layer, StalePosition: position}}))
			assertLocus(t, rep, layer+1, conformance.KindLayer, inLayer(layer, engine.PartResidMid), name)
			if assert.NotNil(t, rep.FirstBadPosition, name) {
				assert.Equal(t, position, *rep.FirstBadPosition, name)
			}
			assert.Equal(t, conformance.Pass, resultOf(t, rep, "ResidualCandidate", cfg.Cases[0].Name).Status, "the prompt itself is right")
		}
		// Another token than the one that is said to have been fed back.
		rep = judge(t, cfg, tampered(t, open(cfg.Reference.Weights()), func(_ engine.Request, resp *engine.Response, _ engine.ProbeValues) {
			resp.OutputIDs = append([]int(nil), resp.OutputIDs...)
			resp.OutputIDs[1]++
		}))
		assertLocus(t, rep, 0, conformance.KindInput, []engine.Probe{engine.ProbeEmbed}, name)
		if assert.NotNil(t, rep.FirstBadPosition, name) {
			assert.Equal(t, prompt+1, *rep.FirstBadPosition, name)
		}
	}
}

// shortened has a candidate give probes of five positions and no layer dump.
func shortened(t *testing.T, c engine.Candidate) engine.Candidate {
	t.Helper()
	return tampered(t, c, func(_ engine.Request, resp *engine.Response, p engine.ProbeValues) {
		for name, m := range p {
			p[name] = cut(m, 5)
		}
		resp.Layers = nil
	})
}

// TestProbesShorterThanThePromptAreMalformed: a run that ended before its prompt did
// says nothing of the prompt.
func TestProbesShorterThanThePromptAreMalformed(t *testing.T) {
	onlyOnEmbedded(t)
	cfg := probing(t, seeded, "arithmetic")
	rep := judge(t, cfg, shortened(t, inScheme(scaled)(cfg.Reference.Weights())))
	assert.Equal(t, conformance.Fails, rep.Conclusion)
	assert.Contains(t, rep.Cases[cfg.Cases[0].Name].Reason, "got 5 positions, want 9 (the prompt's token_ids) to 9 (with its output_ids)")
}
