package conformance

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline-go/plumbline/engine"
)

// longestWaiver is how far ahead a waiver may expire, in days: what nobody looks at for
// longer isn't a waiver any more.
const longestWaiver = 366

// WaiverError says what is wrong with a waiver.
type WaiverError struct {
	// File is where it stands; empty for one that Config brought.
	File string
	// Index counts the waivers from 0, -1 for what is wrong with the file; Field is the
	// key, empty for the whole.
	Index            int
	Field, Got, Want string
}

func (e *WaiverError) Error() string {
	where := "waivers"
	if e.Index >= 0 {
		where += fmt.Sprintf("[%d]", e.Index)
	}
	if e.Field != "" {
		where += "." + e.Field
	}
	if e.File != "" {
		where = e.File + ": " + where
	}
	return fmt.Sprintf("conformance: %s: got %s, want %s", where, e.Got, e.Want)
}

// check refuses a waiver that no reader could understand; i is its place.
func (w Waiver) check(i int) *WaiverError {
	bad := func(field, got, want string) *WaiverError {
		return &WaiverError{Index: i, Field: field, Got: strconv.Quote(got), Want: want}
	}
	switch {
	case blank(w.Check):
		return bad("check", w.Check, "the ID of a check")
	case blank(w.Case):
		return bad("case", w.Case, `the name of a case, or "*" for the verdict over all cases`)
	case blank(w.Reason):
		return bad("reason", w.Reason, "a reason")
	}
	if w.Probe != "" {
		if _, err := engine.ParseProbe(w.Probe, 1<<20); err != nil {
			return bad("probe", w.Probe, "a place such as blocks.7.resid_post, or no such key")
		}
	}
	if _, err := time.Parse(time.DateOnly, w.Expires); err != nil {
		return bad("expires", w.Expires, "the last day that it holds, as YYYY-MM-DD")
	}
	return nil
}

// checkWaivers refuses waivers that can't be meant, before anything runs. Every error
// is a *WaiverError.
func checkWaivers(ws []Waiver, reg *Registry, today time.Time) error {
	last := today.UTC().AddDate(0, 0, longestWaiver).Format(time.DateOnly)
	for i, w := range ws {
		if err := w.check(i); err != nil {
			return err
		}
		if want := candidateCheck(reg, w.Check); want != "" {
			return &WaiverError{Index: i, Field: "check", Got: strconv.Quote(w.Check), Want: want}
		}
		if w.Expires > last {
			return &WaiverError{Index: i, Field: "expires", Got: strconv.Quote(w.Expires), Want: fmt.Sprintf("at most %s, a year ahead", last)}
		}
		for j, other := range ws[:i] {
			if other.sameAs(w) {
				return &WaiverError{Index: i, Got: "what waivers[" + strconv.Itoa(j) + "] waives", Want: "each check, case and probe once"}
			}
		}
	}
	return nil
}

// sameAs reports whether two waivers are for the same findings.
func (w Waiver) sameAs(o Waiver) bool {
	return w.Check == o.Check && w.Case == o.Case && w.Probe == o.Probe
}

// covers reports whether the waiver is for a finding at a place.
func (w Waiver) covers(p engine.Probe) bool { return w.Probe == "" || w.Probe == string(p) }

// waive marks the failures that the waivers accept, and fills Report.Waivers. A failure
// with findings at several places is waived when each of them is.
func (r *Report) waive(ws []Waiver, today time.Time) {
	day := today.UTC().Format(time.DateOnly)
	r.Waivers = nil
	for _, w := range ws {
		use := WaiverUse{Waiver: w}
		if w.Expires < day {
			use.Problem = "expired: its last day was " + w.Expires
		}
		r.Waivers = append(r.Waivers, use)
	}
	for i := range r.Checks {
		if c := &r.Checks[i]; c.Side == SideCandidate && (c.Status == Fail || c.Status == Error) {
			r.waiveResult(c)
		}
	}
	if r.Shard == nil {
		for i := range r.Waivers {
			u := &r.Waivers[i]
			_, has := r.Cases[u.Case]
			settleUnused(u, has || len(r.Cases) == 0) // without a readable candidate none are known
		}
	}
	for _, u := range r.Waivers {
		if u.Problem != "" {
			r.Notes = append(r.Notes, fmt.Sprintf("the waiver of %s on case %s is %s", u.Check, u.Case, u.Problem))
		}
	}
	waived := slices.ContainsFunc(r.Checks, func(c Result) bool { return c.Waived != nil })
	r.SourceWaived = waived && len(r.Failures()) == 0 && (r.FirstBadRow != nil || r.Source != nil)
	if r.SourceWaived {
		r.Notes = append(r.Notes, "the source is that of failures which are waived")
	}
}

// waiveResult marks one failure if the waivers that hold cover all of it.
func (r *Report) waiveResult(c *Result) {
	var used []int
	covered := make([]bool, len(c.Findings))
	for i, u := range r.Waivers {
		if u.Problem != "" || u.Check != c.ID || u.Case != c.Case {
			continue
		}
		hits := u.Probe == ""
		for k, f := range c.Findings {
			if u.covers(f.Probe) {
				covered[k], hits = true, true
			}
		}
		if hits {
			used = append(used, i)
		}
	}
	if len(used) == 0 || slices.Contains(covered, false) {
		r.waivedInPart(c, used, covered)
		return
	}
	for _, i := range used {
		r.Waivers[i].Used++
	}
	w := r.Waivers[used[0]].Waiver
	c.Waived = &w
}

// waivedInPart says of waivers which cover a part of a failure alone what they don't:
// the failure stays one, and that is no reason to call them unused.
func (r *Report) waivedInPart(c *Result, used []int, covered []bool) {
	var rest []string
	for k, f := range c.Findings {
		if at := cmp.Or(string(f.Probe), "no place in particular"); !covered[k] && !slices.Contains(rest, at) {
			rest = append(rest, at)
		}
	}
	for _, i := range used {
		r.Waivers[i].Problem = "too narrow: the check failed there, and also at " + strings.Join(rest, ", ")
	}
}

// settleUnused says of a waiver that waived nothing why it makes the run fail. It is for
// a whole run: a shard has not all cases, and leaves it to the merge, which settles the
// results of all shards together (see settle).
func settleUnused(u *WaiverUse, hasCase bool) {
	switch {
	case u.Used > 0 || u.Problem != "":
	case u.Case != "*" && !hasCase:
		u.Problem = "unused: the run has no such case"
	default:
		u.Problem = "unused: nothing failed that it is for"
	}
}
