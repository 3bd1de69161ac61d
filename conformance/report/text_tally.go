package report

import (
	"fmt"
	"strings"

	"github.com/plumbline-go/plumbline/conformance"
)

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
	count, waived := map[conformance.Status]int{}, 0
	for _, c := range r.Checks {
		switch {
		case c.Side != conformance.SideCandidate:
		case c.Waived != nil:
			waived++
		default:
			count[c.Status]++
		}
	}
	var parts []string
	for _, s := range []conformance.Status{conformance.Pass, conformance.Fail, conformance.Error, conformance.Unsupported, conformance.Skip} {
		if count[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[s], s))
		}
	}
	if waived > 0 {
		parts = append(parts, fmt.Sprintf("%d waived", waived))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}
