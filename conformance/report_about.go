package conformance

import (
	"runtime"
	"runtime/debug"

	"github.com/plumbline-go/plumbline/golden"
)

// CheckInfo describes a check that ran, so that whoever reads the report needs no
// other source for its rule.
type CheckInfo struct {
	ID      string   `json:"id"`
	Rule    string   `json:"rule"`
	Catches []string `json:"catches"`
	Level   Level    `json:"level"`
	Sides   []Side   `json:"sides"`
	// Controls are the names of the planted faults that the check is shown to fail
	// on.
	Controls []string `json:"controls"`
}

func infoOfCheck(c *Check) CheckInfo {
	out := CheckInfo{ID: c.ID, Rule: c.Rule, Catches: append([]string{}, c.Catches...), Level: c.Level, Sides: append([]Side{}, c.Sides...), Controls: []string{}}
	for _, k := range c.Controls {
		out.Controls = append(out.Controls, k.Mutant)
	}
	return out
}

// DepthBounds are the bounds on the ratios of DepthRow, candidate's error over
// yardstick's: Median holds for the profile of medians, with at least Cases cases,
// Single for one case.
type DepthBounds struct {
	Median Limit `json:"median"`
	Single Limit `json:"single"`
	Cases  int   `json:"median_cases"`
}

func depthBoundsOf(evs []*Evidence) *DepthBounds {
	for _, ev := range evs {
		if ev.Profile == nil {
			continue
		}
		limit := func(b golden.Budget) Limit { return Limit{Number(b.Value), b.Describe()} }
		f := ev.Profile.Factors
		return &DepthBounds{Median: limit(f.Median), Single: limit(f.Single), Cases: MedianCases}
	}
	return nil
}

// GoldenInfo says which recording the reference was held to.
type GoldenInfo struct {
	Name   string `json:"name"`
	Engine string `json:"engine"`
	// Cases is how many cases of the run it has.
	Cases int `json:"cases"`
}

// ToolInfo says what judged.
type ToolInfo struct {
	// Version is the module's version, "(devel)" in a checkout; Revision is the
	// commit, where the build knows it, and Modified tells of changes to it.
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// modulePath is this module's, in a client's build information.
const modulePath = "github.com/plumbline-go/plumbline"

// Tool describes this build of Plumbline.
func Tool() ToolInfo {
	t := ToolInfo{Version: "unknown", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return t
	}
	if info.Main.Path == modulePath {
		t.Version = info.Main.Version
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				t.Revision = s.Value
			case "vcs.modified":
				t.Modified = s.Value == "true"
			}
		}
		if t.Version == "" {
			t.Version = "(devel)"
		}
		return t
	}
	for _, d := range info.Deps {
		if d.Path == modulePath {
			t.Version = d.Version
			if d.Replace != nil {
				t.Version += " (replaced)"
			}
		}
	}
	return t
}

// Times says when a run was and how long it took; nothing else in a report depends on
// the clock or on how fast a machine is.
type Times struct {
	// Started is in RFC 3339, UTC.
	Started string `json:"started"`
	Seconds Number `json:"seconds"`
	// Cases is the time that each case's evidence took, in seconds.
	Cases map[string]Number `json:"cases,omitempty"`
	// Run is the same for work that is no case's, such as "*attention".
	Run map[string]Number `json:"run,omitempty"`
}

// ShardInfo says which part of the cases a report is of.
type ShardInfo struct {
	// Index counts from 0.
	Index int `json:"index"`
	Total int `json:"total"`
	// Plan is a hash over all cases of the run and their distribution: shards of one
	// run have the same.
	Plan string `json:"plan"`
	// AllCases is how many cases the whole run has, Cases how many of them are this
	// shard's.
	AllCases int `json:"all_cases"`
	Cases    int `json:"cases"`
	// Parts are the work that is no case's and that this shard did, such as
	// "*attention".
	Parts []string `json:"parts,omitempty"`
	// Evidence is the SHA-256 of the file that merging needs beside the report.
	Evidence string `json:"evidence"`
}

// Waiver accepts a failure for a while. It names what it is for as closely as it can.
type Waiver struct {
	Check string `json:"check"`
	// Case is the case's name, "*" for the verdict over all cases.
	Case string `json:"case"`
	// Probe, if set, waives findings at this place alone.
	Probe  string `json:"probe,omitempty"`
	Reason string `json:"reason"`
	// Expires is the last day that it holds, as 2006-01-02.
	Expires string `json:"expires"`
}

// WaiverUse is a waiver and what became of it in a run.
type WaiverUse struct {
	Waiver
	// Used is how many results it waived.
	Used int `json:"used"`
	// Problem says why the waiver itself makes the run fail: expired, unused.
	Problem string `json:"problem,omitempty"`
}

// BaselineInfo is what a comparison with an earlier report gave.
type BaselineInfo struct {
	// Name is the baseline's file; Candidate is the version that it was made with.
	Name      string `json:"name"`
	Candidate string `json:"candidate,omitempty"`
	// Noise is the factor by which half of the figures may grow unremarked, NaN where
	// none was compared; NoiseBasis says how that is known.
	Noise        Limit    `json:"noise"`
	NoiseBasis   string   `json:"noise_basis"`
	Compared     int      `json:"compared"`
	Regressions  []Change `json:"regressions"`
	Improvements []Change `json:"improvements"`
}

// Change is one figure beside the baseline's.
type Change struct {
	// Check and Case as in Result, Probe where the figure is of a place.
	Check  string `json:"check"`
	Case   string `json:"case"`
	Probe  string `json:"probe,omitempty"`
	Metric string `json:"metric"`
	Before Number `json:"before"`
	After  Number `json:"after"`
	// Limit is what After may be.
	Limit  Limit  `json:"limit"`
	Detail string `json:"detail,omitempty"`
}

// RouteMargins are the margins of routers, the k-th score minus the next, by what
// became of the choice.
type RouteMargins struct {
	// Name is the set, case or candidate, Router the place; "*" for all together.
	Name   string `json:"name"`
	Router string `json:"router"`
	// Band is the tie band, median over the rows.
	Band Number `json:"band"`
	// Edges are the limits of the bins, one more than bins: margins below Edges[i+1]
	// and not below Edges[i]. Rows below the first or from the last on count in the
	// bin at that end.
	Edges []Number `json:"edges"`
	Match []int    `json:"match"`
	Tie   []int    `json:"tie"`
	Flip  []int    `json:"flip"`
	// Unjudged rows lie behind another choice.
	Unjudged int `json:"unjudged"`
}

// Feature is a part of the contract that a candidate may claim to offer.
type Feature string
