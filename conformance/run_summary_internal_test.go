package conformance

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/plumbline-go/plumbline/engine"
)

// TestSummaryNamesTheWorst: what a run's output begins with. What is waived, provisional
// or passed is never the worst.
func TestSummaryNamesTheWorst(t *testing.T) {
	source, row := engine.ResidPost(4), 5
	result := func(id string, side Side, level Level, s Status, probes ...engine.Probe) Result {
		r := Result{ID: id, Case: "a", Side: side, Level: level, Status: s, Reason: "because"}
		for _, p := range probes {
			r.Findings = append(r.Findings, Finding{Probe: p, Metric: "error", Got: 2, Limit: Limit{1, "a measurement"}, At: Nowhere})
		}
		return r
	}
	pass := result("Shape", SideCandidate, Core, Pass)
	reported := result("Reported", SideCandidate, Provisional, Fail, source)
	waived := result("Waived", SideCandidate, Core, Fail, source)
	waived.Waived = &Waiver{}
	behind := result("Behind", SideCandidate, Core, Fail, engine.ResidPost(9))
	at := result("At", SideCandidate, Core, Fail, engine.ResidPost(9), source)
	silent := result("Silent", SideCandidate, Core, Error)
	reference := result("Oracle", SideReference, Core, Fail)
	located := "; first bad row: 5 (blocks.4.resid_post); sources: [blocks.4.resid_post]"
	for _, tc := range []struct {
		what    string
		results []Result
		located bool
		want    string
		first   string
	}{
		{"nothing failed", []Result{pass, reported, waived}, false, "conclusion: fails\nrun it again: plumbline gate", "Shape"},
		{"at the source", []Result{pass, reported, waived, behind, at}, true, "conclusion: fails" + located +
			"\nAt, a [candidate, fail]: blocks.4.resid_post: error 2, limit 1 (a measurement)\nrun it again: plumbline gate", "At"},
		{"no source", []Result{pass, behind, at}, false,
			"conclusion: fails\nBehind, a [candidate, fail]: blocks.9.resid_post: error 2, limit 1 (a measurement)\nrun it again: plumbline gate", "Behind"},
		{"without a finding", []Result{pass, silent}, false, "conclusion: fails\nSilent, a [candidate, error]: because\nrun it again: plumbline gate", "Silent"},
		{"the reference", []Result{at, reference}, true, "conclusion: fails" + located + "\nOracle, a [reference, fail]: because\nrun it again: plumbline gate", "Oracle"},
	} {
		r := &Report{Conclusion: Fails, Reproduce: "plumbline gate", Checks: tc.results}
		if tc.located {
			r.FirstBadRow, r.Source, r.Sources = &row, &source, []engine.Probe{source}
		}
		assert.Equal(t, tc.want, runSummary(r), tc.what)
		ids, results := byCheck(r)
		assert.Equal(t, tc.first, ids[0], tc.what)
		assert.Len(t, ids, len(tc.results), tc.what)
		assert.Len(t, results, len(tc.results), tc.what)
	}
	r := &Report{Conclusion: Conforms}
	assert.Equal(t, "conclusion: conforms", runSummary(r))
}
