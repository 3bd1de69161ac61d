package conformance

import "slices"

// judging is where outcomes come from: from the evidence in a run, from the shards
// where they are merged.
type judging struct {
	// candidate is true when there is one.
	candidate bool
	// judge gives the outcome on one case; false where there is none.
	judge func(ev *Evidence, side Side) (Outcome, bool)
	// across gives the outcome over all cases, nil where there is none.
	across func(run *RunEvidence) *Outcome
}

// runCheck adds what a check says of every case and side, and over all cases.
func (r *Report) runCheck(c *Check, run *RunEvidence, from judging) {
	add := func(name string, side Side, o Outcome) {
		res := Result{ID: c.ID, Case: name, Side: side, Level: c.Level,
			Status: o.Status, Kind: o.Kind, Reason: o.Reason, Findings: o.Findings}
		if o.Status == Fail || o.Status == Error {
			res.Rule = c.Rule
		}
		r.Checks = append(r.Checks, res)
	}
	for _, side := range c.Sides {
		if side == SideSuite || c.Judge == nil || (side == SideCandidate && !from.candidate) {
			continue
		}
		for _, ev := range run.Cases {
			if o, ok := from.judge(ev, side); ok {
				add(ev.Case.Name, side, o)
			}
		}
	}
	side := acrossSide(c)
	if from.across == nil || (side == SideCandidate && !from.candidate) {
		return
	}
	if o := from.across(run); o != nil {
		add("*", side, *o)
	}
}

// acrossSide is whom a check judges over all cases.
func acrossSide(c *Check) Side {
	switch {
	case c.judges(SideSuite):
		return SideSuite
	case c.judges(SideCandidate):
		return SideCandidate
	}
	return SideReference
}

// outcome is what a check says of a case; false for one that it doesn't look at.
func (r *Report) outcome(cfg *Config, c *Check, ev *Evidence, side Side) (Outcome, bool) {
	if o := skipOf(cfg.Skip, c.ID, ev.Case.Name); o != nil && side == SideCandidate {
		return *o, true
	}
	switch {
	case side == SideReference && !ev.referenceJudged:
		return Outcome{}, false
	case side == SideCandidate && ev.CandidateErr != nil && r.unanswered(ev.Case.Name):
		return skip("no readable answer to this case"), true
	case side == SideCandidate && ev.CandidateErr != nil: // said once, by the first check
		return answerError(ev.CandidateErr), true
	}
	return c.Judge(ev, side), true
}

// unanswered reports whether the case's missing answer was reported already.
func (r *Report) unanswered(name string) bool {
	return slices.ContainsFunc(r.Checks, func(c Result) bool {
		return c.Case == name && c.Side == SideCandidate && (c.Status == Error || c.Status == Unsupported)
	})
}
