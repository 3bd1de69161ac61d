package conformance_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
)

// TestFinalNormProbe: a final_norm that is not that of the candidate's own last
// row is named as the head's fault, at its first position, and no layer is.
func TestFinalNormProbe(t *testing.T) {
	onlyOnEmbedded(t)
	cfg := probing(t, seeded, "arithmetic", "translation")
	cfg.Probes = append(cfg.Probes, engine.ProbeFinalNorm)
	clean := inScheme(blocks)(cfg.Reference.Weights())
	rep := judge(t, cfg, clean)
	assert.NotEqual(t, conformance.Fails, rep.Conclusion)
	assert.Equal(t, conformance.Pass, resultOf(t, rep, "ProbeCandidate", cfg.Cases[0].Name).Status)

	rep = judge(t, cfg, tampered(t, clean, func(_ engine.Request, _ *engine.Response, p engine.ProbeValues) {
		p[engine.ProbeFinalNorm] = changed(p[engine.ProbeFinalNorm], 4, func(row []float32) { row[7] *= 1.001 })
	}))
	assert.Equal(t, conformance.Fails, rep.Conclusion)
	assert.Nil(t, rep.FirstBadRow)
	if assert.NotNil(t, rep.Kind) && assert.NotNil(t, rep.Source) {
		assert.Equal(t, conformance.KindHead, *rep.Kind)
		assert.Equal(t, engine.ProbeFinalNorm, *rep.Source)
	}
	f := resultOf(t, rep, "ProbeCandidate", cfg.Cases[0].Name).Findings
	if assert.Len(t, f, 1) && assert.NotNil(t, f[0].At.Position) {
		assert.Equal(t, 4, *f[0].At.Position)
	}
}
