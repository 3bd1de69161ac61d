package conformance_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/tools/suite"
)

func onDay(day string) func() time.Time {
	return func() time.Time {
		t, err := time.Parse(time.DateOnly, day)
		if err != nil {
			panic(err)
		}
		return t.Add(23 * time.Hour) // the last day counts to its end
	}
}

// faulty is a short run with a layer that is skipped, or without any fault.
func faulty(t *testing.T, mutant string, layer int) conformance.Config {
	t.Helper()
	onlyOnEmbedded(t)
	cfg, err := seeded()
	require.NoError(t, err)
	cfg.Cases, cfg.ReferenceCases = suite.ProofCases(cfg.Cases)[:3], 1
	cfg.Probes = nil
	cfg.Now = onDay("2026-12-01")
	if mutant != "" {
		cfg, err = cfg.Mutants(cfg, conformance.Control{Mutant: mutant, Side: conformance.SideCandidate, Layer: layer})
		require.NoError(t, err)
	}
	return conformance.WithMemory(cfg)
}

func evaluated(t *testing.T, cfg conformance.Config) *conformance.Report {
	t.Helper()
	rep, err := conformance.Evaluate(t.Context(), cfg)
	require.NoError(t, err)
	return rep
}

// waiverOfAll has one waiver per failure of the candidate.
func waiverOfAll(rep *conformance.Report) []conformance.Waiver {
	var out []conformance.Waiver
	for _, f := range rep.Failures() {
		out = append(out, conformance.Waiver{Check: f.ID, Case: f.Case, Reason: "known, issue 12", Expires: "2026-12-31"})
	}
	return out
}

// ofCheck are the candidate's results of a check.
func ofCheck(rep *conformance.Report, id string) []conformance.Result {
	var out []conformance.Result
	for _, c := range rep.Checks {
		if c.ID == id && c.Side != conformance.SideReference {
			out = append(out, c)
		}
	}
	return out
}

// TestWaivedFailuresAreNoVerdicts: with every failure waived the run no longer fails, and
// what was waived everywhere was judged nowhere.
func TestWaivedFailuresAreNoVerdicts(t *testing.T) {
	cfg := faulty(t, "final-norm-ones", -1) // a fault of the head: the layers are sound
	broken := evaluated(t, cfg)
	require.Equal(t, conformance.Fails, broken.Conclusion)
	cfg.Waivers = waiverOfAll(broken)
	require.NotEmpty(t, cfg.Waivers)
	rep := evaluated(t, cfg)
	assert.Equal(t, conformance.Partial, rep.Conclusion, rep.Failures())
	assert.Empty(t, rep.Failures())
	assert.Equal(t, broken.Source, rep.Source, "the source is still named")
	assert.True(t, rep.SourceWaived)
	assert.False(t, broken.SourceWaived)
	require.Len(t, rep.Waivers, len(cfg.Waivers))
	for _, u := range rep.Waivers {
		assert.Equal(t, 1, u.Used, u)
		assert.Empty(t, u.Problem)
	}
	var ids []string
	for _, n := range rep.NotJudged {
		ids = append(ids, n.ID)
		assert.Equal(t, "needs a case whose failure isn't waived", n.WouldRun)
	}
	assert.Equal(t, []string{"LogitCandidate"}, ids)
	assert.Equal(t, broken.Executed-len(cfg.Waivers), rep.Executed, "a waived failure is no verdict")

	// One waiver fewer, and the failure that it was for counts.
	for i := range cfg.Waivers {
		without := cfg
		without.Waivers = append(append([]conformance.Waiver{}, cfg.Waivers[:i]...), cfg.Waivers[i+1:]...)
		rep := evaluated(t, without)
		assert.Equal(t, conformance.Fails, rep.Conclusion)
		assert.Len(t, rep.Failures(), 1)
	}
}

// TestAllWaivedOrSkippedNeverConforms: what is left of a candidate whose values are all
// waived, or all left out, is no verdict on it.
func TestAllWaivedOrSkippedNeverConforms(t *testing.T) {
	clean := faulty(t, "", 0)
	require.Equal(t, conformance.Conforms, evaluated(t, clean).Conclusion)
	guard := func(rep *conformance.Report) {
		t.Helper()
		assert.Equal(t, conformance.NothingJudged, rep.Conclusion)
		results := ofCheck(rep, "NoVacuousPass")
		require.Len(t, results, 1)
		assert.Equal(t, conformance.Fail, results[0].Status)
	}

	skips := clean
	for _, id := range []string{"ResidualCandidate", "LocalError", "ProbeCandidate", "LogitCandidate", "ResidualToLogits"} {
		skips.Skip = append(skips.Skip, conformance.CheckSkip{Check: id, Reason: "not today"})
	}
	guard(evaluated(t, skips))
	for _, c := range conformance.Builtin().Checks() {
		if slices.Contains(c.Sides, conformance.SideCandidate) {
			skips.Skip = append(skips.Skip, conformance.CheckSkip{Check: c.ID, Reason: "not today"})
		}
	}
	rep := evaluated(t, skips)
	guard(rep)
	assert.Zero(t, rep.Executed)

	// Every value wrong, and every failure waived. The token checks still pass.
	cfg := faulty(t, "all-nan", -1)
	cfg.Waivers = waiverOfAll(evaluated(t, cfg))
	guard(evaluated(t, cfg))
}

// TestWaiversThatMakeTheRunFail: expired, unused, for no case of the run. The clean run
// is the control.
func TestWaiversThatMakeTheRunFail(t *testing.T) {
	cfg := faulty(t, "", 0)
	name := cfg.Cases[0].Name
	w := conformance.Waiver{Check: "LocalError", Case: name, Reason: "x", Expires: "2026-12-01"}
	for _, tc := range []struct {
		what    string
		change  func(*conformance.Waiver)
		problem string
	}{
		{"unused", func(*conformance.Waiver) {}, "unused: nothing failed that it is for"},
		{"unused over all cases", func(w *conformance.Waiver) { w.Case = "*" }, "unused: nothing failed that it is for"},
		{"another run's case", func(w *conformance.Waiver) { w.Case = "nobody" }, "unused: the run has no such case"},
		{"expired yesterday", func(w *conformance.Waiver) { w.Expires = "2026-11-30" }, "expired: its last day was 2026-11-30"},
	} {
		t.Run(tc.what, func(t *testing.T) {
			with := w
			tc.change(&with)
			cfg := cfg
			cfg.Waivers = []conformance.Waiver{with}
			rep := evaluated(t, cfg)
			assert.Equal(t, conformance.Fails, rep.Conclusion)
			assert.Equal(t, []conformance.WaiverUse{{Waiver: with, Problem: tc.problem}}, rep.Waivers)
		})
	}
}

// TestWaiverHoldsToItsLastDayAndPlace: one failing layer, waived at its place, to the end
// of the last day, and on its case only.
func TestWaiverHoldsToItsLastDayAndPlace(t *testing.T) {
	cfg := faulty(t, "final-norm-ones", -1)
	all := waiverOfAll(evaluated(t, cfg))
	conclude := func(change func(*conformance.Waiver)) *conformance.Report {
		with := cfg
		with.Waivers = append([]conformance.Waiver{}, all...)
		for i := range with.Waivers {
			change(&with.Waivers[i])
		}
		return evaluated(t, with)
	}
	assert.Equal(t, conformance.Partial, conclude(func(w *conformance.Waiver) { w.Expires = "2026-12-01" }).Conclusion)
	late := conclude(func(w *conformance.Waiver) { w.Expires = "2026-11-30" })
	assert.Equal(t, conformance.Fails, late.Conclusion)
	assert.Len(t, late.Failures(), len(all), "an expired waiver waives nothing")

	at := func(p engine.Probe) *conformance.Report {
		return conclude(func(w *conformance.Waiver) {
			if w.Check == "LogitCandidate" {
				w.Probe = string(p)
			}
		})
	}
	assert.Equal(t, conformance.Partial, at(engine.ProbeLogits).Conclusion)
	elsewhere := at("blocks.3.resid_post")
	assert.Equal(t, conformance.Fails, elsewhere.Conclusion)
	for _, f := range elsewhere.Failures() {
		assert.Equal(t, "LogitCandidate", f.ID)
	}
	for _, u := range elsewhere.Waivers {
		assert.Equal(t, u.Probe != "", u.Problem != "", u)
	}
}

// TestWaiversOfAConfigAreChecked: what Evaluate refuses before anything runs.
func TestWaiversOfAConfigAreChecked(t *testing.T) {
	cfg := faulty(t, "", 0)
	cfg.Candidate = engine.Func{} // nothing runs
	good := conformance.Waiver{Check: "LocalError", Case: "a", Reason: "x", Expires: "2026-12-31"}
	for _, tc := range []struct {
		change func(*conformance.Waiver)
		want   string
	}{
		{func(w *conformance.Waiver) { w.Check = "LocalEror" }, `conformance: waivers[1].check: got "LocalEror", want a check, such as LocalError`},
		{func(w *conformance.Waiver) { w.Check = "Provenance" }, `waivers[1].check: got "Provenance", want a check of the candidate`},
		{func(w *conformance.Waiver) { w.Check = "NoVacuousPass" }, `waivers[1].check: got "NoVacuousPass", want a check of the candidate`},
		{func(w *conformance.Waiver) { w.Check = "InteriorRowOracle" }, `waivers[1].check: got "InteriorRowOracle", want a check of the candidate`},
		{func(w *conformance.Waiver) { w.Check = "Nothing" }, "want a check; `plumbline explain` lists them"},
		{func(w *conformance.Waiver) { w.Reason = " " }, `waivers[1].reason: got " ", want a reason`},
		{func(w *conformance.Waiver) { w.Expires = "2027-12-03" }, `waivers[1].expires: got "2027-12-03", want at most 2027-12-02`},
		{func(w *conformance.Waiver) { w.Expires = "31.12.2026" }, `waivers[1].expires: got "31.12.2026", want the last day`},
		{func(w *conformance.Waiver) { *w = good }, `waivers[1]: got what waivers[0] waives`},
	} {
		with := cfg
		second := good
		second.Case = "b"
		tc.change(&second)
		with.Waivers = []conformance.Waiver{good, second}
		_, err := conformance.Evaluate(t.Context(), with)
		require.Error(t, err)
		assert.Contains(t, err.Error(), tc.want)
		var we *conformance.WaiverError
		assert.True(t, errors.As(err, &we), err)
	}
}

const oneWaiver = `{"check": "LocalError", "case": "a", "probe": "blocks.7.resid_post", "reason": "x", "expires": "2026-12-31"}`

func TestReadWaivers(t *testing.T) {
	ws, err := conformance.ReadWaivers(strings.NewReader(`{"waivers": [`+oneWaiver+`]}`), "w.json")
	require.NoError(t, err)
	assert.Equal(t, []conformance.Waiver{{Check: "LocalError", Case: "a", Probe: "blocks.7.resid_post", Reason: "x", Expires: "2026-12-31"}}, ws)
	ws, err = conformance.ReadWaivers(strings.NewReader(`{"waivers": []}`), "w.json")
	require.NoError(t, err)
	assert.Empty(t, ws)
	in := func(old, new string) string { return `{"waivers": [` + strings.Replace(oneWaiver, old, new, 1) + `]}` }
	for text, want := range map[string]string{
		"":                                     "w.json",
		"[]":                                   `conformance: w.json: got [], want an object`,
		"{}":                                   `w.json: got no key "waivers", want one`,
		`{"waivers": null}`:                    `w.json: waivers: got null, want a list`,
		`{"waivers": {}}`:                      `w.json: waivers: got {}, want a list`,
		`{"waivers": [], "waiver": []}`:        `got the key "waiver", want no other than waivers`,
		`{"Waivers": []}`:                      `got the key "Waivers"`,
		`{"waivers": [null]}`:                  `w.json: waivers[0]: got null, want an object`,
		`{"waivers": [], "waivers": []}`:       `key "waivers" twice`,
		`{"waivers": []} x`:                    `after the JSON value`,
		in(`"check"`, `"Check"`):               `waivers[0]: got the key "Check"`,
		in(`"check": "LocalError", `, ``):      `waivers[0].check: got "", want the ID of a check`,
		in(`"a"`, `""`):                        `waivers[0].case: got "", want the name of a case`,
		in(`"a"`, `3`):                         `waivers[0].case: got 3, want a string`,
		in(`"a"`, `null`):                      `waivers[0].case: got null, want a string`,
		in(`"x"`, `"  "`):                      `waivers[0].reason: got "  ", want a reason`,
		in(`"blocks.7.resid_post"`, `""`):      `waivers[0].probe: got "", want a place`,
		in(`blocks.7.resid_post`, `layer 7`):   `waivers[0].probe: got "layer 7", want a place`,
		in(`2026-12-31`, `2026-02-30`):         `waivers[0].expires: got "2026-02-30", want the last day`,
		in(`2026-12-31`, `2026-1-3`):           `waivers[0].expires: got "2026-1-3", want the last day`,
		in(`, "expires": "2026-12-31"`, ``):    `waivers[0].expires: got "", want the last day`,
		in(`{"check"`, oneWaiver+`, {"check"`): `w.json: waivers[1]: got what waivers[0] waives, want each`,
		`{"waivers": ["` + strings.Repeat("x", 1<<20) + `"]}`: `w.json: size: got more than 1048576 bytes`,
	} {
		_, err := conformance.ReadWaivers(strings.NewReader(text), "w.json")
		if assert.Error(t, err, text) {
			assert.Contains(t, err.Error(), want)
		}
	}
}

// FuzzReadWaivers: whatever is read without an error has all that a waiver needs.
func FuzzReadWaivers(f *testing.F) {
	f.Add([]byte(`{"waivers": [` + oneWaiver + `]}`))
	f.Add([]byte(`{"waivers": []}`))
	f.Add([]byte(`{"waivers": [{"check": "A", "case": "*", "reason": "r", "expires": "2026-02-29"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		ws, err := conformance.ReadWaivers(strings.NewReader(string(data)), "w.json")
		if err != nil {
			if ws != nil {
				t.Error("got waivers beside an error")
			}
			return
		}
		for _, w := range ws {
			if _, err := time.Parse(time.DateOnly, w.Expires); err != nil || w.Check == "" || w.Case == "" || strings.TrimSpace(w.Reason) == "" {
				t.Errorf("got %+v", w)
			}
		}
	})
}

// TestAWaiverOfAPartSaysWhatItLeaves: red is right, and so is where else it failed.
func TestAWaiverOfAPartSaysWhatItLeaves(t *testing.T) {
	cfg := faulty(t, "layer-skipped", 5)
	whole := evaluated(t, cfg)
	var failing conformance.Result
	for _, r := range whole.Failures() {
		if r.ID == "ResidualCandidate" && r.Case != "*" && len(r.Findings) > 1 {
			failing = r
		}
	}
	require.NotEmpty(t, failing.ID)
	first, second := string(failing.Findings[0].Probe), string(failing.Findings[1].Probe)
	require.NotEqual(t, first, second)
	cfg.Waivers = []conformance.Waiver{{Check: failing.ID, Case: failing.Case, Probe: first, Reason: "x", Expires: time.Now().AddDate(0, 1, 0).Format(time.DateOnly)}}
	rep := evaluated(t, cfg)
	assert.Equal(t, conformance.Fails, rep.Conclusion)
	assert.Contains(t, rep.Waivers[0].Problem, "too narrow: the check failed there, and also at "+second)
}

// TestARestrictedRunIsPartial, also where it has every Core check.
func TestARestrictedRunIsPartial(t *testing.T) {
	cfg := faulty(t, "", 0)
	require.Equal(t, conformance.Conforms, evaluated(t, cfg).Conclusion)
	cfg.Only = conformance.CoreChecks()
	rep := evaluated(t, cfg)
	assert.Empty(t, rep.NotJudged)
	assert.Equal(t, conformance.Partial, rep.Conclusion)
	assert.Equal(t, "the run was restricted to 6 checks", rep.WhyPartial())
}
