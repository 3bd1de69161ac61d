package report

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
)

// Of findings at one place the worst is shown, of several rows the first.
func TestShownFinding(t *testing.T) {
	f := func(probe string, row int, got, limit float64) conformance.Finding {
		return conformance.Finding{Probe: engine.Probe(probe), Metric: "m", Got: conformance.Number(got), Limit: conformance.Limit{Value: conformance.Number(limit), Source: "s"}, At: conformance.AtRow(row)}
	}
	for _, x := range []struct {
		name string
		fs   []conformance.Finding
		got  float64
		text string
	}{
		{"rows: the first is the source", []conformance.Finding{f("blocks.1.resid_post", 2, 2, 1), f("blocks.2.resid_post", 3, 9, 1)}, 2, "(and 1 more row)"},
		{"figures of one place", []conformance.Finding{f("logits", -1, 2.744, 2), f("logits", -1, 0.445, 0.2123)}, 0.445, "(and 1 more finding)"},
		{"two figures of the first row", []conformance.Finding{f("embed", 0, 2, 1), f("embed", 0, 3, 1), f("blocks.0.resid_post", 1, 9, 1)}, 3, "(and 2 more findings)"},
		{"no limit", []conformance.Finding{f("logits", -1, 2, 1), f("logits", -1, math.NaN(), 1)}, math.NaN(), "(and 1 more finding)"},
	} {
		r := conformance.Result{ID: "A", Status: conformance.Fail, Findings: x.fs}
		require.Equal(t, fmt.Sprint(x.got), fmt.Sprint(float64(shownFinding(r).Got)), x.name)
		require.True(t, strings.HasSuffix(findingText(r), x.text), "%s: %s", x.name, findingText(r))
	}
	require.Nil(t, shownFinding(conformance.Result{}))

	logits := conformance.Result{ID: "LogitCandidate", Case: "*", Side: conformance.SideCandidate, Level: conformance.Core, Status: conformance.Fail,
		Findings: []conformance.Finding{f("logits", -1, 2.744, 2), f("logits", -1, 0.445, 0.2123)}}
	r := samples()["fails"]
	r.Checks = append(r.Checks, logits)
	require.Contains(t, textOf(t, r, TextOptions{}), "FAIL  LogitCandidate, over all cases: logits: m 0.445, limit 0.2123")
	require.Contains(t, markdown(r, maxMarkdown), "| `LogitCandidate` | over all cases | `all cases` | `logits` | m | 0.445 | 0.2123 (s) |")
}

// A verdict over all cases is said beside those of cases.
func TestFailureOverAllCasesToo(t *testing.T) {
	r := samples()["fails"]
	over := failingResult("*", 9, 1)
	r.Checks = append(r.Checks, over)
	require.Contains(t, textOf(t, r, TextOptions{}), "FAIL  LocalError, 2 of 3 cases, and over all cases; worst paris: ")
	require.Contains(t, markdown(r, maxMarkdown), "| `LocalError` | 2 of 3 cases, and over all cases | `paris` |")
}

// Where all layers are wrong, or the dump alone, no layer is headlined.
func TestPlaceIsWhatTheKindSays(t *testing.T) {
	for kind, want := range map[conformance.Kind][2]string{
		conformance.KindLayer:     {"## Plumbline: fails, source `blocks.7.resid_post`\n", ", source blocks.7.resid_post"},
		conformance.KindAllLayers: {"## Plumbline: fails in all layers\n", ", in all layers"},
		conformance.KindDump:      {"## Plumbline: fails in the dump, not in the engine\n", ", in the dump, not in the engine"},
	} {
		r := samples()["fails"]
		r.Kind = &kind
		require.Contains(t, headline(r), want[0])
		require.True(t, strings.HasSuffix(verdictText(r), want[1]), verdictText(r))
	}
	r := samples()["fails"]
	r.Conclusion, r.SourceWaived = conformance.Conforms, true
	require.Contains(t, headline(r), "## Plumbline: conforms\n")
}
