package report

import (
	"fmt"
	"slices"

	"github.com/plumbline-go/plumbline/conformance"
)

// changeGroup are changes that are told as one.
type changeGroup struct {
	first conformance.Change
	// coverage is true where a verdict changed or went, on these cases, and over all
	// of them where across is true; else first is the one change.
	coverage bool
	cases    int
	across   bool
}

// verdictMetrics are the changes that are of a verdict: theirs are 1 and 0, and what they
// say is in the detail.
var verdictMetrics = []string{"case", "judged", "verdict", "waived"}

// grouped puts a verdict that changed alike on many cases into one group, in the order of
// the first of each. Figures stay apart.
func grouped(changes []conformance.Change) []changeGroup {
	type key struct{ check, metric, detail string }
	var out []changeGroup
	index := map[key]int{}
	for _, c := range changes {
		if !slices.Contains(verdictMetrics, c.Metric) || c.Detail == "" {
			out = append(out, changeGroup{first: c})
			continue
		}
		k := key{c.Check, c.Metric, c.Detail}
		i, ok := index[k]
		if !ok {
			i = len(out)
			index[k] = i
			out = append(out, changeGroup{first: c, coverage: true})
		}
		if g := &out[i]; c.Case == "*" {
			g.across = true
		} else {
			if g.cases == 0 {
				g.first.Case = c.Case
			}
			g.cases++
		}
	}
	return out
}

// where names the case of a group, or says how many there are.
func (g changeGroup) where() string {
	s := ""
	switch g.cases {
	case 0:
		return "over all cases"
	case 1:
		s = caseLabel(g.first.Case)
	default:
		s = fmt.Sprintf("%d cases", g.cases)
	}
	if g.across {
		s += " and over all cases"
	}
	return s
}

func (g changeGroup) String() string {
	if !g.coverage {
		return changeText(g.first)
	}
	s := g.where()
	if c := g.first.Check; c != "*" {
		s = c + ", " + s
	}
	return s + ": " + g.first.Detail
}
