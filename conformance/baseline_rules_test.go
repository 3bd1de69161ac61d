package conformance_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
)

// withRatios is a report with one figure, the accumulated ratio of row 0, whose value in
// case i is e to the power of logs[i], at a relative error of 0.01.
func withRatios(logs ...float64) *conformance.Report {
	r := &conformance.Report{SchemaVersion: conformance.SchemaVersion, Conclusion: conformance.Conforms,
		Candidate: engine.Info{Name: "mine", Layers: engine.LayersInt8Scaled, Weights: "int8", Activations: "int8"},
		Cases:     map[string]conformance.CaseVerdict{}, About: []conformance.CheckInfo{{ID: "ResidualCandidate"}, {ID: "LocalError"}}}
	for i, x := range logs {
		name := fmt.Sprintf("case%d", i)
		ratio := conformance.Number(math.Exp(x))
		r.Cases[name] = conformance.CaseVerdict{Judged: true, Inputs: name, Depth: []conformance.DepthRow{
			{Row: 0, Probe: engine.ProbeEmbed, Accumulated: 0.01 * ratio, AccumulatedRatio: ratio, NormRatio: 1}}}
		r.Checks = append(r.Checks,
			conformance.Result{ID: "ResidualCandidate", Case: name, Side: conformance.SideCandidate, Level: conformance.Core, Status: conformance.Pass},
			conformance.Result{ID: "LocalError", Case: name, Side: conformance.SideCandidate, Level: conformance.Core, Status: conformance.Pass})
	}
	return r
}

// noisy says that two runs differed by rms in the one figure.
func noisy(r *conformance.Report, rms float64, cases int) *conformance.Report {
	r.Repeat = &conformance.RepeatInfo{Cases: cases, Figures: 1, Largest: conformance.Number(math.Exp(rms)), Noise: []conformance.FigureNoise{
		{Check: "ResidualCandidate", Metric: "accumulated error, over the yardstick's", Probe: "embed", RMS: conformance.Number(rms), Cases: cases}}}
	return r
}

// TestFigureAgainstItsNoise: the limits follow from tables of Student's t at 1 % (4.541
// with three degrees of freedom, 6.965 with two) and from the reference's own movement,
// 9.4e-7 of an error of 0.01 on either side.
func TestFigureAgainstItsNoise(t *testing.T) {
	spread := func(mean, sd float64) []float64 { // four values with this mean and standard deviation
		d := sd * math.Sqrt(3.0/4)
		return []float64{mean - d, mean + d, mean - d, mean + d}
	}
	zero := []float64{0, 0, 0, 0}
	for _, tc := range []struct {
		what          string
		before, after *conformance.Report
		compared      int
		worse, better bool
		limit         float64 // of a worse one
	}{
		{"the same", withRatios(zero...), withRatios(zero...), 1, false, false, 0},
		{"all a little worse", withRatios(zero...), withRatios(spread(0.10, 0.04)...), 1, true, false, math.Exp(4.541 * 0.04 / 2)},
		{"all a little better", withRatios(zero...), withRatios(spread(-0.10, 0.04)...), 1, false, true, 0},
		{"within the spread", withRatios(zero...), withRatios(spread(0.10, 0.05)...), 1, false, false, 0},
		{"better within the spread", withRatios(zero...), withRatios(spread(-0.10, 0.05)...), 1, false, false, 0},
		{"three cases", withRatios(0, 0, 0), withRatios(0.1, 0.1, 0.1), 1, true, false, 1 + 2*9.4e-5},
		{"two cases", withRatios(0, 0), withRatios(0.1, 0.1), 0, false, false, 0},
		{"moved as another CPU may", withRatios(zero...), withRatios(1.8e-4, 1.8e-4, 1.8e-4, 1.8e-4), 1, false, false, 0},
		{"moved a little more", withRatios(zero...), withRatios(1.9e-4, 1.9e-4, 1.9e-4, 1.9e-4), 1, true, false, 1 + 2*9.4e-5},
		{"two cases, noise known", noisy(withRatios(0, 0), 0.02, 2), withRatios(0.1, 0.1), 1, true, false, math.Exp(6.965 * 0.02 / math.Sqrt2)},
		{"two cases, within the known noise", noisy(withRatios(0, 0), 0.02, 2), withRatios(0.09, 0.09), 1, false, false, 0},
		{"two cases, noise of the newer", withRatios(0, 0), noisy(withRatios(0.09, 0.09), 0.02, 2), 1, false, false, 0},
		{"noise is known to be none", noisy(withRatios(0, 0), 0, 2), withRatios(0.01, 0.01), 1, true, false, 1 + 2*9.4e-5},
		{"known noise widens", noisy(withRatios(zero...), 0.1, 4), withRatios(spread(0.10, 0.04)...), 1, false, false, 0},
	} {
		t.Run(tc.what, func(t *testing.T) {
			require.NoError(t, tc.after.HoldToBaseline(tc.before, "b.json"))
			b := tc.after.Baseline
			assert.Equal(t, tc.compared, b.Compared)
			assert.Equal(t, tc.worse, len(b.Regressions) == 1, b.Regressions)
			assert.Equal(t, tc.better, len(b.Improvements) == 1, b.Improvements)
			failed := 0
			for _, c := range tc.after.Checks {
				if c.ID == "Baseline" && c.Status == conformance.Fail {
					failed++
				}
			}
			assert.Equal(t, tc.worse, failed == 1)
			if tc.worse && len(b.Regressions) == 1 {
				assert.InEpsilon(t, tc.limit, float64(b.Regressions[0].Limit.Value), 2e-4)
				assert.Equal(t, "embed", b.Regressions[0].Probe)
			}
			if tc.compared == 0 {
				assert.Equal(t, "fewer than 3 cases, and no second run of the build to measure its noise by", b.NoiseBasis)
				assert.Contains(t, strings.Join(tc.after.Power, "\n"), "only verdicts and coverage were compared")
			}
		})
	}
}

// TestVerdictsAgainstTheBaseline: what is judged no more, gone, or newly waived is worse.
func TestVerdictsAgainstTheBaseline(t *testing.T) {
	reported := func(change func(r *conformance.Report)) *conformance.Report {
		r := withRatios(0, 0, 0)
		change(r)
		return r
	}
	set := func(r *conformance.Report, i int, s conformance.Status) { r.Checks[i].Status = s }
	waive := func(r *conformance.Report, i int) {
		r.Checks[i].Status, r.Checks[i].Waived = conformance.Fail, &conformance.Waiver{}
	}
	as := func(r *conformance.Report) {}
	for _, tc := range []struct {
		what          string
		before, after func(r *conformance.Report)
		worse, better string // CHECK CASE METRIC
	}{
		{"the same", as, as, "", ""},
		{"skipped now", as, func(r *conformance.Report) { set(r, 1, conformance.Skip) }, "LocalError case0 judged", ""},
		{"unsupported now", as, func(r *conformance.Report) { set(r, 3, conformance.Unsupported) }, "LocalError case1 judged", ""},
		{"not even asked", as, func(r *conformance.Report) { r.Checks = r.Checks[:5] }, "LocalError case2 judged", ""},
		{"fails now", as, func(r *conformance.Report) { set(r, 0, conformance.Fail) }, "ResidualCandidate case0 verdict", ""},
		{"no answer now", as, func(r *conformance.Report) { set(r, 0, conformance.Error) }, "ResidualCandidate case0 verdict", ""},
		{"waived now", as, func(r *conformance.Report) { waive(r, 0) }, "ResidualCandidate case0 waived", ""},
		{"waived in both", func(r *conformance.Report) { waive(r, 0) }, func(r *conformance.Report) { waive(r, 0) }, "", ""},
		{"no waiver needed any more", func(r *conformance.Report) { waive(r, 0) }, as, "", "ResidualCandidate case0 verdict"},
		{"judged now", func(r *conformance.Report) { set(r, 0, conformance.Skip) }, as, "", "ResidualCandidate case0 verdict"},
		{"waived where nothing was judged", func(r *conformance.Report) { set(r, 0, conformance.Skip) }, func(r *conformance.Report) { waive(r, 0) }, "ResidualCandidate case0 waived", ""},
		{"a case gone", as, func(r *conformance.Report) {
			delete(r.Cases, "case1")
			r.Checks = append(r.Checks[:2], r.Checks[4:]...)
		}, "* case1 case", ""},
		{"a case more", func(r *conformance.Report) {
			delete(r.Cases, "case1")
			r.Checks = append(r.Checks[:2], r.Checks[4:]...)
		}, as, "", ""},
		{"left out by --only", as, func(r *conformance.Report) {
			r.About = r.About[:1]
			r.Checks = []conformance.Result{r.Checks[0], r.Checks[2], r.Checks[4]}
		}, "LocalError case0 judged, LocalError case1 judged, LocalError case2 judged", ""},
	} {
		t.Run(tc.what, func(t *testing.T) {
			r := reported(tc.after)
			require.NoError(t, r.HoldToBaseline(reported(tc.before), "b.json"))
			said := func(cs []conformance.Change) string {
				var out []string
				for _, c := range cs {
					out = append(out, c.Check+" "+c.Case+" "+c.Metric)
				}
				return strings.Join(out, ", ")
			}
			assert.Equal(t, tc.worse, said(r.Baseline.Regressions))
			assert.Equal(t, tc.better, said(r.Baseline.Improvements))
			failing, want := []string{}, []string{}
			for _, c := range r.Checks {
				if c.ID == "Baseline" && c.Status == conformance.Fail {
					failing = append(failing, c.Case)
				}
			}
			for _, c := range r.Baseline.Regressions {
				want = append(want, c.Case)
			}
			assert.ElementsMatch(t, want, failing)
		})
	}
}

// TestBaselinesThatAreRefused: by Evaluate, before anything runs, or as soon as both
// sides are known.
func TestBaselinesThatAreRefused(t *testing.T) {
	cfg := faulty(t, "", 0)
	cfg.Cases = cfg.Cases[:1]
	cfg.BaselineName = "old.json"
	good := evaluated(t, cfg)
	for _, tc := range []struct {
		change func(r *conformance.Report)
		want   string
	}{
		{func(r *conformance.Report) { r.SchemaVersion = 1 }, "conformance: baseline old.json: schema_version: got 1, want 2"},
		{func(r *conformance.Report) { r.Conclusion = conformance.Fails }, `conclusion: got "fails", want "conforms"`},
		{func(r *conformance.Report) { r.Conclusion = conformance.NothingJudged }, `conclusion: got "nothing judged"`},
		{func(r *conformance.Report) { r.Conclusion = conformance.Partial }, `conclusion: got "partial", want "conforms" ("partial"`},
		{func(r *conformance.Report) { r.ReferenceFailed = true }, "reference_failed: got true"},
		{func(r *conformance.Report) { r.Shard = &conformance.ShardInfo{Index: 1, Total: 4} }, "shard: got 1 of 4, want a report of all cases"},
		{func(r *conformance.Report) { r.Reference.Model = "other" }, `reference.model: got "other", want "`},
		{func(r *conformance.Report) { r.Candidate.Weights = "int4" }, `candidate.weights: got "int4", want "int8"`},
		{func(r *conformance.Report) { r.Candidate.KVCache = "f16" }, `candidate.kv_cache: got "f16"`},
		{func(r *conformance.Report) { r.Reference.DType = "float64" }, `reference.dtype: got "float64", want "float32"`},
		{func(r *conformance.Report) {
			v := r.Cases[cfg.Cases[0].Name]
			v.Inputs = "0 0"
			r.Cases = map[string]conformance.CaseVerdict{cfg.Cases[0].Name: v}
		}, "inputs: got \"0 0\", want "},
	} {
		old := *good
		tc.change(&old)
		with := cfg
		with.Baseline = &old
		_, err := conformance.Evaluate(t.Context(), with)
		if assert.Error(t, err, tc.want) {
			assert.Contains(t, err.Error(), "baseline old.json: ")
			assert.Contains(t, err.Error(), tc.want)
		}
	}
	partial := *good
	partial.Conclusion = conformance.Partial
	cfg.Baseline, cfg.AllowPartial = &partial, true
	assert.Equal(t, conformance.Conforms, evaluated(t, cfg).Conclusion)
}

// withLayers is a report of five cases and a figure for each of ten layers, whose
// logarithm in case i is that of the layer, give or take a thousandth.
func withLayers(layers [10]float64) *conformance.Report {
	r := withRatios(0, 0, 0, 0, 0)
	for name, v := range r.Cases {
		v.Depth = nil
		shift := 1e-3 * float64(name[len(name)-1]-'2')
		for n, x := range layers {
			ratio := conformance.Number(math.Exp(x + shift))
			v.Depth = append(v.Depth, conformance.DepthRow{Row: n + 1, Probe: engine.ResidPost(n), Accumulated: 0.01 * ratio, AccumulatedRatio: ratio})
		}
		r.Cases[name] = v
	}
	return r
}

// TestNoiseThatAllCasesShare: changes that are the same in every case, a little up in one
// layer and down in the next, are no regression; one that stands out of the layers is, and
// so is one of all layers.
func TestNoiseThatAllCasesShare(t *testing.T) {
	wobble := [10]float64{0.01, -0.01, 0.02, -0.02, 0.015, -0.015, 0.005, -0.005, 0.01, -0.01}
	with := func(change func(*[10]float64)) [10]float64 {
		out := wobble
		change(&out)
		return out
	}
	for _, tc := range []struct {
		what  string
		after [10]float64
		worse []string
	}{
		{"wobbling", wobble, nil},
		{"a little more in one", with(func(l *[10]float64) { l[3] = 0.04 }), nil},
		{"much more in one", with(func(l *[10]float64) { l[3] = 0.3 }), []string{"ResidualCandidate blocks.3.resid_post"}},
		{"much better in one", with(func(l *[10]float64) { l[3] = -0.3 }), nil},
	} {
		r := withLayers(tc.after)
		require.NoError(t, r.HoldToBaseline(withLayers([10]float64{}), "b.json"))
		assert.Equal(t, tc.worse, regressions(r.Baseline.Regressions).places(), tc.what)
		assert.Equal(t, tc.what == "much better in one", len(r.Baseline.Improvements) == 1, tc.what)
	}
	all := withLayers(with(func(l *[10]float64) {
		for i := range l {
			l[i] += 0.3
		}
	}))
	require.NoError(t, all.HoldToBaseline(withLayers([10]float64{}), "b.json"))
	assert.Len(t, all.Baseline.Regressions, 10)
}

// TestAFloatCandidatesYardstickMayDouble: its yardstick is the float32 run's own error,
// which another CPU draws anew.
func TestAFloatCandidatesYardstickMayDouble(t *testing.T) {
	float := func(log float64) *conformance.Report {
		r := withRatios(log, log, log, log)
		r.Candidate = engine.Info{Name: "f", Layers: engine.LayersFloat32}
		for name, v := range r.Cases {
			v.Depth[0].Accumulated = 1e-7 * v.Depth[0].AccumulatedRatio
			r.Cases[name] = v
		}
		return r
	}
	for log, worse := range map[float64]int{math.Log(1.98): 0, math.Log(2.02): 1} {
		r := float(log)
		require.NoError(t, r.HoldToBaseline(float(0), "b.json"))
		assert.Len(t, r.Baseline.Regressions, worse)
	}
}
