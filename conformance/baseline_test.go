package conformance_test

import (
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/quant"
)

// otherWeights is a checkpoint with changed values.
type otherWeights struct {
	engine.Weights
	change func(name string, data []float32)
}

func (o otherWeights) Tensor(name string) (engine.Tensor, error) {
	t, err := o.Weights.Tensor(name)
	if err != nil {
		return t, err
	}
	data := append([]float32{}, t.Data...)
	o.change(name, data)
	return engine.Tensor{Shape: t.Shape, Data: data}, nil
}

// rounded is a checkpoint whose weights are off by a hundred-thousandth each, far below
// what int8 keeps of them: an engine on it rounds otherwise here and there, and no worse.
func rounded(w engine.Weights, seed uint64) engine.Weights {
	return otherWeights{w, func(name string, data []float32) {
		h := fnv.New64a()
		fmt.Fprint(h, name)
		rng := rand.New(rand.NewPCG(seed, h.Sum64()))
		for i := range data {
			data[i] *= float32(1 + 1e-5*rng.NormFloat64())
		}
	}}
}

// gained is a checkpoint with a gain on a layer's down projection.
func gained(w engine.Weights, layer int, gain float32) engine.Weights {
	return otherWeights{w, func(name string, data []float32) {
		if name == fmt.Sprintf("model.layers.%d.mlp.down_proj.weight", layer) {
			for i := range data {
				data[i] *= gain
			}
		}
	}}
}

// int8On is the default candidate on other weights.
func int8On(w engine.Weights, more ...quant.Option) engine.Candidate {
	return quant.FromWeights(w, append([]quant.Option{quant.KVCacheInt8()}, more...)...).Candidate(engine.Scheme{RowsInt8: true})
}

// asBuilt is a run of the seeded cases that a build is held to another one's by.
func asBuilt(t *testing.T) conformance.Config {
	t.Helper()
	sweep(t)
	cfg, err := seeded()
	require.NoError(t, err)
	cfg.ReferenceCases = 1
	cfg.Registry = &conformance.Registry{} // of the checks that have figures: Only would make each run partial
	for _, id := range append(conformance.CoreChecks(), "ProbeCandidate") {
		require.NoError(t, cfg.Registry.Register(conformance.Builtin().Lookup(id)))
	}
	cfg.BaselineName = "old.json"
	return conformance.WithMemory(cfg)
}

func (r regressions) places() []string {
	var out []string
	for _, c := range r {
		out = append(out, c.Check+" "+c.Probe)
	}
	return out
}

type regressions []conformance.Change

// TestBaselineFindsWhatTheBoundsLetPass: three per cent on one layer's down projection is
// within every bound, and worse than the build before in all prompts; other roundings of
// the same weights are no worse.
func TestBaselineFindsWhatTheBoundsLetPass(t *testing.T) {
	cfg := asBuilt(t)
	w := cfg.Reference.Weights()
	cfg.Candidate = int8On(w)
	old := evaluated(t, cfg)
	require.Equal(t, conformance.Conforms, old.Conclusion)
	cfg.Baseline = old
	for what, c := range map[string]engine.Candidate{
		"the same build": int8On(w), "ties away from zero": int8On(w, quant.RoundHalfAway()),
		"other roundings": int8On(rounded(w, 1)), "others again": int8On(rounded(w, 2)),
	} {
		cfg.Candidate = c
		rep := evaluated(t, cfg)
		assert.Equal(t, conformance.Conforms, rep.Conclusion, "%s: %v", what, rep.Baseline.Regressions)
		assert.Empty(t, rep.Baseline.Regressions, what)
		assert.Greater(t, rep.Baseline.Compared, 100)
	}

	cfg.Candidate = int8On(gained(w, 7, 1.03))
	rep := evaluated(t, cfg)
	assert.Equal(t, conformance.Fails, rep.Conclusion)
	assert.Equal(t, []string{"ProbeCandidate blocks.7.resid_post"}, regressions(rep.Baseline.Regressions).places())
	require.Len(t, rep.Failures(), 1, "the bounds let it pass")
	failed := rep.Failures()[0]
	assert.Equal(t, "Baseline", failed.ID)
	assert.Equal(t, "*", failed.Case)
	require.Len(t, failed.Findings, 1)
	assert.Equal(t, engine.Block(7, engine.PartResidPost), failed.Findings[0].Probe)
	cfg.Baseline = nil
	assert.Equal(t, conformance.Conforms, evaluated(t, cfg).Conclusion)

	// The other way round it is an improvement, and no failure.
	worse := evaluated(t, cfg)
	cfg.Candidate, cfg.Baseline = int8On(w), worse
	rep = evaluated(t, cfg)
	assert.Equal(t, conformance.Conforms, rep.Conclusion)
	assert.Contains(t, regressions(rep.Baseline.Improvements).places(), "ProbeCandidate blocks.7.resid_post")
}

// TestRepeatMeasuresNoise: the same build again gives the same figures; one whose runs
// differ has noise, which the report keeps and a later run's bounds take in.
func TestRepeatMeasuresNoise(t *testing.T) {
	cfg := asBuilt(t)
	cfg.Cases = cfg.Cases[:2] // too few to tell noise by their differences
	w := cfg.Reference.Weights()
	cfg.Candidate, cfg.Repeat = int8On(w), int8On(w)
	steady := evaluated(t, cfg)
	require.NotNil(t, steady.Repeat)
	assert.Equal(t, conformance.Number(1), steady.Repeat.Largest)
	assert.Equal(t, 2, steady.Repeat.Cases)
	assert.Contains(t, steady.Power, fmt.Sprintf("two runs of this build: %d figures of 2 cases, all the same in both", steady.Repeat.Figures))
	assert.Equal(t, conformance.Pass, ofCheck(steady, "Repeat")[0].Status)

	cfg.Repeat = int8On(rounded(w, 3))
	shaky := evaluated(t, cfg)
	assert.Greater(t, float64(shaky.Repeat.Largest), 1.01)
	assert.Equal(t, conformance.Conforms, shaky.Conclusion)

	// Another draw of the same noise is worse than a build that is known to have none,
	// and no worse than one that is known to have it.
	cfg.Repeat, cfg.Candidate = nil, int8On(rounded(w, 4))
	cfg.Baseline = steady
	assert.NotEmpty(t, evaluated(t, cfg).Baseline.Regressions)
	cfg.Baseline = shaky
	rep := evaluated(t, cfg)
	assert.Empty(t, rep.Baseline.Regressions)
	assert.Equal(t, steady.Repeat.Figures, rep.Baseline.Compared)

	// A second run that fails what the first passed.
	cfg.Baseline, cfg.Candidate, cfg.Repeat = nil, int8On(w), int8On(gained(w, 7, 3))
	rep = evaluated(t, cfg)
	assert.Equal(t, conformance.Fails, rep.Conclusion)
	for _, f := range rep.Failures() {
		assert.Equal(t, "Repeat", f.ID)
		assert.Contains(t, f.Findings[0].Detail, "pass in the first run, fail in the second")
	}
	require.Len(t, rep.Failures(), 1)
}

var buildsFlag = flag.Int("builds", 6, "how many builds TestCleanBuildsAreSeldomCalledWorse holds to each other, at least 2")

// TestCleanBuildsAreSeldomCalledWorse: builds that only round otherwise, each held to
// each other's report, with the cases that they share. -builds 24 makes 552 comparisons.
func TestCleanBuildsAreSeldomCalledWorse(t *testing.T) {
	cfg := asBuilt(t)
	cfg.Probes = nil
	w := cfg.Reference.Weights()
	var builds []*conformance.Report
	for seed := range uint64(*buildsFlag) {
		cfg.Candidate = int8On(rounded(w, 10+seed))
		builds = append(builds, evaluated(t, cfg))
	}
	comparisons, alarms := 0, 0
	for i, old := range builds {
		for j := range builds {
			if i == j {
				continue
			}
			newer := *builds[j]
			newer.Checks, newer.Power, newer.About = slices.Clone(newer.Checks), nil, nil
			require.NoError(t, newer.HoldToBaseline(old, "old.json"))
			require.Greater(t, newer.Baseline.Compared, 50)
			comparisons++
			if len(newer.Baseline.Regressions) > 0 {
				alarms++
				t.Logf("build %d after %d: %+v", j, i, newer.Baseline.Regressions)
			}
		}
	}
	require.Equal(t, *buildsFlag*(*buildsFlag-1), comparisons)
	assert.LessOrEqual(t, alarms, max(1, comparisons/50), "at a rate of 1 %% more than one of 30 is seen in 4 %% of all such tests, and the seeds are fixed")
}
