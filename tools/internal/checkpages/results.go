package checkpages

import (
	"fmt"
	"strings"

	"github.com/plumbline-go/plumbline/conformance"
)

// judgesResults stands where a check's planted faults do.
const judgesResults = "None of its own: it judges the results of checks. The tests that run it alone show it failing."

// asked says of each of conformance.ResultChecks what makes it run, where its limits come
// from, and which tests of package conformance show it failing.
var asked = map[string]struct {
	by, limits string
	tests      []string
}{
	"Features": {"the candidate's claims: features in its engine.json or handshake, or Config.Features",
		"none: it is exact", []string{"TestClaimedFeatures"}},
	"Baseline": {"a report to be held to: Config.Baseline, gate --baseline",
		"what two runs of one build differ by, as the baseline's report measured it; else how the cases differ among themselves",
		[]string{"TestFigureAgainstItsNoise", "TestVerdictsAgainstTheBaseline"}},
	"Repeat": {"a second run of the same build: gate --aa, gate --aa-again", "none: it measures, and compares verdicts", []string{"TestRepeatMeasuresNoise"}},
}

// Results describes conformance.ResultChecks, which judge the results of checks.
func Results() []Page {
	var out []Page
	for _, c := range conformance.ResultChecks() {
		a := asked[c.ID]
		p := Page{ID: c.ID, Rule: c.Rule, Catches: c.Catches, Level: levels[c.Level],
			Sides: []string{"results: those of the checks of the candidate"}, Needs: []string{a.by}, Bounds: []string{a.limits}}
		// It is judged where it was asked for, and nowhere else.
		p.Level, _, _ = strings.Cut(p.Level, ":")
		p.Level += ": where it is asked for, it must hold"
		for _, name := range a.tests {
			p.Run = append(p.Run, Command{fmt.Sprintf("go test ./conformance -run '%s$'", name), "with results that it must pass, and those that it must not"})
		}
		out = append(out, p)
	}
	return out
}
