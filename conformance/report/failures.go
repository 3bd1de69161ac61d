package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/plumbline-go/plumbline/conformance"
)

// failure is one failing check, or one answer that is missing or can't be read.
type failure struct {
	worst conformance.Result
	// cases is on how many cases it fails; 0 where it fails over all of them alone.
	cases int
}

// failures are worst first: missing answers, then what is furthest over its limit.
func failures(r *conformance.Report) []failure {
	var missing, wrong []failure
	index := map[string]int{}
	for _, f := range worstFirst(r.Failures()) {
		if f.Status == conformance.Error {
			missing = append(missing, failure{worst: f})
			continue
		}
		i, ok := index[f.ID]
		if !ok {
			i = len(wrong)
			index[f.ID] = i
			wrong = append(wrong, failure{worst: f})
		}
		if f.Case == "*" {
			continue
		}
		if wrong[i].cases == 0 {
			wrong[i].worst = f // a case says more than the medians
		}
		wrong[i].cases++
	}
	return append(missing, wrong...)
}

// failureLines has one line per failing check, with its worst case, and one per
// answer that could not be read, with its file. Worst first.
func failureLines(r *conformance.Report) []string {
	var errors, lines []string
	for _, f := range failures(r) {
		switch c := f.worst; {
		case c.Status == conformance.Error:
			errors = append(errors, fmt.Sprintf("ERROR %s, %s: %s", c.ID, caseLabel(c.Case), c.Reason))
		case f.cases == 0: // the medians alone
			lines = append(lines, fmt.Sprintf("FAIL  %s, over all cases: %s", c.ID, findingText(c)))
		default:
			lines = append(lines, fmt.Sprintf("FAIL  %s, %d of %d cases; worst %s: %s", c.ID, f.cases, len(r.Cases), caseLabel(c.Case), findingText(c)))
		}
	}
	return append(firstOf(errors, answersShown), lines...)
}

func findingText(r conformance.Result) string {
	if len(r.Findings) == 0 {
		return r.Reason
	}
	text := r.Findings[0].String()
	if n := len(r.Findings) - 1; n > 0 {
		text += fmt.Sprintf(" (and %s)", plural(n, "more row"))
	}
	return text
}

func caseLabel(name string) string {
	if name == "*" {
		return "all cases"
	}
	return printable(name, nameLength)
}

// worstFirst sorts by status (no answer before a wrong one), then by how far
// the first finding is over its limit.
func worstFirst(rs []conformance.Result) []conformance.Result {
	excess := func(r conformance.Result) float64 {
		if len(r.Findings) == 0 || r.Status == conformance.Error {
			return math.Inf(1)
		}
		x := float64(r.Findings[0].Got) / float64(r.Findings[0].Limit.Value)
		if math.IsNaN(x) {
			return math.Inf(1)
		}
		return x
	}
	out := slices.Clone(rs)
	slices.SortStableFunc(out, func(a, b conformance.Result) int { return cmp.Compare(excess(b), excess(a)) })
	return out
}

func rulesOf(rs []conformance.Result) []string {
	var out []string
	for _, r := range rs {
		rule := r.ID + ": " + r.Rule
		if r.Rule != "" && !slices.Contains(out, rule) {
			out = append(out, rule)
		}
	}
	return out
}
