package page

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
)

// verdict is the banner.
type verdict struct {
	status
	// Lead is one sentence: what the conclusion means here.
	Lead string
	// Source, Layer and Part say where; empty where nothing is at fault.
	Source, Place  string
	Further        []string
	Row, Position  string
	Kind, KindText string
	Why            *why
	Problems       []string
	Waived         int
	Shard          string
	Reproduce      string
}

// why is the finding that the verdict rests on.
type why struct {
	finding
	Reason string
	More   int // findings like it
	File   string
}

func verdictOf(r *conformance.Report) verdict {
	v := verdict{status: conclusionOf(r.Conclusion), Reproduce: r.Reproduce}
	if r.FirstBadRow != nil {
		v.Row = fmt.Sprintf("%d (%s)", *r.FirstBadRow, engine.RowProbe(*r.FirstBadRow))
	}
	if r.FirstBadPosition != nil {
		v.Position = fmt.Sprint(*r.FirstBadPosition)
	}
	if r.Kind != nil && *r.Kind != "" {
		v.Kind, v.KindText = visible(string(*r.Kind), 40), kindText(*r.Kind)
	}
	if r.Source != nil {
		v.Source, v.Place = string(*r.Source), placeText(*r.Source)
	}
	for _, s := range r.Sources {
		if r.Source == nil || s != *r.Source {
			v.Further = append(v.Further, string(s))
		}
	}
	v.Why = whyOf(r)
	v.Lead = leadOf(r)
	for _, c := range r.Checks {
		if c.Waived != nil {
			v.Waived++
		}
	}
	for _, w := range r.Waivers {
		if w.Problem != "" {
			v.Problems = append(v.Problems, fmt.Sprintf("waiver of %s, case %s: %s", name(w.Check), caseName(w.Case), sentence(w.Problem)))
		}
	}
	if b := r.Baseline; b != nil && len(b.Regressions) > 0 {
		v.Problems = append(v.Problems, fmt.Sprintf("%s against the baseline %s", plural(len(b.Regressions), "regression"), name(b.Name)))
	}
	if s := r.Shard; s != nil {
		v.Shard = fmt.Sprintf("shard %d of %d: %d of %s, so the verdict is on a part of the run", s.Index+1, s.Total, len(r.Cases), plural(s.AllCases, "case"))
	}
	return v
}

func leadOf(r *conformance.Report) string {
	failing := map[string]bool{}
	for _, f := range r.Failures() {
		failing[f.ID] = true
	}
	switch {
	case r.ReferenceFailed:
		return "The reference itself failed a check, so no verdict on the candidate can be trusted."
	case r.Conclusion == conformance.Conforms:
		return "Every core check was judged and passed wherever it applied."
	case r.Conclusion == conformance.Partial:
		return fmt.Sprintf("Nothing failed, and %s judged nowhere: see what would make them run.", was(len(r.NotJudged), "core check"))
	case r.Conclusion == conformance.Fails && len(failing) > 0:
		return fmt.Sprintf("%s of the candidate failed.", plural(len(failing), "check"))
	case r.Conclusion == conformance.Fails:
		return "No check failed by itself; what makes the run fail is listed here."
	case r.Conclusion == conformance.NothingJudged:
		return "No check of the candidate came to a verdict."
	}
	return ""
}

func was(n int, noun string) string {
	if n == 1 {
		return plural(n, noun) + " was"
	}
	return plural(n, noun) + " were"
}

// placeText is a place in words.
func placeText(p engine.Probe) string {
	switch p {
	case engine.ProbeEmbed:
		return "the embedding, before layer 0"
	case engine.ProbeFinalNorm:
		return "the final norm, behind the last layer"
	case engine.ProbeLogits:
		return "the output projection"
	}
	n, part, ok := p.Block()
	if !ok {
		return ""
	}
	if part == engine.PartResidPost {
		return fmt.Sprintf("decoder layer %d", n)
	}
	return fmt.Sprintf("decoder layer %d, at %s", n, part)
}

// whyOf picks what the verdict rests on: of the failures, those at the source first,
// then those in the first bad row, then the worst.
func whyOf(r *conformance.Report) *why {
	type candidate struct {
		res  conformance.Result
		f    *conformance.Finding
		rank int
		x    float64
	}
	var all []candidate
	for _, res := range blamed(r) {
		if len(res.Findings) == 0 || res.Status == conformance.Error {
			all = append(all, candidate{res: res, f: worstOf(res), rank: 3})
			continue
		}
		best := candidate{res: res, rank: 9}
		for i := range res.Findings {
			f := &res.Findings[i]
			c := candidate{res, f, 4, excess(*f)}
			switch {
			case r.Source != nil && f.Probe == *r.Source:
				c.rank = 0
			case r.FirstBadRow != nil && f.At.Row == *r.FirstBadRow:
				c.rank = 1
			case res.Case == "*":
				c.rank = 5 // a median names no case
			}
			if c.rank < best.rank || c.rank == best.rank && c.x > best.x {
				best = c
			}
		}
		all = append(all, best)
	}
	if len(all) == 0 {
		return nil
	}
	top := slices.MinFunc(all, func(a, b candidate) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(b.x, a.x)) })
	w := &why{Reason: top.res.Reason}
	w.finding = finding{Check: top.res.ID, Case: top.res.Case, Status: statusOf(top.res.Status)}
	if top.f != nil {
		w.finding, w.File = lineOf(top.res, *top.f), top.f.At.File
	}
	for _, res := range blamed(r) {
		if res.ID == top.res.ID {
			w.More++
		}
	}
	return w
}

// blamed are the failures that the verdict is about: the reference's own where it
// failed, else the candidate's.
func blamed(r *conformance.Report) []conformance.Result {
	if !r.ReferenceFailed {
		return r.Failures()
	}
	var out []conformance.Result
	for _, c := range r.Checks {
		if c.Side == conformance.SideReference && (c.Status == conformance.Fail || c.Status == conformance.Error) {
			out = append(out, c)
		}
	}
	return out
}

func caseName(s string) string {
	if s == "*" {
		return "all cases"
	}
	return name(s)
}
