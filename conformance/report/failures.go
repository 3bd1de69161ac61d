package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/conformance/report/page"
)

// failure is one failing check, or one answer that is missing or can't be read.
type failure struct {
	worst conformance.Result
	// cases is on how many cases it fails; across is true where it fails over all of
	// them together too.
	cases  int
	across bool
}

// where says on how many of so many cases a check fails.
func (f failure) where(all int) string {
	switch {
	case f.cases == 0:
		return "over all cases"
	case f.across:
		return fmt.Sprintf("%d of %s, and over all cases", f.cases, plural(all, "case"))
	}
	return fmt.Sprintf("%d of %s", f.cases, plural(all, "case"))
}

// baselineCheck is the check that holds a run to an earlier one.
const baselineCheck = "Baseline"

// failures are worst first: missing answers, then what is furthest over its limit.
func failures(r *conformance.Report) []failure {
	var missing, wrong []failure
	index := map[string]int{}
	for _, f := range worstFirst(r.Failures()) {
		if f.ID == baselineCheck && len(baselineOf(r).Regressions) > 0 {
			continue // the regressions say the same, one by one
		}
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
			wrong[i].across = true
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
			lines = append(lines, fmt.Sprintf("FAIL  %s, %s: %s", c.ID, f.where(len(r.Cases)), findingText(c)))
		default:
			lines = append(lines, fmt.Sprintf("FAIL  %s, %s; worst %s: %s", c.ID, f.where(len(r.Cases)), caseLabel(c.Case), findingText(c)))
		}
	}
	return append(firstOf(errors, answersShown), lines...)
}

func findingText(r conformance.Result) string {
	f := shownFinding(r)
	if f == nil {
		return r.Reason
	}
	text := f.String()
	if n := len(r.Findings) - 1; n > 0 {
		thing := "more finding"
		if ofRows(r.Findings) {
			thing = "more row"
		}
		text += fmt.Sprintf(" (and %s)", plural(n, thing))
	}
	return text
}

// shownFinding is the one finding that is shown of a result: the worst at the first
// place that it names, nil without one. Findings come in the order of the model, and of
// several rows the first one over its limit is where to look, however far off what
// follows from it is.
func shownFinding(r conformance.Result) *conformance.Finding {
	if len(r.Findings) == 0 {
		return nil
	}
	shown := &r.Findings[0]
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Probe == r.Findings[0].Probe && f.At.Row == r.Findings[0].At.Row && page.Excess(*f) > page.Excess(*shown) {
			shown = f
		}
	}
	return shown
}

// ofRows is whether each finding is of a row of its own.
func ofRows(fs []conformance.Finding) bool {
	seen := map[int]bool{}
	for _, f := range fs {
		if f.At.Row < 0 || seen[f.At.Row] {
			return false
		}
		seen[f.At.Row] = true
	}
	return true
}

func caseLabel(name string) string {
	if name == "*" {
		return "all cases"
	}
	return printable(name, nameLength)
}

// worstFirst sorts by status (no answer before a wrong one), then by how far
// the finding that is shown is over its limit.
func worstFirst(rs []conformance.Result) []conformance.Result {
	excess := func(r conformance.Result) float64 {
		f := shownFinding(r)
		if f == nil || r.Status == conformance.Error {
			return math.Inf(1)
		}
		return page.Excess(*f)
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
