package report

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
)

// unjudgedSince is a report on which a check is judged no more, on so many cases and over
// all of them.
func unjudgedSince(cases int) *conformance.Report {
	r := base()
	r.Conclusion = conformance.Fails
	r.Baseline = &conformance.BaselineInfo{Name: "b.json", NoiseBasis: "no case has figures in both",
		Noise: conformance.Limit{Value: conformance.Number(math.NaN()), Source: "no case has figures in both"}, Improvements: []conformance.Change{}}
	names := []string{"*", "berlin", "paris", "rome"}[:cases+1]
	for _, n := range names {
		c := conformance.Change{Check: "LogitCandidate", Case: n, Metric: "judged", Before: 1, After: 0, Limit: conformance.Limit{Value: 1, Source: "the baseline"}, Detail: "not judged, in the baseline pass"}
		r.Baseline.Regressions = append(r.Baseline.Regressions, c)
		r.Checks = append(r.Checks, conformance.Result{ID: "Baseline", Case: n, Side: conformance.SideCandidate, Level: conformance.Core, Status: conformance.Fail,
			Findings: []conformance.Finding{{Metric: "LogitCandidate: judged", Limit: c.Limit, Exact: true, At: conformance.Nowhere}}})
	}
	return r
}

// What changed alike on many cases is one line, and the check that holds to the baseline
// adds none.
func TestChangesOfVerdictsAreGrouped(t *testing.T) {
	lines := func(r *conformance.Report) []string {
		var out []string
		for _, l := range strings.Split(textOf(t, r, TextOptions{}), "\n") {
			if strings.HasPrefix(l, "FAIL") {
				out = append(out, l)
			}
		}
		return out
	}
	r := unjudgedSince(3)
	require.Equal(t, []string{"FAIL  worse than the baseline: LogitCandidate, 3 cases and over all cases: not judged, in the baseline pass"}, lines(r))
	require.Contains(t, markdown(r, maxMarkdown), "| `LogitCandidate` | 3 cases and over all cases |  | judged: not judged, in the baseline pass |  |  |  |")
	require.Equal(t, []string{"FAIL  worse than the baseline: LogitCandidate, berlin and over all cases: not judged, in the baseline pass"}, lines(unjudgedSince(1)))
	require.Equal(t, []string{"FAIL  worse than the baseline: LogitCandidate, over all cases: not judged, in the baseline pass"}, lines(unjudgedSince(0)))

	other := r.Baseline.Regressions[1]
	other.Check = "StopRule"
	figure := conformance.Change{Check: "LocalError", Case: "*", Probe: "logits", Metric: "error", Before: 1, After: 2, Limit: conformance.Limit{Value: 1.5, Source: "s"}}
	r.Baseline.Regressions = append(r.Baseline.Regressions, other, figure, figure)
	require.Len(t, lines(r), 4, "another check, and each figure")
	require.Equal(t, "FAIL  worse than the baseline: LocalError, over all cases, logits: error 2, was 1, limit 1.5 (s)", lines(r)[3])

	r.Baseline.Regressions = nil // a report that says it only as a check
	require.Len(t, lines(r), 1)
	require.Contains(t, lines(r)[0], "FAIL  Baseline, 3 of 2 cases, and over all cases")
}

// Where nothing was compared, there is no figure to say.
func TestBaselineThatComparedNoFigure(t *testing.T) {
	text := textOf(t, unjudgedSince(2), TextOptions{})
	require.Contains(t, text, "0 figures compared, 3 worse, 0 better; only verdicts and coverage were compared: no case has figures in both\n")
	require.NotContains(t, text, "NaN")
	require.Equal(t, 1, strings.Count(text, "no case has figures in both"))
}
