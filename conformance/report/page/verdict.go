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
	// At is the place in the headline, In what is there where one place would be
	// wrong; Place is At in words. All are empty where nothing is at fault.
	At, In, Place string
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
	// Also says where else the check failed.
	Also   string
	Anchor string
	File   string
}

func verdictOf(r *conformance.Report) verdict {
	v := verdict{status: conclusionOf(r.Conclusion), Reproduce: r.Reproduce}
	v.At, v.In, v.Place = whereIn(r)
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
			v.Problems = append(v.Problems, fmt.Sprintf("waiver of %s, %s: %s", name(w.Check), waiverCase(w.Case), sentence(w.Problem)))
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

// whereIn is what the headline says of the place of a failure. Not every kind has one
// place: where all layers are wrong the source is only the first of them.
func whereIn(r *conformance.Report) (at, in, place string) {
	if r.Conclusion != conformance.Fails {
		return "", "", "" // a source that is waived is among the facts
	}
	switch kind := kindOf(r); {
	case kind == conformance.KindAllLayers:
		return "", "in all layers", ""
	case kind == conformance.KindDump && r.FirstBadRow != nil:
		return "", fmt.Sprintf("in row %d of the dump", *r.FirstBadRow), ""
	case kind == conformance.KindDump:
		return "", "in the dump", ""
	case r.Source != nil:
		return string(*r.Source), "", placeText(*r.Source)
	}
	return "", "", ""
}

func kindOf(r *conformance.Report) conformance.Kind {
	if r.Kind == nil {
		return ""
	}
	return *r.Kind
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
			{Name: "Core checks not judged", Value: fmt.Sprint(len(r.NotJudged))}}
	}
	source, row, position, kind := fact{Name: "Source, the most upstream", Value: "none"}, fact{Name: "First bad row", Value: "none"}, fact{Name: "First bad position", Value: "not known"}, fact{Name: "Kind", Value: "none"}
	if r.Source != nil {
		source.Value, source.Code = string(*r.Source), true
	}
	switch kind := kindOf(r); {
	case kind == conformance.KindAllLayers:
		source.Name = "First of the sources"
	case r.SourceWaived:
		source.Name = "Source, waived"
	case r.FirstBadRow == nil:
		position.Value = "none"
	}
	if r.FirstBadRow != nil && lastRowsOnly(r) {
		position.Value = "not known: last rows only"
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
		if kindOf(r) != conformance.KindDump && (r.Source == nil || s != *r.Source) {
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
		return fmt.Sprintf("%s of the candidate failed.%s", plural(len(failing), "check"), kindSentence(r))
	case r.Conclusion == conformance.Fails:
		return "No check failed by itself; what makes the run fail is listed here."
	case r.Conclusion == conformance.NothingJudged:
		return "No check of the candidate came to a verdict."
	}
	return ""
}

// kindSentence says what the kind of a failure means, where the place doesn't.
func kindSentence(r *conformance.Report) string {
	kind := kindOf(r)
	switch kind {
	case conformance.KindAllLayers:
		s := " Every layer introduces error"
		if r.Source != nil {
			if n, _, ok := r.Source.Block(); ok {
				s += fmt.Sprintf("; the first is layer %d", n)
			}
		}
		return s + "."
	case conformance.KindDump, conformance.KindInput, conformance.KindFormat, conformance.KindProvenance:
		t := kindText(kind)
		return " " + strings.ToUpper(t[:1]) + t[1:] + "."
	}
	return ""
}

// lastRows is whether a case was judged at its last position alone.
func lastRows(v conformance.CaseVerdict) bool {
	return len(v.Probes) == 0 && !slices.ContainsFunc(v.Depth, func(d conformance.DepthRow) bool { return d.LocalAllPositions })
}

// lastRowsOnly is whether no case was judged at every position.
func lastRowsOnly(r *conformance.Report) bool {
	for _, v := range r.Cases {
		if !lastRows(v) {
			return false
		}
	}
	return len(r.Cases) > 0
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
	w.Also = alsoFails(r, top.res)
	return w
}

// alsoFails says on how many cases a check fails beside one, and whether over all of
// them too.
func alsoFails(r *conformance.Report, shown conformance.Result) string {
	cases, across := map[string]bool{}, false
	for _, res := range blamed(r) {
		switch {
		case res.ID != shown.ID:
		case res.Case == "*":
			across = true
		default:
			cases[res.Case] = true
		}
	}
	switch n := fmt.Sprintf("%d of %s", len(cases), plural(len(r.Cases), "case")); {
	case len(cases) > 0 && across:
		return "it fails on " + n + ", and over all cases"
	case len(cases) > 1:
		return "it fails on " + n
	}
	return ""
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

// waiverCase is what a waiver is for: "*" is the verdict over all cases, and no case's.
func waiverCase(s string) string {
	if s == "*" {
		return "over all cases"
	}
	return "case " + name(s)
}
