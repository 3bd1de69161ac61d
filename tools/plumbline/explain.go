package main

import (
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
	near := conformance.Builtin().Nearest(id)
	if len(near) == 0 {
		return usageErrorf("check %q: got an unknown ID; `plumbline explain` lists them", id)
	}
	return usageErrorf("check %q: got an unknown ID; did you mean %s?", id, strings.Join(near, " or "))
}
