package conformance

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Nearest returns the IDs of up to three checks that are spelt like id, or hold it, the
// nearest first; none where nothing is near.
func (r *Registry) Nearest(id string) []string {
	var all []string
	for _, c := range r.Checks() {
		all = append(all, c.ID)
	}
	return nearestNames(id, all)
}

// checkNamed says what a name that no check has should have been; empty for a check's.
func checkNamed(reg *Registry, id string) string {
	if reg.Lookup(id) != nil {
		return ""
	}
	if near := reg.Nearest(id); len(near) > 0 {
		return fmt.Sprintf("a check, such as %s", strings.Join(near, " or "))
	}
	return "a check; `plumbline explain` lists them, or conformance.Builtin().Checks()"
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

// nearestNames are up to three names that are spelt like s, or hold it, the nearest first.
func nearestNames(s string, names []string) []string {
	type named struct {
		name string
		far  int
	}
	var found []named
	low := strings.ToLower(s)
	for _, n := range names {
		far := editDistance(low, strings.ToLower(n))
		switch {
		case low != "" && strings.Contains(strings.ToLower(n), low):
			far = min(far, 1)
		case far > max(2, len(n)/3):
			continue
		}
		found = append(found, named{n, far})
	}
	slices.SortStableFunc(found, func(x, y named) int { return cmp.Compare(x.far, y.far) })
	var out []string
	for _, f := range found[:min(3, len(found))] {
		out = append(out, f.name)
	}
	return out
}

// editDistance is the least number of bytes to insert, delete or replace (Wagner and
// Fischer 1974). Names that are too long to be a slip are as far as they are long.
func editDistance(x, y string) int {
	if len(x) > 100 {
		return len(x)
	}
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(x) {
		last := row[0]
		row[0] = i + 1
		for j := range len(y) {
			cost := last
			if x[i] != y[j] {
				cost++
			}
			last = row[j+1]
			row[j+1] = min(cost, last+1, row[j]+1)
		}
	}
	return row[len(y)]
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }
