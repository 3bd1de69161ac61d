package page

import (
	"fmt"

	"github.com/plumbline-go/plumbline/conformance"
)

// coverage is what was looked at, and what can't be seen with it.
type coverage struct {
	Cases, Judged int
	NotJudged     []unjudgedCase
	// Sides have the outcomes of the checks, for each side that has some.
	Sides    []sideTally
	Power    []string
	Core     []conformance.NotJudged
	Extended []conformance.NotJudged
	Features []string
	Waivers  []conformance.WaiverUse
	Baseline *baseline
}

type unjudgedCase struct{ Case, Reason string }

// maxUnjudged is how many cases without values are listed.
const maxUnjudged = 20

type sideTally struct {
	Side   string
	Counts []tallyCount
}

type tallyCount struct {
	Status status
	N      int
}

type baseline struct {
	*conformance.BaselineInfo
	Changes []change
	Left    int
}

type change struct {
	conformance.Change
	Worse bool
}

const maxChanges = 200

func coverageOf(r *conformance.Report, names []string) coverage {
	c := coverage{Cases: len(r.Cases), Power: r.Power, Core: r.NotJudged, Waivers: r.Waivers}
	for _, n := range names {
		v := r.Cases[n]
		if v.Judged {
			c.Judged++
		} else if len(c.NotJudged) < maxUnjudged {
			c.NotJudged = append(c.NotJudged, unjudgedCase{n, v.Reason})
		}
	}
	for _, side := range []conformance.Side{conformance.SideCandidate, conformance.SideReference, conformance.SideSuite} {
		counts := map[conformance.Status]int{}
		all := 0
		for _, res := range r.Checks {
			if res.Side == side {
				counts[res.Status]++
				all++
			}
		}
		if all == 0 && side != conformance.SideCandidate {
			continue
		}
		t := sideTally{Side: sideText(side)}
		for _, s := range []conformance.Status{conformance.Pass, conformance.Fail, conformance.Error, conformance.Unsupported, conformance.Skip} {
			t.Counts = append(t.Counts, tallyCount{statusOf(s), counts[s]})
		}
		c.Sides = append(c.Sides, t)
	}
	c.Extended = notOffered(r)
	for _, f := range r.Features {
		c.Features = append(c.Features, string(f))
	}
	if b := r.Baseline; b != nil {
		c.Baseline = &baseline{BaselineInfo: b}
		for i, list := range [][]conformance.Change{b.Regressions, b.Improvements} {
			for _, ch := range list {
				if len(c.Baseline.Changes) == maxChanges {
					c.Baseline.Left++
					continue
				}
				c.Baseline.Changes = append(c.Baseline.Changes, change{ch, i == 0})
			}
		}
	}
	return c
}

func sideText(s conformance.Side) string {
	switch s {
	case conformance.SideCandidate:
		return "candidate"
	case conformance.SideReference:
		return "reference"
	case conformance.SideSuite:
		return "suite"
	}
	return name(string(s))
}

// notOffered are the checks beside the Core ones that judged the candidate nowhere,
// with the first reason.
func notOffered(r *conformance.Report) []conformance.NotJudged {
	judged := map[string]bool{}
	for _, n := range r.NotJudged {
		judged[n.ID] = true // said already
	}
	for _, c := range r.Checks {
		if c.Side == conformance.SideCandidate && c.Status != conformance.Unsupported && c.Status != conformance.Skip {
			judged[c.ID] = true
		}
	}
	var out []conformance.NotJudged
	for _, c := range r.Checks {
		if c.Side == conformance.SideCandidate && !judged[c.ID] && c.Reason != "" {
			judged[c.ID] = true
			out = append(out, conformance.NotJudged{ID: c.ID, WouldRun: c.Reason})
		}
	}
	return out
}

func (c coverage) Summary() string {
	return fmt.Sprintf("%d of %s gave values that were judged.", c.Judged, plural(c.Cases, "case"))
}
