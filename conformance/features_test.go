package conformance_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
)

// TestEveryCheckOfACandidateHasAFeature: a check without one could not be claimed.
func TestEveryCheckOfACandidateHasAFeature(t *testing.T) {
	used := map[conformance.Feature]bool{}
	for _, c := range conformance.Builtin().Checks() {
		ofCandidate := false
		for _, s := range c.Sides {
			ofCandidate = ofCandidate || s == conformance.SideCandidate
		}
		assert.Equal(t, ofCandidate, c.Feature != "", c.ID)
		used[c.Feature] = true
	}
	for _, f := range conformance.Features() {
		assert.True(t, used[f], "no check is about %s", f)
	}
}

// claiming is a candidate that declares features.
type claiming struct {
	engine.Candidate
	features []string
}

func (c claiming) Info(context.Context) (engine.Info, error) {
	info, err := c.Candidate.Info(context.Background())
	info.Features = c.features
	return info, err
}

func TestClaimedFeatures(t *testing.T) {
	cfg := faulty(t, "", 0)
	conclude := func(cfg conformance.Config, features ...conformance.Feature) *conformance.Report {
		t.Helper()
		cfg.Features = features
		return evaluated(t, cfg)
	}
	// What is claimed and shown.
	rep := conclude(cfg, conformance.FeatureLayers, conformance.FeatureLogits, conformance.FeatureTokens)
	assert.Equal(t, conformance.Conforms, rep.Conclusion)
	require.Len(t, ofCheck(rep, "Features"), 1)
	assert.Equal(t, conformance.Pass, ofCheck(rep, "Features")[0].Status)
	assert.Equal(t, []conformance.Feature{"layers", "logits", "tokens"}, rep.Features)
	assert.Equal(t, evaluated(t, cfg).Executed, rep.Executed, "a claim is no verdict on an engine")

	// Claimed, and never judged: no logits and no probes come.
	without := cfg
	without.Candidate = withoutLogits{cfg.Candidate}
	require.Equal(t, conformance.Partial, evaluated(t, without).Conclusion)
	rep = conclude(without, conformance.FeatureLayers, conformance.FeatureLogits, conformance.FeatureProbes)
	assert.Equal(t, conformance.Fails, rep.Conclusion)
	require.Len(t, rep.Failures(), 1)
	failed := rep.Failures()[0]
	assert.Equal(t, "Features", failed.ID)
	require.Len(t, failed.Findings, 2)
	assert.Equal(t, "verdicts on the feature logits", failed.Findings[0].Metric)
	assert.Equal(t, "claimed and not shown: no logit dump in this case", failed.Findings[0].Detail)
	assert.Equal(t, "verdicts on the feature probes", failed.Findings[1].Metric)

	// A Core check can't be disclaimed: partial, as without a list.
	assert.Equal(t, conformance.Partial, conclude(without, conformance.FeatureLayers).Conclusion)

	// Nothing in the run asks for a trace.
	rep = conclude(cfg, conformance.FeatureTrace)
	assert.Equal(t, conformance.Conforms, rep.Conclusion)
	assert.Equal(t, conformance.Skip, ofCheck(rep, "Features")[0].Status)
	assert.Contains(t, rep.Notes, "claimed, and nothing in this run asks for it: trace")
}

// TestUnclaimedExtendedCheckIsReportedOnly: a candidate whose probes alone are wrong.
func TestUnclaimedExtendedCheckIsReportedOnly(t *testing.T) {
	cfg := faulty(t, "", 0)
	cfg.Probes = conformance.StandardProbes(cfg.Reference.Weights().Arch())
	cfg.Cases = cfg.Cases[:1]
	cfg, err := cfg.Mutants(cfg, conformance.Control{Mutant: "probe-k-v-exchanged", Side: conformance.SideCandidate, Layer: 3})
	require.NoError(t, err)
	broken := evaluated(t, cfg)
	require.Equal(t, conformance.Fails, broken.Conclusion)
	for _, f := range broken.Failures() {
		require.Equal(t, "ProbeCandidate", f.ID, "the fault must be one of probes alone")
	}
	cfg.Features = []conformance.Feature{conformance.FeatureLayers, conformance.FeatureLogits, conformance.FeatureTokens}
	rep := evaluated(t, cfg)
	assert.Equal(t, conformance.Conforms, rep.Conclusion)
	assert.Empty(t, rep.Failures())
	assert.False(t, rep.SourceWaived)
	for _, r := range ofCheck(rep, "ProbeCandidate") {
		assert.Equal(t, conformance.Provisional, r.Level)
		assert.Contains(t, r.Reason, "the candidate doesn't claim the feature probes: reported only")
	}
	cfg.Features = append(cfg.Features, conformance.FeatureProbes)
	assert.Equal(t, conformance.Fails, evaluated(t, cfg).Conclusion)
}

func TestFeatureNames(t *testing.T) {
	cfg := faulty(t, "", 0)
	cfg.Cases = cfg.Cases[:1]
	const unknown = `features[1]: got "layer", want one of layers, logits, probes, tokens, decode, attention, routes, teacher, trace`
	bad := cfg
	bad.Features = []conformance.Feature{"logits", "layer"}
	_, err := conformance.Evaluate(t.Context(), bad)
	require.ErrorContains(t, err, unknown)
	bad.Features = []conformance.Feature{"logits", "logits"}
	_, err = conformance.Evaluate(t.Context(), bad)
	require.ErrorContains(t, err, `features[1]: got "logits" twice`)

	// What a candidate declares of itself is its own fault.
	bad = cfg
	bad.Candidate = claiming{cfg.Candidate, []string{"logits", "layer"}}
	rep := evaluated(t, bad)
	assert.Equal(t, conformance.Fails, rep.Conclusion)
	require.NotEmpty(t, rep.Failures())
	assert.Contains(t, rep.Failures()[0].Reason, unknown)
	good := cfg
	good.Candidate = claiming{cfg.Candidate, []string{"logits", "layers"}}
	assert.Equal(t, []conformance.Feature{"logits", "layers"}, evaluated(t, good).Features)
}

// TestOnlySaysWhatItLeftOut: as the reason that a Core check was judged nowhere, and in the
// list of what was left out. A check that did run has its own reason.
func TestOnlySaysWhatItLeftOut(t *testing.T) {
	cfg := faulty(t, "", 0)
	cfg.Candidate = withoutLogits{cfg.Candidate}
	cfg.Only = []string{"ResidualShape", "LogitCandidate"}
	rep := evaluated(t, cfg)
	reasons := map[string]string{}
	for _, n := range rep.NotJudged {
		reasons[n.ID] = n.WouldRun
	}
	assert.Equal(t, map[string]string{
		"PromptTokens": "was left out by Only (--only)", "ResidualCandidate": "was left out by Only (--only)",
		"LocalError": "was left out by Only (--only)", "LogitRowContract": "was left out by Only (--only)",
		"LogitCandidate": "needs a logit dump, NAME.logits.bin, in at least one case",
	}, reasons)
	assert.Len(t, rep.Skips, len(conformance.Builtin().Checks())-2)
	assert.Contains(t, rep.Skips, conformance.CheckSkip{Check: "LocalError", Reason: "left out by Only (--only)"})
	cfg.Only = nil
	assert.Empty(t, evaluated(t, cfg).Skips)
}

// TestSkips: a check that is left out is a skip with the reason; a Core check that is
// left out makes the verdict partial at best, on one case too: there it would have to fail.
func TestSkips(t *testing.T) {
	cfg := faulty(t, "", 0)
	name := cfg.Cases[0].Name
	cfg.Skip = []conformance.CheckSkip{{Check: "LocalError", Case: name, Reason: "no room"}}
	rep := evaluated(t, cfg)
	assert.Equal(t, conformance.Partial, rep.Conclusion)
	assert.Equal(t, "a Core check was left out of a case on request", rep.WhyPartial())
	assert.Equal(t, []conformance.NotJudged{{ID: "LocalError", Case: name, WouldRun: "left out of case " + name + " on request: no room"}}, rep.NotJudged)
	assert.Contains(t, rep.Notes, "left out on request: LocalError, case "+name+": no room")
	assert.Equal(t, cfg.Skip, rep.Skips)
	seen := 0
	for _, r := range ofCheck(rep, "LocalError") {
		if r.Case == name {
			seen++
			assert.Equal(t, conformance.Skip, r.Status)
			assert.Equal(t, "skipped on request: no room", r.Reason)
		} else if r.Case != "*" {
			assert.Equal(t, conformance.Pass, r.Status)
		}
	}
	assert.Equal(t, 1, seen)

	cfg.Skip[0].Case = ""
	rep = evaluated(t, cfg)
	assert.Equal(t, conformance.Partial, rep.Conclusion)
	assert.Equal(t, []conformance.NotJudged{{ID: "LocalError", WouldRun: "was skipped on request: no room"}}, rep.NotJudged)

	// What is left out can't fail; the rest still does.
	broken, err := cfg.Mutants(cfg, conformance.Control{Mutant: "layer-skipped", Side: conformance.SideCandidate, Layer: 5})
	require.NoError(t, err)
	rep = evaluated(t, broken)
	assert.Equal(t, conformance.Fails, rep.Conclusion)
	for _, f := range rep.Failures() {
		assert.NotEqual(t, "LocalError", f.ID)
	}
	for want, s := range map[string]conformance.CheckSkip{
		`skips[0].check: got "Locale", want a check, such as LocalError`:              {Check: "Locale", Reason: "x"},
		`skips[0].check: got "LogitCandidates", want a check, such as LogitCandidate`: {Check: "LogitCandidates", Reason: "x"},
		`skips[0].check: got "Provenance", want a check of the candidate`:             {Check: "Provenance", Reason: "x"},
		`skips[0].reason: got "", want a reason`:                                      {Check: "LocalError"},
		`skips[0].case: got "nobody", want a case of the run`:                         {Check: "LocalError", Case: "nobody", Reason: "x"},
	} {
		cfg.Skip = []conformance.CheckSkip{s}
		_, err := conformance.Evaluate(t.Context(), cfg)
		assert.ErrorContains(t, err, want)
	}
	cfg.Skip, cfg.Only = nil, []string{"LocalEror"}
	_, err = conformance.Evaluate(t.Context(), cfg)
	assert.ErrorContains(t, err, `no check named "LocalEror": want a check, such as LocalError`)
}
