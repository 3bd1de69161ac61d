package report

import (
	"fmt"

	"github.com/plumbline-go/plumbline/conformance"
)

// How many lines of one sort are shown; the JSON has all.
const (
	answersShown = 20
	changesShown = 20
)

func shardLine(s *conformance.ShardInfo, cases int) string {
	return fmt.Sprintf("shard %d of %d (index %d): %d of %s; `plumbline merge` gives the verdict over all", s.Index+1, s.Total, s.Index, cases, plural(s.AllCases, "case"))
}

// waiverProblems has one line per waiver that makes the run fail by itself.
func waiverProblems(r *conformance.Report) []string {
	var out []string
	for _, w := range r.Waivers {
		if w.Problem != "" {
			out = append(out, fmt.Sprintf("FAIL  waiver of %s, until %s: %s", waiverLabel(w.Waiver), w.Expires, w.Problem))
		}
	}
	return firstOf(out, changesShown)
}

// waivedLines say what was accepted, by which waiver.
func waivedLines(r *conformance.Report) []string {
	var out []string
	for _, w := range r.Waivers {
		if w.Used > 0 {
			out = append(out, fmt.Sprintf("waived until %s: %s, %s: %s", w.Expires, plural(w.Used, "result"), waiverLabel(w.Waiver), w.Reason))
		}
	}
	return firstOf(out, changesShown)
}

func waiverLabel(w conformance.Waiver) string {
	s := w.Check + ", " + waivedCase(w.Case)
	if w.Probe != "" {
		s += ", " + w.Probe
	}
	return s
}

// waivedCase is caseLabel where "all cases" would read as each of them: "*" is the
// verdict over all of them together.
func waivedCase(name string) string {
	if name == "*" {
		return "over all cases"
	}
	return caseLabel(name)
}

func regressionLines(r *conformance.Report) []string {
	if r.Baseline == nil {
		return nil
	}
	var out []string
	for _, g := range grouped(r.Baseline.Regressions) {
		out = append(out, "FAIL  worse than the baseline: "+g.String())
	}
	return firstOf(out, changesShown)
}

// changeText is one figure beside the baseline's.
func changeText(c conformance.Change) string {
	s := c.Check + ", " + waivedCase(c.Case)
	if c.Probe != "" {
		s += ", " + c.Probe
	}
	s += fmt.Sprintf(": %s %.4g, was %.4g, limit %.4g (%s)", c.Metric, float64(c.After), float64(c.Before), float64(c.Limit.Value), c.Limit.Source)
	if c.Detail != "" {
		s += ": " + c.Detail
	}
	return s
}

func baselineLines(b *conformance.BaselineInfo) []string {
	if b == nil {
		return nil
	}
	name := b.Name
	if b.Candidate != "" {
		name += " (" + b.Candidate + ")"
	}
	seen := "only verdicts and coverage were compared: " + b.NoiseBasis
	if b.Compared > 0 {
		seen = fmt.Sprintf("half of the figures may grow by a factor of %.4g unremarked (%s)", float64(b.Noise.Value), b.NoiseBasis)
	}
	out := []string{fmt.Sprintf("baseline %s: %s compared, %d worse, %d better; %s", name, plural(b.Compared, "figure"),
		len(b.Regressions), len(b.Improvements), seen)}
	var better []string
	for _, g := range grouped(b.Improvements) {
		better = append(better, "better than the baseline: "+g.String())
	}
	return append(out, firstOf(better, changesShown)...)
}

// firstOf keeps the first most lines, and says how many are left out.
func firstOf(lines []string, most int) []string {
	if len(lines) <= most {
		return lines
	}
	return append(lines[:most:most], fmt.Sprintf("… and %d more; the report's JSON has them all", len(lines)-most))
}

func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
