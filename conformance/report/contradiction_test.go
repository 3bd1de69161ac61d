package report

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
)

// Each report is one of the samples with one thing changed, most of them to its favour.
func TestReadRefusesContradictions(t *testing.T) {
	for _, tt := range []struct {
		name, sample string
		change       func(r *conformance.Report)
		says         string
	}{
		{"a failure called conforming", "fails", func(r *conformance.Report) { r.Conclusion = conformance.Conforms }, `got "conforms", and LocalError has status "fail" on berlin`},
		{"a failure called partial", "fails", func(r *conformance.Report) { r.Conclusion = conformance.Partial }, `got "partial", and LocalError`},
		{"a failure called nothing", "fails", func(r *conformance.Report) { r.Conclusion = conformance.NothingJudged }, `got "nothing judged", and LocalError`},
		{"an unreadable answer called conforming", "conforms", func(r *conformance.Report) {
			r.Checks[0].Status = conformance.Error
			r.Executed = 6
		}, `LocalError has status "error" on berlin`},
		{"an extended failure called conforming", "conforms", func(r *conformance.Report) {
			r.Checks[0].Status, r.Checks[0].Level = conformance.Fail, conformance.Extended
		}, `LocalError has status "fail"`},
		{"fails for no reason", "conforms", func(r *conformance.Report) { r.Conclusion = conformance.Fails }, "and no check, waiver or figure"},
		{"counted too many", "conforms", func(r *conformance.Report) { r.Executed = 8 }, "executed: got 8, and 7 checks"},
		{"counted a waived one", "waived", func(r *conformance.Report) { r.Executed = 7 }, "executed: got 7, and 6 checks"},
		{"conforms without a verdict", "nothing-judged", func(r *conformance.Report) { r.Conclusion = conformance.Conforms }, "no check came to a verdict"},
		{"partial without a verdict", "nothing-judged", func(r *conformance.Report) { r.Conclusion = conformance.Partial }, "no check came to a verdict"},
		{"conforms where a Core check was judged nowhere", "partial", func(r *conformance.Report) { r.Conclusion = conformance.Conforms }, "the Core check LogitCandidate came to no verdict"},
		{"a Core check of which nothing is left", "conforms", func(r *conformance.Report) {
			r.Checks = r.Checks[:len(r.Checks)-1]
			r.Executed = 6
		}, "the Core check LogitCandidate came to no verdict"},
		{"restricted, and conforms", "conforms", func(r *conformance.Report) { r.Only = []string{"LocalError"} }, "the run was restricted to 1 checks"},
		{"a level of its own", "fails", func(r *conformance.Report) { r.Checks[0].Level = conformance.Provisional }, `checks[0]: level: got "provisional", and about says "core" of LocalError`},
		{"a side of its own", "conforms", func(r *conformance.Report) {
			r.Checks[0].Side = conformance.SideSuite
			r.Executed = 6
		}, `checks[0]: side: got "suite"`},
		{"a waiver of another case", "waived", func(r *conformance.Report) {
			w := *r.Checks[1].Waived
			w.Case = "berlin"
			r.Checks[1].Waived, r.Waivers[0].Waiver = &w, w
		}, "checks[1]: waived: got a waiver of LocalError, berlin"},
		{"a waiver that doesn't hold", "waived", func(r *conformance.Report) {
			r.Waivers[0].Problem, r.Conclusion = "expired", conformance.Fails
		}, "checks[1]: got a waiver that waivers hasn't"},
		{"judged nowhere, and judged", "partial", func(r *conformance.Report) { r.NotJudged[0].ID = "LocalError" }, "core_not_judged: got LocalError, which was judged"},
		{"a reference that failed, unsaid", "reference-failed", func(r *conformance.Report) { r.ReferenceFailed = false }, "reference_failed: got false"},
		{"a reference that failed, and conforms", "reference-failed", func(r *conformance.Report) { r.Conclusion = conformance.Conforms }, "and the reference failed"},
		{"a reference said to have failed", "conforms", func(r *conformance.Report) { r.ReferenceFailed = true }, "reference_failed: got true"},
		{"nothing judged by value, and conforms", "conforms", func(r *conformance.Report) {
			r.Checks = append(r.Checks, conformance.Result{ID: "NoVacuousPass", Case: "*", Side: conformance.SideSuite, Level: conformance.Provisional, Status: conformance.Fail})
		}, "and NoVacuousPass failed"},
		{"a waiver with a problem, and conforms", "waiver-problem", func(r *conformance.Report) { r.Conclusion = conformance.Conforms }, "the waiver of StopRule, all cases, has a problem"},
		{"worse than the baseline, and conforms", "baseline", func(r *conformance.Report) { r.Conclusion = conformance.Conforms }, "1 regressions from the baseline"},
		{"a waiver of its own", "waived", func(r *conformance.Report) { r.Waivers = nil }, "checks[1]: got a waiver that waivers hasn't"},
		{"a waiver on a pass", "waived", func(r *conformance.Report) {
			r.Checks[1].Status = conformance.Pass
		}, "checks[1]: got a waiver on a result that is no failure"},
		{"a waiver on a failure of the reference", "waived", func(r *conformance.Report) {
			r.Checks[1].Side = conformance.SideReference
			r.About[0].Sides = append(r.About[0].Sides, conformance.SideReference)
		}, "checks[1]: got a waiver on a result that is no failure of the candidate"},
		{"a case that there isn't", "conforms", func(r *conformance.Report) { r.Checks[1].Case = "vienna" }, "checks[1]: vienna, and there is no such case"},
		{"a bad row of a case that was not judged", "fails", func(r *conformance.Report) {
			v := r.Cases["rome"]
			v.FirstBadRow = at(3)
			r.Cases["rome"] = v
		}, "rome: first_bad_row: got 3, and the case was not judged"},
		{"a bad row and no case", "conforms", func(r *conformance.Report) {
			r.FirstBadRow, r.Checks, r.Cases, r.Executed, r.Conclusion = at(3), r.Checks[:0], nil, 0, conformance.NothingJudged
			r.Cases = map[string]conformance.CaseVerdict{}
		}, "first_bad_row: got 3, and no case was judged"},
		{"a source of its own", "fails", func(r *conformance.Report) { r.Source = at(engine.Probe("embed")) }, "source: got embed"},
		{"a shard behind the last", "shard", func(r *conformance.Report) { r.Shard.Index = 4 }, "shard: got 4 of 4"},
		{"a shard with more cases than there are", "shard", func(r *conformance.Report) { r.Shard.AllCases = 1 }, "shard: got 2 cases of 1"},
		{"a shard that has other cases than it says", "shard", func(r *conformance.Report) { r.Shard.Cases = 1 }, "shard: got 2 cases, want 1 as it says"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := samples()[tt.sample]
			_, err := Read(bytes.NewReader(written(t, r)))
			require.NoError(t, err, "before the change")
			tt.change(r)
			_, err = Read(bytes.NewReader(written(t, r)))
			var c *ContradictionError
			require.ErrorAs(t, err, &c)
			require.ErrorContains(t, err, tt.says)
		})
	}
}

// What judges other checks' results fails a candidate, and is not counted as a verdict.
func TestReadDoesntCountWhatLooksAtResults(t *testing.T) {
	r := base()
	r.Conclusion = conformance.Fails
	r.Checks = append(r.Checks, conformance.Result{ID: "Baseline", Case: "*", Side: conformance.SideCandidate, Level: conformance.Extended, Status: conformance.Fail})
	_, err := Read(bytes.NewReader(written(t, r)))
	require.NoError(t, err)
	r.Conclusion = conformance.Conforms
	_, err = Read(bytes.NewReader(written(t, r)))
	require.ErrorContains(t, err, `got "conforms", and Baseline has status "fail"`)
}

// What a failure doesn't count for.
func TestReadTakesFailuresThatDontCount(t *testing.T) {
	for name, change := range map[string]func(c *conformance.Result, about *conformance.CheckInfo){
		"reported only": func(c *conformance.Result, about *conformance.CheckInfo) {
			c.Level, about.Level = conformance.Provisional, conformance.Provisional
		},
		"of the suite": func(c *conformance.Result, about *conformance.CheckInfo) {
			c.Side, about.Sides = conformance.SideSuite, append(about.Sides, conformance.SideSuite)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := base()
			r.Checks[1] = failingResult("paris", 1, 0.5)
			change(&r.Checks[1], &r.About[0])
			r.Checks[0].Level = r.About[0].Level
			r.Executed = 6
			if r.Checks[1].Side == conformance.SideCandidate {
				r.Executed = 7
			}
			_, err := Read(bytes.NewReader(written(t, r)))
			require.NoError(t, err)
		})
	}
}
