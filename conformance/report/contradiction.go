package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/plumbline-go/plumbline/conformance"
)

// contradiction says where the parts of a report contradict each other; empty where they
// don't. It doesn't conclude again: that takes what only a run knows. It refuses what no
// run concludes, above all a verdict that is better than the checks.
func contradiction(r *conformance.Report) string {
	for _, find := range []func(*conformance.Report) string{countsWrong, tooGood, tooBad, notAsDescribed, notJudgedWrong, locusWrong, waiversWrong, shardWrong} {
		if what := find(r); what != "" {
			return what
		}
	}
	return ""
}

// vacuousCheck fails where nothing was judged by value.
const vacuousCheck = "NoVacuousPass"

// counted is whether a result is a verdict on the candidate.
func counted(c conformance.Result) bool {
	return c.Side == conformance.SideCandidate && c.Status.Judged() && c.Waived == nil && !conformance.LooksAtResults(c.ID)
}

// bad is whether a result is a failure, or no answer, that nothing accepts.
func bad(c conformance.Result) bool {
	return c.Waived == nil && (c.Status == conformance.Fail || c.Status == conformance.Error)
}

// failed is the first result that makes a candidate fail, nil if there is none.
func failed(r *conformance.Report) *conformance.Result {
	for i, c := range r.Checks {
		if c.Side == conformance.SideCandidate && c.Level != conformance.Provisional && bad(c) {
			return &r.Checks[i]
		}
	}
	return nil
}

// referenceFailed is whether a check of the reference itself failed.
func referenceFailed(r *conformance.Report) bool {
	return slices.ContainsFunc(r.Checks, func(c conformance.Result) bool { return c.Side == conformance.SideReference && bad(c) })
}

func countsWrong(r *conformance.Report) string {
	n := 0
	for _, c := range r.Checks {
		if counted(c) {
			n++
		}
	}
	if n != r.Executed {
		return fmt.Sprintf("executed: got %d, and %d checks came to a verdict", r.Executed, n)
	}
	return ""
}

func tooGood(r *conformance.Report) string {
	if got := referenceFailed(r); got != r.ReferenceFailed {
		return fmt.Sprintf("reference_failed: got %t, and of the checks of the reference that is %t", r.ReferenceFailed, got)
	}
	if r.ReferenceFailed && r.Conclusion != conformance.NothingJudged {
		return fmt.Sprintf("conclusion: got %q, and the reference failed", r.Conclusion)
	}
	if f := failed(r); f != nil && r.Conclusion != conformance.Fails && !r.ReferenceFailed {
		return fmt.Sprintf("conclusion: got %q, and %s has status %q on %s", r.Conclusion, printable(f.ID, nameLength), f.Status, caseLabel(f.Case))
	}
	if r.Conclusion != conformance.Conforms && r.Conclusion != conformance.Partial {
		return ""
	}
	if r.Executed == 0 {
		return fmt.Sprintf("conclusion: got %q, and no check came to a verdict", r.Conclusion)
	}
	for _, c := range r.Checks {
		if c.ID == vacuousCheck && c.Status == conformance.Fail {
			return fmt.Sprintf("conclusion: got %q, and %s failed", r.Conclusion, vacuousCheck)
		}
	}
	for _, w := range r.Waivers {
		if w.Problem != "" {
			return fmt.Sprintf("conclusion: got %q, and the waiver of %s, %s, has a problem", r.Conclusion, printable(w.Check, nameLength), caseLabel(w.Case))
		}
	}
	if b := r.Baseline; b != nil && len(b.Regressions) > 0 {
		return fmt.Sprintf("conclusion: got %q, and there are %d regressions from the baseline", r.Conclusion, len(b.Regressions))
	}
	if r.Conclusion == conformance.Conforms {
		if id := coreUnjudged(r); id != "" {
			return fmt.Sprintf("conclusion: got %q, and the Core check %s came to no verdict", r.Conclusion, id)
		}
		if len(r.Only) > 0 {
			return fmt.Sprintf("conclusion: got %q, and the run was restricted to %d checks", r.Conclusion, len(r.Only))
		}
	}
	if r.Conclusion == conformance.Conforms && len(r.NotJudged) > 0 {
		return fmt.Sprintf("conclusion: got %q, and the Core check %s was judged nowhere", r.Conclusion, printable(r.NotJudged[0].ID, nameLength))
	}
	return ""
}

// coreUnjudged is a Core check that nothing of the candidate was judged by, empty where
// there is none. Two builds that are compared bit for bit have checks of their own.
func coreUnjudged(r *conformance.Report) string {
	judged, exact := map[string]bool{}, len(r.About) == 0
	for _, c := range r.Checks {
		judged[c.ID] = judged[c.ID] || counted(c)
		exact = exact && strings.HasPrefix(c.ID, "Exact")
	}
	if exact {
		return ""
	}
	for _, id := range conformance.CoreChecks() {
		if !judged[id] {
			return id
		}
	}
	return ""
}

// notAsDescribed finds results that aren't what the report says of their checks.
func notAsDescribed(r *conformance.Report) string {
	about := map[string]conformance.CheckInfo{}
	for _, a := range r.About {
		about[a.ID] = a
	}
	for i, c := range r.Checks {
		a, ok := about[c.ID]
		if !ok {
			continue // a comparison bit for bit, and an answer that can't be read, are described by none
		}
		reported := a.Level == conformance.Extended && c.Level == conformance.Provisional && len(r.Features) > 0
		if c.Level != a.Level && !reported {
			return fmt.Sprintf("checks[%d]: level: got %q, and about says %q of %s", i, c.Level, a.Level, printable(c.ID, nameLength))
		}
		if !slices.Contains(a.Sides, c.Side) {
			return fmt.Sprintf("checks[%d]: side: got %q, and about says %v of %s", i, c.Side, a.Sides, printable(c.ID, nameLength))
		}
	}
	return ""
}

// tooBad finds a failure of which nothing in the report is the cause.
func tooBad(r *conformance.Report) string {
	if r.Conclusion != conformance.Fails || failed(r) != nil || (r.Baseline != nil && len(r.Baseline.Regressions) > 0) {
		return ""
	}
	if slices.ContainsFunc(r.Waivers, func(w conformance.WaiverUse) bool { return w.Problem != "" }) {
		return ""
	}
	return `conclusion: got "fails", and no check, waiver or figure of the baseline did`
}

func notJudgedWrong(r *conformance.Report) string {
	judged := map[string]bool{}
	for _, c := range r.Checks {
		judged[c.ID] = judged[c.ID] || counted(c)
	}
	for _, n := range r.NotJudged {
		if judged[n.ID] && n.Case == "" {
			return fmt.Sprintf("core_not_judged: got %s, which was judged", printable(n.ID, nameLength))
		}
	}
	return ""
}

// locusWrong finds rows and cases that point nowhere.
func locusWrong(r *conformance.Report) string {
	for i, c := range r.Checks {
		// What a baseline says of a case that is gone stands under that case's name.
		if _, ok := r.Cases[c.Case]; !ok && c.Case != "*" && !conformance.LooksAtResults(c.ID) {
			return fmt.Sprintf("checks[%d]: %s, and there is no such case", i, caseLabel(c.Case))
		}
	}
	judged := false
	for _, name := range slices.Sorted(maps.Keys(r.Cases)) {
		v := r.Cases[name]
		judged = judged || v.Judged
		switch {
		case v.FirstBadRow == nil:
		case !v.Judged:
			return fmt.Sprintf("cases: %s: first_bad_row: got %d, and the case was not judged", caseLabel(name), *v.FirstBadRow)
		}
	}
	switch {
	case r.FirstBadRow == nil:
	case !judged && failed(r) == nil:
		return fmt.Sprintf("first_bad_row: got %d, and no case was judged and no check failed", *r.FirstBadRow)
	}
	if r.Source != nil && !slices.Contains(r.Sources, *r.Source) {
		return fmt.Sprintf("source: got %s, which sources hasn't", printable(string(*r.Source), nameLength))
	}
	return ""
}

func waiversWrong(r *conformance.Report) string {
	for i, c := range r.Checks {
		if c.Waived == nil {
			continue
		}
		if c.Side != conformance.SideCandidate || (c.Status != conformance.Fail && c.Status != conformance.Error) {
			return fmt.Sprintf("checks[%d]: got a waiver on a result that is no failure of the candidate", i)
		}
		if c.Waived.Check != c.ID || c.Waived.Case != c.Case {
			return fmt.Sprintf("checks[%d]: waived: got a waiver of %s, %s", i, printable(c.Waived.Check, nameLength), caseLabel(c.Waived.Case))
		}
		if !slices.ContainsFunc(r.Waivers, func(w conformance.WaiverUse) bool { return w.Waiver == *c.Waived && w.Problem == "" }) {
			return fmt.Sprintf("checks[%d]: got a waiver that waivers hasn't", i)
		}
	}
	return ""
}

func shardWrong(r *conformance.Report) string {
	s := r.Shard
	switch {
	case s == nil:
	case s.Index >= s.Total:
		return fmt.Sprintf("shard: got %d of %d, counted from 0", s.Index, s.Total)
	case len(r.Cases) != s.Cases:
		return fmt.Sprintf("shard: got %d cases, want %d as it says", len(r.Cases), s.Cases)
	case s.Cases > s.AllCases:
		return fmt.Sprintf("shard: got %d cases of %d", s.Cases, s.AllCases)
	}
	return ""
}
