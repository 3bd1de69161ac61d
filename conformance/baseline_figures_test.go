package conformance_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
)

// withSteps adds the same rows of logits to each case.
func withSteps(r *conformance.Report, steps ...conformance.LogitStep) *conformance.Report {
	for name, v := range r.Cases {
		v.Logits = steps
		r.Cases[name] = v
		r.Checks = append(r.Checks, conformance.Result{ID: "LogitCandidate", Case: name, Side: conformance.SideCandidate, Level: conformance.Core, Status: conformance.Pass})
	}
	r.About = append(r.About, conformance.CheckInfo{ID: "LogitCandidate"})
	return r
}

// step is a row of logits with a relative error of 0.01 times e to the power of errLog,
// and a KL of 1e-4 times e to the power of klLog; the yardstick has 0.01 and 1e-4.
func step(pick int, errLog, klLog float64) conformance.LogitStep {
	ratio := conformance.Number(math.Exp(errLog))
	return conformance.LogitStep{Pick: pick, Error: 0.01 * ratio, ErrorRatio: ratio, KL: conformance.Number(1e-4 * math.Exp(klLog)), YardKL: 1e-4, TieBand: 1}
}

// TestLogitsAgainstTheBaseline: rows behind another pick have another input and are
// compared with nothing. A KL may move by twice what an error may by another CPU alone
// (1.88e-4 in the logarithm, see TestFigureAgainstItsNoise), since it goes with its square.
func TestLogitsAgainstTheBaseline(t *testing.T) {
	for _, tc := range []struct {
		what          string
		before, after []conformance.LogitStep
		worse         []string
	}{
		{"the same", []conformance.LogitStep{step(5, 0, 0), step(7, 0, 0)}, []conformance.LogitStep{step(5, 0, 0), step(7, 0, 0)}, nil},
		{"worse behind the same pick", []conformance.LogitStep{step(5, 0, 0), step(7, 0, 0)}, []conformance.LogitStep{step(5, 0, 0), step(7, 1, 0)},
			[]string{"error of the logits, over the yardstick's"}},
		{"worse behind another pick", []conformance.LogitStep{step(5, 0, 0), step(7, 0, 0)}, []conformance.LogitStep{step(6, 0, 0), step(7, 1, 1)}, nil},
		{"worse in the row of another pick", []conformance.LogitStep{step(5, 0, 0)}, []conformance.LogitStep{step(6, 1, 0)},
			[]string{"error of the logits, over the yardstick's"}},
		{"a KL that another CPU explains", []conformance.LogitStep{step(5, 0, 0)}, []conformance.LogitStep{step(5, 0, 3.7e-4)}, nil},
		{"a KL that it doesn't", []conformance.LogitStep{step(5, 0, 0)}, []conformance.LogitStep{step(5, 0, 3.85e-4)}, []string{"KL of the logits, over the yardstick's"}},
		{"an error that it doesn't", []conformance.LogitStep{step(5, 0, 0)}, []conformance.LogitStep{step(5, 3.7e-4, 0)}, []string{"error of the logits, over the yardstick's"}},
	} {
		r := withSteps(withRatios(0, 0, 0), tc.after...)
		require.NoError(t, r.HoldToBaseline(withSteps(withRatios(0, 0, 0), tc.before...), "b.json"))
		var got []string
		for _, c := range r.Baseline.Regressions {
			got = append(got, c.Metric)
		}
		assert.Equal(t, tc.worse, got, tc.what)
		assert.Equal(t, 4, r.Baseline.Compared, tc.what)
	}
}

// TestNoiseOfUnequalFigures: a figure is bounded by its own noise where that is larger than
// what all places of its metric have together, and by the latter where its own is smaller.
// Student's t at 0.5 % with eight degrees of freedom is 3.355. Noise of 0.1 in one of two
// figures is 0.0707 over both, so that over four cases the limits are 0.168 and 0.119.
func TestNoiseOfUnequalFigures(t *testing.T) {
	with := func(first, second float64) *conformance.Report {
		r := withRatios(first, first, first, first)
		for name, v := range r.Cases {
			ratio := conformance.Number(math.Exp(second))
			v.Depth = append(v.Depth, conformance.DepthRow{Row: 1, Probe: engine.ResidPost(0), Accumulated: 0.01 * ratio, AccumulatedRatio: ratio})
			r.Cases[name] = v
		}
		return r
	}
	before := noisy(with(0, 0), 0.1, 4)
	before.Repeat.Noise = append(before.Repeat.Noise, conformance.FigureNoise{Check: "ResidualCandidate",
		Metric: before.Repeat.Noise[0].Metric, Probe: "blocks.0.resid_post", Cases: 4})
	for _, tc := range []struct {
		first, second float64
		worse         []string
	}{
		{0.15, 0, nil},
		{0.18, 0, []string{"ResidualCandidate embed"}},
		{0, 0.11, nil},
		{0, 0.15, []string{"ResidualCandidate blocks.0.resid_post"}},
	} {
		r := with(tc.first, tc.second)
		require.NoError(t, r.HoldToBaseline(before, "b.json"))
		assert.Equal(t, tc.worse, regressions(r.Baseline.Regressions).places(), "%v", tc)
	}
}

// TestFiguresThatAreLost: what the baseline measured and this run doesn't is worse, where
// the check judges the case in both; nothing is hidden by a NaN or an infinity.
func TestFiguresThatAreLost(t *testing.T) {
	probes := func(names ...engine.Probe) *conformance.Report {
		r := withRatios(0, 0, 0)
		for name, v := range r.Cases {
			for _, p := range names {
				v.Probes = append(v.Probes, conformance.ProbeRow{Probe: p, Error: 0.01, Ratio: 1})
			}
			r.Cases[name] = v
			r.Checks = append(r.Checks, conformance.Result{ID: "ProbeCandidate", Case: name, Side: conformance.SideCandidate, Status: conformance.Pass})
		}
		r.About = append(r.About, conformance.CheckInfo{ID: "ProbeCandidate"})
		return r
	}
	three := []engine.Probe{engine.ResidPost(0), engine.Block(0, engine.PartMLPOut), engine.ResidPost(1)}
	inCase := func(r *conformance.Report, change func(*conformance.CaseVerdict)) *conformance.Report {
		v := r.Cases["case1"]
		change(&v)
		r.Cases["case1"] = v
		return r
	}
	nan := func(v *conformance.CaseVerdict) { v.Depth[0].AccumulatedRatio = conformance.Number(math.NaN()) }
	inf := func(v *conformance.CaseVerdict) {
		v.Depth[0].Accumulated, v.Depth[0].AccumulatedRatio = conformance.Number(math.Inf(1)), conformance.Number(math.Inf(1))
	}
	skipped := inCase(probes(three...), func(v *conformance.CaseVerdict) { v.Probes = nil })
	for i, c := range skipped.Checks {
		if c.ID == "ProbeCandidate" && c.Case == "case1" {
			skipped.Checks[i].Status = conformance.Skip
		}
	}
	for _, tc := range []struct {
		what          string
		before, after *conformance.Report
		worse         string // CHECK CASE PROBE METRIC BEFORE AFTER of the first
		n             int
	}{
		{"the same", probes(three...), probes(three...), "", 0},
		{"probes gone", probes(three...), probes(three[:1]...), "ProbeCandidate case0 blocks.0.mlp_out figures 3 1", 3},
		{"in one case", probes(three...), inCase(probes(three...), func(v *conformance.CaseVerdict) { v.Probes = v.Probes[1:] }),
			"ProbeCandidate case1 blocks.0.resid_post figures 3 2", 1},
		{"probes more", probes(three[:1]...), probes(three...), "", 0},
		{"a NaN now", probes(), inCase(probes(), nan), "ResidualCandidate case1 embed figures 1 0", 1},
		{"a NaN then", inCase(probes(), nan), probes(), "", 0},
		{"infinite now", probes(), inCase(probes(), inf), "ResidualCandidate * embed accumulated error, over the yardstick's 1 +Inf", 1},
		{"infinite in both", inCase(probes(), inf), inCase(probes(), inf), "ResidualCandidate * embed accumulated error, over the yardstick's +Inf +Inf", 1},
		{"no longer judged", probes(three...), skipped, "ProbeCandidate case1  judged 1 0", 1},
	} {
		require.NoError(t, tc.after.HoldToBaseline(tc.before, "b.json"))
		got := tc.after.Baseline.Regressions
		if assert.Len(t, got, tc.n, tc.what) && tc.n > 0 {
			assert.Equal(t, tc.worse, said(got[0]), tc.what)
		}
	}
}

func said(c conformance.Change) string {
	return fmt.Sprintf("%s %s %s %s %.3g %.3g", c.Check, c.Case, c.Probe, c.Metric, float64(c.Before), float64(c.After))
}
