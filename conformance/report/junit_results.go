package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline-go/plumbline/conformance"
)

// findingsShown is how many findings of one failure are told.
const findingsShown = 20

// junitResult is one check on one case.
func junitResult(c conformance.Result, seconds float64) junitCase {
	name := caseLabel(c.Case)
	if c.Side != conformance.SideCandidate {
		name += " [" + string(c.Side) + "]"
	}
	out := junitCase{Name: junitName(name), Class: junitName(junitPackage + "." + c.ID), Time: junitSeconds(seconds)}
	why := func(message string) *junitReason {
		return &junitReason{Message: junitText(message), Type: junitName(string(c.Status)), Text: junitFindings(c)}
	}
	wrong := c.Status == conformance.Fail || c.Status == conformance.Error
	switch {
	case wrong && c.Waived != nil:
		out.Skipped = why("waived until " + c.Waived.Expires + ": " + c.Waived.Reason)
	case wrong && c.Level == conformance.Provisional && c.Side == conformance.SideCandidate:
		out.Skipped = why("reported only: " + findingText(c))
	case c.Status == conformance.Fail:
		out.Failure = why(findingText(c))
	case c.Status == conformance.Error:
		out.Error = why(c.Reason)
	case c.Status != conformance.Pass:
		out.Skipped = why(string(c.Status) + ": " + c.Reason)
	}
	if out.Skipped != nil {
		out.Skipped.Type = ""
	}
	return out
}

// junitFindings has a line per finding, and the rule.
func junitFindings(c conformance.Result) string {
	if c.Status != conformance.Fail && c.Status != conformance.Error {
		return ""
	}
	var lines []string
	for i, f := range c.Findings {
		if i == findingsShown {
			break
		}
		lines = append(lines, junitText(f.String()))
	}
	if n := len(c.Findings) - findingsShown; n > 0 {
		lines = append(lines, fmt.Sprintf("… and %d more; the report's JSON has them all", n))
	}
	if c.Rule != "" {
		lines = append(lines, junitText("rule: "+c.Rule))
	}
	return strings.Join(lines, "\n")
}

// junitText is foreign text on one line, of characters that XML has. encoding/xml would
// put U+FFFD for the others; this shows which they were.
func junitText(s string) string { return printable(s, sentenceLength) }

// junitName is a name as the schema wants it: not empty, and with single spaces.
func junitName(s string) string {
	if s = strings.Join(strings.Fields(printable(s, 2*nameLength)), " "); s == "" {
		return "(no name)"
	}
	return s
}

func junitSeconds(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
		x = 0
	}
	return strconv.FormatFloat(x, 'f', 3, 64)
}

// withoutZone is a time in RFC 3339 in UTC, in the schema's form.
func withoutZone(s string) (string, bool) {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil || t.Year() < 1 || t.Year() > 9999 {
		return "", false
	}
	return t.UTC().Format("2006-01-02T15:04:05"), true
}

// junitOut is the report for people, inside the XML.
func junitOut(r *conformance.Report) string {
	t := &text{}
	t.verdict(r)
	t.failures(r)
	t.seen(r)
	return t.b.String()
}
