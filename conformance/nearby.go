package conformance

import (
	"fmt"
	"slices"
	"strings"
)

// checkNamed says what a name that no check has should have been; empty for a check's.
func checkNamed(reg *Registry, id string) string {
	if reg.Lookup(id) != nil {
		return ""
	}
	var all, near []string
	nearest := max(2, len(id)/3)
	for _, c := range reg.Checks() {
		all = append(all, c.ID)
		d := distanceOf(strings.ToLower(c.ID), strings.ToLower(id))
		if d < nearest {
			near, nearest = nil, d
		}
		if d == nearest {
			near = append(near, c.ID)
		}
	}
	if len(near) > 0 {
		return fmt.Sprintf("a check, such as %s", strings.Join(near, " or "))
	}
	slices.Sort(all)
	return fmt.Sprintf("a check, one of %s", strings.Join(all, ", "))
}

// candidateCheck is checkNamed for a check whose verdicts may be left out of account:
// those on the reference and on the suite are what all others rest on.
func candidateCheck(reg *Registry, id string) string {
	if want := checkNamed(reg, id); want != "" {
		return want
	}
	if !reg.Lookup(id).judges(SideCandidate) {
		return "a check of the candidate: what tests Plumbline itself can't be left out"
	}
	return ""
}

// distanceOf is the number of letters to add, drop or exchange between two names.
func distanceOf(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }
