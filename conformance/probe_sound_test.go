package conformance_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/quant"
	"github.com/plumbline-go/plumbline/engine/reference"
)

// few are prompts of each checkpoint that have power: long enough for a
// regression, or with a token that comes again.
var few = map[string]struct {
	open  func() (conformance.Config, error)
	cases []string
}{
	"trained": {embedded, []string{"repeated_token", "ends_special", "small_norm"}},
	"seeded":  {seeded, []string{"first_equals_last", "two_halves", "vocabulary_edges"}},
}

// TestProbesOfSoundEnginesPass: emulations that are as honest as the yardstick, in
// every scheme, raise nothing at any place.
func TestProbesOfSoundEnginesPass(t *testing.T) {
	sweep(t)
	for checkpoint, f := range few {
		t.Run(checkpoint, func(t *testing.T) {
			cfg := probing(t, f.open, f.cases...)
			cache := quant.NewCache()
			for name, scheme := range map[string]engine.Scheme{"int8 rows": scaled, "int8": {}, "blocks": blocks} {
				highest := &peaks{}
				for i, v := range quant.Variants() {
					if scheme != scaled && i%2 == 0 {
						continue // half of them do: one of each kind of difference
					}
					options := append([]quant.Option{quant.WithCache(cache)}, v.Options...)
					candidate := quant.FromWeights(cfg.Reference.Weights(), options...).Candidate(scheme)
					rep := judge(t, cfg, candidate)
					assertSound(t, rep, len(cfg.Cases), name+", "+v.Name)
					highest.of(rep, v.Name)
				}
				highest.log(t, name)
			}
		})
	}
}

// TestProbesOfFloatEnginesPass: the reference's own token-by-token run in float32,
// and its float64 run rounded once, are held to float32.
func TestProbesOfFloatEnginesPass(t *testing.T) {
	sweep(t)
	for checkpoint, f := range few {
		t.Run(checkpoint, func(t *testing.T) {
			cfg := probing(t, f.open, f.cases...)
			single, err := reference.New(cfg.Reference.Weights())
			require.NoError(t, err)
			double, err := single.Float64()
			require.NoError(t, err)
			for name, ref := range map[string]engine.Reference{"float32": single, "float64": double} {
				rep := judge(t, cfg, floatProbes(t, ref))
				assertSound(t, rep, len(cfg.Cases), name)
				highest := &peaks{}
				highest.of(rep, name)
				highest.log(t, name)
			}
		})
	}
}

// TestProbesOfAFloatEngineShowAWrongEpsilon: 1e-5 for 1e-6, which int8 can't show.
func TestProbesOfAFloatEngineShowAWrongEpsilon(t *testing.T) {
	sweep(t)
	cfg := probing(t, seeded, few["seeded"].cases...)
	const layer = 11
	rep := judge(t, cfg, floatProbes(t, referenceMutant(t, cfg, "norm-eps", layer)))
	for _, c := range cfg.Cases {
		assert.Equal(t, conformance.Fail, resultOf(t, rep, "ProbeCandidate", c.Name).Status, c.Name)
	}
	require.NotEmpty(t, rep.Sources)
	assertLocus(t, rep, layer+1, conformance.KindLayer, rep.Sources, "norm-eps in a float engine")
	for _, s := range rep.Sources {
		n, _, _ := s.Block()
		assert.Equal(t, layer, n, "sources %v", rep.Sources)
	}
}

// floatProbes offers what a reference engine captures as a float engine's probes.
func floatProbes(t *testing.T, ref engine.Reference) engine.Candidate {
	t.Helper()
	e, ok := ref.(interface {
		CaptureProbes(ctx context.Context, ids, output []int, probes []engine.Probe) (map[engine.Probe]engine.Matrix, error)
	})
	require.True(t, ok, "%T captures no probes", ref)
	return engine.Func{Side: engine.Info{Name: "float engine"}, Answer: func(ctx context.Context, req engine.Request) (*engine.Response, error) {
		m, err := e.CaptureProbes(ctx, req.Case.TokenIDs, nil, req.Probes)
		return &engine.Response{Probes: engine.ProbeValues(m)}, err
	}}
}

// assertSound holds a report to no finding, and to a verdict on every case.
func assertSound(t *testing.T, rep *conformance.Report, cases int, what string) {
	t.Helper()
	assertProbesPass(t, rep, cases, what)
	for _, f := range rep.Failures() {
		t.Errorf("%s: %s on %s: %s %v", what, f.ID, f.Case, f.Reason, f.Findings)
	}
	assert.Nil(t, rep.FirstBadRow, what)
	assert.Equal(t, conformance.Partial, rep.Conclusion, what) // some checks alone
}

// assertProbesPass holds ProbeCandidate to a pass on every case.
func assertProbesPass(t *testing.T, rep *conformance.Report, cases int, what string) {
	t.Helper()
	passed := 0
	for _, c := range rep.Checks {
		if c.ID != "ProbeCandidate" {
			continue
		}
		if c.Status == conformance.Pass {
			passed++
		}
		assert.Equal(t, conformance.Pass, c.Status, "%s on %s: %s %v", what, c.Case, c.Reason, c.Findings)
	}
	assert.Equal(t, cases, passed, "%s: cases whose probes were judged", what)
}

// peaks are the largest ratios of a set of reports.
type peaks struct {
	pooled, single    float64
	pooledAt, single1 string
	gain              float64
}

func (p *peaks) of(rep *conformance.Report, engine string) {
	for name, c := range rep.Cases {
		for _, r := range c.Probes {
			if x := float64(r.Ratio); x > p.pooled {
				p.pooled, p.pooledAt = x, engine+", "+name+", "+string(r.Probe)
			}
			if x := float64(r.WorstRatio); x > p.single {
				p.single, p.single1 = x, engine+", "+name+", "+string(r.Probe)
			}
			if r.Gain != nil {
				p.gain = max(p.gain, float64(*r.Gain), -float64(*r.Gain))
			}
		}
	}
}

func (p *peaks) log(t *testing.T, what string) {
	t.Helper()
	t.Logf("%s: largest ratio over all positions %.2f (%s), at one position %.2f (%s); largest gain %.4f",
		what, p.pooled, p.pooledAt, p.single, p.single1, p.gain)
}
