package reference

import (
	"cmp"
	"slices"
)

// errand is one prompt of a plan.
type errand struct {
	index int // in the caller's list
	ids   []int
	// common is how many leading positions the prompt has in common with the
	// errand before it: snapshots of more positions are of no use from here on.
	common int
	// keep are the lengths, ascending, at which a snapshot serves a later errand.
	keep []int
}

// planErrands orders prompts so that those with a common prefix follow each
// other, each behind its own prefixes, and says where to take snapshots. Prompts
// of different classes share nothing. A prompt's last token is always run, for
// its rows are wanted, so a prompt of n tokens takes over n-1 positions at most.
func planErrands(prompts [][]int, class func(tokens int) int) []errand {
	plan := make([]errand, len(prompts))
	for i, ids := range prompts {
		plan[i] = errand{index: i, ids: ids}
	}
	slices.SortStableFunc(plan, func(a, b errand) int {
		return cmp.Or(cmp.Compare(class(len(a.ids)), class(len(b.ids))), slices.Compare(a.ids, b.ids))
	})
	for i := 1; i < len(plan); i++ {
		if class(len(plan[i-1].ids)) == class(len(plan[i].ids)) {
			plan[i].common = commonPrefix(plan[i-1].ids, plan[i].ids)
		}
	}
	for i := range plan {
		common := len(plan[i].ids)
		for _, later := range plan[i+1:] {
			// In sorted order the prefix common to i and later is the shortest
			// of those in between.
			if common = min(common, later.common); common == 0 {
				break
			}
			n := min(common, len(later.ids)-1)
			if n > 0 && !slices.Contains(plan[i].keep, n) {
				plan[i].keep = append(plan[i].keep, n)
			}
		}
		slices.Sort(plan[i].keep)
	}
	return plan
}

func commonPrefix(a, b []int) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
