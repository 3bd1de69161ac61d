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
)

// gateText is the verdict for people: the source on top, then one line per
// failing check, worst first, then what was seen and how to repeat it.
func gateText(r *conformance.Report) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "conclusion: %s\n", r.Conclusion)
	if r.FirstBadRow != nil {
		fmt.Fprintf(&b, "first bad row: %s\n", conformance.AtRow(*r.FirstBadRow).String())
	}
	if r.Kind != nil {
		fmt.Fprintf(&b, "kind: %s\n", *r.Kind)
	}
	for i, s := range r.Sources {
		label := "source"
		if i > 0 {
			label = "further source"
		}
		fmt.Fprintf(&b, "%s: %s\n", label, s)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	if fs := worstFirst(r.Failures()); len(fs) > 0 {
		fmt.Fprintln(&b)
		for _, f := range fs {
			fmt.Fprintf(&b, "%s  %-18s %-24s %s\n", strings.ToUpper(string(f.Status)), f.ID, caseLabel(f.Case), failureLine(f))
		}
		fmt.Fprintln(&b)
		for _, rule := range rulesOf(fs) {
			fmt.Fprintf(&b, "rule: %s\n", rule)
		}
	}
	fmt.Fprintln(&b)
	fmt.Fprintf(&b, "checks: %s\n", tally(r))
	for _, p := range r.Power {
		fmt.Fprintf(&b, "power: %s\n", p)
	}
	for _, n := range r.NotJudged {
		fmt.Fprintf(&b, "core check not judged: %s; would run with: %s\n", n.ID, n.WouldRun)
	}
	if r.Reproduce != "" {
		fmt.Fprintf(&b, "reproduce: %s\n", r.Reproduce)
	}
	return b.Bytes()
}

func caseLabel(name string) string {
	if name == "*" {
		return "(all cases)"
	}
	return name
}

// failureLine is the worst finding of a result, or its reason.
func failureLine(r conformance.Result) string {
	if len(r.Findings) == 0 {
		return r.Reason
	}
	f := r.Findings[0]
	if r.Status == conformance.Error && f.Detail != "" {
		return f.Detail
	}
	line := f.String()
	if n := len(r.Findings) - 1; n > 0 {
		line += fmt.Sprintf(" (and %d more rows)", n)
	}
	return line
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
			out[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}
