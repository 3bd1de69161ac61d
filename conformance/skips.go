package conformance

import (
	"fmt"
	"slices"

	"github.com/plumbline-go/plumbline/engine"
)

// CheckSkip leaves a check of the candidate out on purpose. A Core check that is left out,
// of one case or of all, makes the verdict partial at best.
type CheckSkip struct {
	Check string `json:"check"`
	// Case is one case, "*" the verdict over all of them; empty leaves the check out
	// everywhere.
	Case   string `json:"case,omitempty"`
	Reason string `json:"reason"`
}

// skipped begins the reason of a result that a CheckSkip made.
const skipped = "skipped on request: "

// leftOutByOnly is the reason of what Config.Only left out.
const leftOutByOnly = "left out by Only (--only)"

// leftOut lists the registry's checks that are not among those to run.
func leftOut(reg *Registry, run []*Check) []CheckSkip {
	var out []CheckSkip
	for _, c := range reg.Checks() {
		if !slices.Contains(run, c) {
			out = append(out, CheckSkip{Check: c.ID, Reason: leftOutByOnly})
		}
	}
	return out
}

// covers reports whether the check is left out of the case.
func (s CheckSkip) covers(id, name string) bool {
	return s.Check == id && (s.Case == "" || s.Case == name)
}

// skipOf returns the outcome of a check that is left out of a case, nil for any other.
func skipOf(skips []CheckSkip, id, name string) *Outcome {
	for _, s := range skips {
		if s.covers(id, name) {
			o := skip(skipped + s.Reason)
			return &o
		}
	}
	return nil
}

// checkSkips refuses what would leave out nothing, or what may not be left out.
func (c *Config) checkSkips(reg *Registry, cases []engine.Case) error {
	for i, s := range c.Skip {
		bad := func(field, got, want string) error {
			return fmt.Errorf("conformance: skips[%d].%s: got %s, want %s", i, field, got, want)
		}
		if want := candidateCheck(reg, s.Check); want != "" {
			return bad("check", fmt.Sprintf("%q", s.Check), want)
		}
		if blank(s.Reason) {
			return bad("reason", fmt.Sprintf("%q", s.Reason), "a reason")
		}
		if s.Case != "" && s.Case != "*" && !slices.ContainsFunc(cases, func(c engine.Case) bool { return c.Name == s.Case }) {
			return bad("case", fmt.Sprintf("%q", s.Case), `a case of the run, "*" for the verdict over all cases, or nothing`)
		}
	}
	return nil
}

// unlessSkipped is what a check says over all cases, or that it is left out there.
func unlessSkipped(skips []CheckSkip, c *Check, across func(*RunEvidence) *Outcome) func(*RunEvidence) *Outcome {
	if across == nil || acrossSide(c) != SideCandidate {
		return across
	}
	return func(run *RunEvidence) *Outcome {
		if o := skipOf(skips, c.ID, "*"); o != nil {
			return o
		}
		return across(run)
	}
}
