package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/tools/internal/checkpages"
)

func newExplain(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "explain [ID]",
		Short: "One check in words: rule, bugs, limits, planted faults; without an ID all of them",
		Long: `explain says of a check what it holds, which bugs it exists for, what it needs, where
its limits come from, which planted faults it is shown to fail on, and how to run it
alone. Without an ID it lists the checks in the order in which they are judged. The
same stands in conformance/checks, a page for each.`,
		Example: `  plumbline explain
  plumbline explain LocalError
  plumbline explain LogitCandidate --json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageErrorf("got %d arguments, want one ID or none", len(args))
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return checkIDs(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error { return a.explain(args) },
	}
}

func (a *app) explain(args []string) error {
	checks := conformance.Builtin().Checks()
	if len(args) == 0 {
		if a.json {
			pages := []checkpages.Page{}
			for _, c := range checks {
				p, err := checkpages.Of(c)
				if err != nil {
					return err
				}
				pages = append(pages, p)
			}
			return a.emitJSON(pages)
		}
		return a.emit(checkpages.List(checks))
	}
	c := conformance.Builtin().Lookup(args[0])
	if c == nil {
		return unknownCheck(args[0])
	}
	p, err := checkpages.Of(c)
	if err != nil {
		return err
	}
	if a.json {
		return a.emitJSON(p)
	}
	return a.emit(p.Text())
}

func checkIDs() []string {
	var out []string
	for _, c := range conformance.Builtin().Checks() {
		out = append(out, c.ID)
	}
	return out
}

// unknownCheck names the checks whose IDs are nearest.
func unknownCheck(id string) error {
	near := nearest(id, checkIDs())
	if len(near) == 0 {
		return usageErrorf("check %q: got an unknown ID; `plumbline explain` lists them", id)
	}
	return usageErrorf("check %q: got an unknown ID; did you mean %s?", id, strings.Join(near, " or "))
}

// nearest are up to three names that are spelt like s, or hold it, the nearest first.
func nearest(s string, names []string) []string {
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
