package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/plumbline-go/plumbline/conformance"
)

// Markdown writes a report for a comment on a pull request, or for a step's summary: in
// GitHub's dialect, below the length of a comment. What doesn't fit is left out whole,
// and said. Names and messages are shown as text, whatever they hold: they mention
// nobody, link nowhere and are no element.
func Markdown(w io.Writer, r *conformance.Report) error {
	if _, err := io.WriteString(w, markdown(r, maxMarkdown)); err != nil {
		return fmt.Errorf("report: markdown: %w", err)
	}
	return nil
}

func markdown(r *conformance.Report, most int) string {
	end := reproduceBlock(r)
	p := newSheet(most - len(end))
	p.block(headline(r))
	half := func() int { return p.left / 2 }
	p.rows(half(), "failing checks", header("Failing checks", "check", "cases", "worst case", "place", "what", "got", "limit"), failureRows(r), "")
	p.rows(half(), "failures of the reference", header("The reference itself fails", "check", "case", "what"), referenceRows(r), "")
	p.rows(half(), "waivers", header("Waivers", "check", "case", "until", "reason", "results", "problem"), waiverRows(r), "")
	p.rows(half(), "regressions", header("Worse than the baseline", changeHeads...), changeRows(baselineOf(r).Regressions), "")
	p.rows(half(), "cases", header("First breach of each case", "case", "first bad row", "source", "position", "why not judged"), breachRows(r), "")
	p.rows(half(), "Core checks", header("Core checks that were not judged", "check", "would run with"), notJudgedRows(r), "")
	p.rows(half(), "improvements", header("Better than the baseline", changeHeads...), changeRows(baselineOf(r).Improvements), "")
	details := func(summary string) string { return "\n<details><summary>" + summary + "</summary>\n\n" }
	p.rows(half(), "rules", details("The rules that were broken"), bullets(rulesOf(r.Failures())), "\n</details>\n")
	p.rows(half(), "notes", details("Notes"), bullets(r.Notes), "\n</details>\n")
	p.rows(half(), "lines", details("What was judged, and what these dumps can't show"), bullets(powerLines(r)), "\n</details>\n")
	p.rows(half(), "lines", details("Who was judged, by what"), bullets(provenance(r)), "\n</details>\n")
	return p.b.String() + end
}

// headline is the verdict and its source.
func headline(r *conformance.Report) string {
	var b strings.Builder
	title := "## Plumbline: " + prose(string(r.Conclusion), nameLength)
	if source, place := placeOf(r); source != "" {
		title += ", source " + code(source, nameLength)
	} else if place != "" {
		title += " " + place
	}
	fmt.Fprintf(&b, "%s\n\n", title)
	var facts []string
	if r.FirstBadRow != nil {
		facts = append(facts, "first bad row "+code(conformance.AtRow(*r.FirstBadRow).String(), nameLength))
	}
	if r.FirstBadPosition != nil {
		facts = append(facts, fmt.Sprintf("first bad position %d", *r.FirstBadPosition))
	}
	if r.Kind != nil {
		facts = append(facts, "kind "+prose(string(*r.Kind), nameLength))
	}
	if n := len(r.Sources) - 1; n > 0 {
		var further []string
		for _, s := range r.Sources[1:min(len(r.Sources), 6)] {
			further = append(further, code(string(s), nameLength))
		}
		if n > 5 {
			further = append(further, fmt.Sprintf("%d more", n-5))
		}
		facts = append(facts, "further sources "+strings.Join(further, ", "))
	}
	facts = append(facts, "checks: "+tally(r))
	fmt.Fprintf(&b, "%s.\n", strings.Join(facts, " · "))
	if r.ReferenceFailed {
		b.WriteString("\nThe reference failed a check of its own: no verdict can be trusted.\n")
	}
	if s := r.Shard; s != nil {
		fmt.Fprintf(&b, "\nShard %d of %d (index %d): %d of %s. `plumbline merge` gives the verdict over all.\n", s.Index+1, s.Total, s.Index, len(r.Cases), plural(s.AllCases, "case"))
	}
	return b.String()
}

// failureRows has a row per failing check, worst first, and one per missing answer.
func failureRows(r *conformance.Report) []string {
	var out []string
	for _, f := range failures(r) {
		status, place, got, limit, what := "", "", "", "", prose(f.worst.Reason, 300)
		if f.worst.Status == conformance.Error {
			status = "no answer"
		} else {
			status = f.where(len(r.Cases))
		}
		if x := shownFinding(f.worst); x != nil {
			place, what = code(string(x.Probe), nameLength), prose(strings.TrimSuffix(x.Metric+": "+x.Detail, ": "), 300)
			got, limit = fmt.Sprintf("%.4g", float64(x.Got)), fmt.Sprintf("%.4g", float64(x.Limit.Value))+prose(" ("+x.Limit.Source+")", 200)
		}
		id := code(f.worst.ID, nameLength)
		if f.worst.Level == conformance.Provisional {
			id += " (provisional)"
		}
		out = append(out, cells(id, status, code(caseLabel(f.worst.Case), nameLength), place, what, got, limit))
	}
	return out
}

func referenceRows(r *conformance.Report) []string {
	var out []string
	for _, c := range r.Checks {
		if c.Side == conformance.SideReference && bad(c) {
			out = append(out, cells(code(c.ID, nameLength), code(caseLabel(c.Case), nameLength), prose(findingText(c), 400)))
		}
	}
	return out
}

func waiverRows(r *conformance.Report) []string {
	var out []string
	for _, w := range r.Waivers {
		where := code(waivedCase(w.Case), nameLength)
		if w.Probe != "" {
			where += " " + code(w.Probe, nameLength)
		}
		out = append(out, cells(code(w.Check, nameLength), where, prose(w.Expires, 20), prose(w.Reason, 300), fmt.Sprint(w.Used), prose(w.Problem, 300)))
	}
	return out
}

func baselineOf(r *conformance.Report) conformance.BaselineInfo {
	if r.Baseline == nil {
		return conformance.BaselineInfo{}
	}
	return *r.Baseline
}

var changeHeads = []string{"check", "case", "place", "figure", "before", "now", "limit"}

func changeRows(changes []conformance.Change) []string {
	var out []string
	for _, g := range grouped(changes) {
		c := g.first
		if g.coverage {
			out = append(out, cells(code(c.Check, nameLength), prose(g.where(), nameLength), code(c.Probe, nameLength), prose(c.Metric+": "+c.Detail, 200), "", "", ""))
			continue
		}
		out = append(out, cells(code(c.Check, nameLength), code(waivedCase(c.Case), nameLength), code(c.Probe, nameLength), prose(c.Metric, nameLength),
			fmt.Sprintf("%.4g", float64(c.Before)), fmt.Sprintf("%.4g", float64(c.After)), fmt.Sprintf("%.4g", float64(c.Limit.Value))))
	}
	return out
}

// breachRows has the cases with a bad row first, the most upstream before others, then
// those that were not judged.
func breachRows(r *conformance.Report) []string {
	names := slices.Sorted(maps.Keys(r.Cases))
	at := func(name string) int {
		switch v := r.Cases[name]; {
		case v.FirstBadRow != nil:
			return *v.FirstBadRow
		case v.Source != nil:
			return 1 << 30 // the head: behind every row
		}
		return 1 << 31
	}
	slices.SortStableFunc(names, func(a, b string) int { return at(a) - at(b) })
	var out []string
	for _, name := range names {
		v := r.Cases[name]
		if v.FirstBadRow == nil && v.Source == nil && v.Judged {
			continue
		}
		row, source, position := "none", "", ""
		if v.FirstBadRow != nil {
			row = fmt.Sprint(*v.FirstBadRow)
		}
		if v.Source != nil {
			source = code(string(*v.Source), nameLength)
		}
		if v.FirstBadPosition != nil {
			position = fmt.Sprint(*v.FirstBadPosition)
		}
		out = append(out, cells(code(caseLabel(name), nameLength), row, source, position, prose(v.Reason, 300)))
	}
	return out
}

func notJudgedRows(r *conformance.Report) []string {
	var out []string
	for _, n := range r.NotJudged {
		out = append(out, cells(code(n.ID, nameLength), prose(n.WouldRun, 500)))
	}
	return out
}

func powerLines(r *conformance.Report) []string {
	var out []string
	out = append(out, logitLines(r.Logits)...)
	out = append(out, r.Power...)
	for _, l := range notOffered(r) {
		out = append(out, "not judged: "+l)
	}
	if b := r.Baseline; b != nil {
		out = append(out, baselineLines(b)[0])
	}
	return out
}

func bullets(lines []string) []string {
	var out []string
	for _, l := range lines {
		out = append(out, "- "+prose(l, 600)+"\n")
	}
	return out
}

// reproduceBlock ends every page; a command too long to be copied is not cut, but left
// out.
func reproduceBlock(r *conformance.Report) string {
	if r.Reproduce == "" {
		return ""
	}
	line := printable(r.Reproduce, len(r.Reproduce)*4)
	if len(line) > 8000 {
		return fmt.Sprintf("\nThe command that repeats this has %d characters; the report's JSON has it.\n", len(line))
	}
	return "\n### Reproduce\n\n" + fence(line)
}
