package conformance

import (
	"fmt"
	"slices"
	"strings"
)

// runSummary is the verdict in a few lines, for those who read a test's output from the
// top: the conclusion, where it points, the first finding of the worst check, and how to
// run it again.
func runSummary(r *Report) string {
	lines := []string{"conclusion: " + string(r.Conclusion)}
	if r.FirstBadRow != nil {
		lines[0] += "; first bad row: " + AtRow(*r.FirstBadRow).String()
	}
	if len(r.Sources) > 0 {
		lines[0] += fmt.Sprintf("; sources: %v", r.Sources)
	}
	if w := worstResult(r); w != nil {
		what := w.Reason
		if len(w.Findings) > 0 {
			what = worstFinding(r, w).String()
		}
		lines = append(lines, fmt.Sprintf("%s, %s [%s, %s]: %s", w.ID, w.Case, w.Side, w.Status, what))
	}
	if r.Reproduce != "" {
		lines = append(lines, "run it again: "+r.Reproduce)
	}
	return strings.Join(lines, "\n")
}

// worstResult is the failure that counts most: the reference's before the candidate's,
// since none of the latter can be trusted then; else one at the source that the report
// names; else the first. It is nil where nothing failed that counts.
func worstResult(r *Report) *Result {
	var first, atSource *Result
	for i := range r.Checks {
		c := &r.Checks[i]
		if c.Waived != nil || c.Status != Fail && c.Status != Error {
			continue
		}
		if c.Side == SideReference {
			return c
		}
		if c.Level == Provisional {
			continue
		}
		if first == nil {
			first = c
		}
		if atSource == nil && slices.ContainsFunc(c.Findings, r.isAtSource) {
			atSource = c
		}
	}
	if atSource != nil {
		return atSource
	}
	return first
}

func (r *Report) isAtSource(f Finding) bool { return r.Source != nil && f.Probe == *r.Source }

func worstFinding(r *Report, w *Result) Finding {
	if i := slices.IndexFunc(w.Findings, r.isAtSource); i >= 0 {
		return w.Findings[i]
	}
	return w.Findings[0]
}

// byCheck groups the results by check, in their order, but for the worst check: that is
// the first.
func byCheck(r *Report) (ids []string, results map[string][]Result) {
	results = map[string][]Result{}
	if w := worstResult(r); w != nil {
		ids = append(ids, w.ID)
	}
	for _, c := range r.Checks {
		if !slices.Contains(ids, c.ID) {
			ids = append(ids, c.ID)
		}
		results[c.ID] = append(results[c.ID], c)
	}
	return ids, results
}
