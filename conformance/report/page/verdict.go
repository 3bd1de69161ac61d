package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
)

// verdict is the banner.
type verdict struct {
	status
	// Lead is one sentence: what the conclusion means here.
	Lead string
	// Source says where, Place the same in words; empty where nothing is at fault.
	Source, Place string
	Facts         []fact
	Why           *why
	Problems      []string
	Waived        int
	Shard         string
	Reproduce     string
}

// why is the finding that the verdict rests on.
type why struct {
	finding
	Reason string
	More   int // results of the check that failed
	Anchor string
	File   string
}

func verdictOf(r *conformance.Report) verdict {
	v := verdict{status: conclusionOf(r.Conclusion), Reproduce: r.Reproduce}
	if r.Source != nil {
		v.Source, v.Place = string(*r.Source), placeText(*r.Source)
	}
	v.Facts = factsOf(r)
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
		v.Shard = fmt.Sprintf("shard %d of %d (index %d): %d of %s, so the verdict is on a part of the run", s.Index+1, s.Total, s.Index, len(r.Cases), plural(s.AllCases, "case"))
	}
	return v
}

// factsOf are where the fault is or, without one, how much was judged.
func factsOf(r *conformance.Report) []fact {
	if r.FirstBadRow == nil && r.Source == nil && (r.Kind == nil || *r.Kind == "") {
		judged := 0
		for _, c := range r.Cases {
			if c.Judged {
				judged++
			}
		}
		return []fact{{Name: "Cases judged by value", Value: fmt.Sprintf("%d of %d", judged, len(r.Cases))},
			{Name: "Verdicts of checks", Value: thousands(r.Executed)},
			{Name: "Core checks judged nowhere", Value: fmt.Sprint(len(r.NotJudged))}}
	}
	source, row, position, kind := fact{Name: "Source, the most upstream", Value: "none"}, fact{Name: "First bad row", Value: "none"}, fact{Name: "First bad position", Value: "not known"}, fact{Name: "Kind", Value: "none"}
	if r.Source != nil {
		source.Value, source.Code = string(*r.Source), true
	}
	if r.FirstBadRow != nil {
		row.Value = fmt.Sprintf("%d (%s)", *r.FirstBadRow, engine.RowProbe(*r.FirstBadRow))
	}
	if r.FirstBadPosition != nil {
		position.Value = fmt.Sprint(*r.FirstBadPosition)
	}
	if r.Kind != nil && *r.Kind != "" {
		kind.Value = visible(string(*r.Kind), 40)
		if t := kindText(*r.Kind); t != "" {
			kind.Value += ": " + t
		}
	}
	out := []fact{source, row, position, kind}
	for _, s := range r.Sources {
		if r.Source == nil || s != *r.Source {
			out = append(out, fact{Name: "Further source", Value: string(s), Code: true})
		}
	}
	return out
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
		var ids []string
		for _, n := range r.NotJudged {
			ids = append(ids, name(n.ID))
		}
		if len(ids) == 0 {
			return "Nothing failed, but the run was restricted to some checks: see the notes."
		}
		where := "judged nowhere"
		if slices.ContainsFunc(r.NotJudged, func(n conformance.NotJudged) bool { return n.Case != "" }) {
			where = "judged nowhere, or left out of a case on request"
		}
		return fmt.Sprintf("Nothing failed, but %s %s: %s. Below it says what would make them run.", was(len(r.NotJudged), "core check"), where, strings.Join(ids, ", "))
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
			all = append(all, candidate{res: res, f: worstOf(res), rank: 4})
			continue
		}
		best := candidate{res: res, rank: 9}
		for i := range res.Findings {
			f := &res.Findings[i]
			c := candidate{res, f, 6, excess(*f)}
			switch {
			case r.Source != nil && f.Probe == *r.Source:
				c.rank = 0
			case r.FirstBadRow != nil && f.At.Row == *r.FirstBadRow:
				c.rank = 2
			}
			if res.Case == "*" {
				c.rank++ // a median names no case
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
