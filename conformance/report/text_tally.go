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
