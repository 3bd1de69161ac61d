package main

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/dumpfmt"
)

// gateText is the verdict for people: the source on top, then one line per
// failing check, worst first, then what was seen and how to repeat it.
func gateText(r *conformance.Report) []byte {
	var b bytes.Buffer
	printLine(&b, "conclusion: %s", r.Conclusion)
	if r.FirstBadRow != nil {
		printLine(&b, "first bad row: %s", conformance.AtRow(*r.FirstBadRow).String())
	}
	if r.FirstBadPosition != nil {
		printLine(&b, "first bad position: %d", *r.FirstBadPosition)
	}
	if r.Kind != nil {
		printLine(&b, "kind: %s", *r.Kind)
	}
	for i, s := range r.Sources {
		label := "source"
		if i > 0 {
			label = "further source"
		}
		printLine(&b, "%s: %s", label, s)
	}
	for _, n := range r.Notes {
		printLine(&b, "note: %s", n)
	}
	for _, c := range r.Checks {
		if c.Side == conformance.SideReference && (c.Status == conformance.Fail || c.Status == conformance.Error) {
			fmt.Fprintf(&b, "the reference itself fails %s, %s: %s\n", c.ID, caseLabel(c.Case), findingText(c))
		}
	}
	if lines := failureLines(r); len(lines) > 0 {
		fmt.Fprintln(&b)
		for _, l := range lines {
			printLine(&b, "%s", l)
		}
		fmt.Fprintln(&b)
		for _, rule := range rulesOf(r.Failures()) {
			printLine(&b, "rule: %s", rule)
		}
	}
	fmt.Fprintln(&b)
	printLine(&b, "checks: %s", tally(r))
	for _, l := range notOffered(r) {
		printLine(&b, "not judged: %s", l)
	}
	for _, l := range logitLines(r.Logits) {
		printLine(&b, "%s", l)
	}
	for _, p := range r.Power {
		printLine(&b, "power: %s", p)
	}
	for _, n := range r.NotJudged {
		printLine(&b, "core check not judged: %s (%s)", n.ID, n.WouldRun)
	}
	if r.Reproduce != "" {
		printLine(&b, "reproduce: %s", r.Reproduce)
	}
	return b.Bytes()
}

// failureLines has one line per failing check, with its worst case, and one per
// answer that could not be read, with its file. Worst first.
func failureLines(r *conformance.Report) []string {
	byCheck := map[string][]conformance.Result{}
	var order []string
	var lines []string
	for _, f := range worstFirst(r.Failures()) {
		if f.Status == conformance.Error {
			lines = append(lines, fmt.Sprintf("ERROR %s, %s: %s", f.ID, caseLabel(f.Case), f.Reason))
			continue
		}
		if byCheck[f.ID] == nil {
			order = append(order, f.ID)
		}
		byCheck[f.ID] = append(byCheck[f.ID], f)
	}
	for _, id := range order {
		lines = append(lines, checkLine(id, byCheck[id], len(r.Cases)))
	}
	return lines
}

// checkLine sums up one failing check: how many cases, and the worst finding.
func checkLine(id string, fs []conformance.Result, cases int) string {
	failing, worst := 0, -1
	for i, f := range fs {
		if f.Case == "*" {
			continue
		}
		failing++
		if worst < 0 {
			worst = i
		}
	}
	if worst < 0 { // the medians alone
		return fmt.Sprintf("FAIL  %s, over all cases: %s", id, findingText(fs[0]))
	}
	return fmt.Sprintf("FAIL  %s, %d of %d cases; worst %s: %s", id, failing, cases, dumpfmt.Printable(fs[worst].Case), findingText(fs[worst]))
}

func findingText(r conformance.Result) string {
	if len(r.Findings) == 0 {
		return r.Reason
	}
	text := r.Findings[0].String()
	if n := len(r.Findings) - 1; n > 0 {
		text += fmt.Sprintf(" (and %s)", plural(n, "more row"))
	}
	return text
}

func caseLabel(name string) string {
	if name == "*" {
		return "all cases"
	}
	return dumpfmt.Printable(name)
}

// worstFirst sorts by status (no answer before a wrong one), then by how far
// the first finding is over its limit.
func worstFirst(rs []conformance.Result) []conformance.Result {
	excess := func(r conformance.Result) float64 {
		if len(r.Findings) == 0 || r.Status == conformance.Error {
			return math.Inf(1)
		}
		x := float64(r.Findings[0].Got) / float64(r.Findings[0].Limit.Value)
		if math.IsNaN(x) {
			return math.Inf(1)
		}
		return x
	}
	out := slices.Clone(rs)
	slices.SortStableFunc(out, func(a, b conformance.Result) int { return cmp.Compare(excess(b), excess(a)) })
	return out
}

func rulesOf(rs []conformance.Result) []string {
	var out []string
	for _, r := range rs {
		rule := r.ID + ": " + r.Rule
		if r.Rule != "" && !slices.Contains(out, rule) {
			out = append(out, rule)
		}
	}
	return out
}

// notOffered says why checks judged no case, one line each. The Core ones say it
// themselves.
func notOffered(r *conformance.Report) []string {
	judged, core := map[string]bool{}, map[string]bool{}
	for _, n := range r.NotJudged {
		core[n.ID] = true
	}
	for _, c := range r.Checks {
		if c.Side == conformance.SideCandidate && c.Status != conformance.Unsupported && c.Status != conformance.Skip {
			judged[c.ID] = true
		}
	}
	var out []string
	said := map[string]bool{}
	for _, c := range r.Checks {
		if c.Side != conformance.SideCandidate || judged[c.ID] || core[c.ID] || said[c.ID] || c.Reason == "" {
			continue
		}
		said[c.ID] = true
		out = append(out, fmt.Sprintf("%s (%s)", c.ID, c.Reason))
	}
	return out
}

func tally(r *conformance.Report) string {
	count := map[conformance.Status]int{}
	for _, c := range r.Checks {
		if c.Side == conformance.SideCandidate {
			count[c.Status]++
		}
	}
	var parts []string
	for _, s := range []conformance.Status{conformance.Pass, conformance.Fail, conformance.Error, conformance.Unsupported, conformance.Skip} {
		if count[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[s], s))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:=,@%+-]+$`)

// shellJoin quotes what a shell would take apart.
func shellJoin(args []string) string {
	out := make([]string, len(args))
	for i, a := range args {
		if plainWord.MatchString(a) {
			out[i] = a
		} else {
			out[i] = shellQuote(a)
		}
	}
	return strings.Join(out, " ")
}

func shellQuote(a string) string {
	if dumpfmt.Printable(a) == a {
		return "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}
	// The quotes that bash, zsh and ksh have for control characters.
	var b strings.Builder
	b.WriteString("$'")
	for _, c := range []byte(a) {
		switch {
		case c == '\'' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, "\\%03o", c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String() + "'"
}
