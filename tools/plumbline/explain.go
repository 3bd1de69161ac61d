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
			return explained(), cobra.ShellCompDirectiveNoFileComp
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
			return a.emitJSON(append(pages, checkpages.Results()...))
		}
		return a.emit(checkpages.List(checks))
	}
	p, err := pageOf(args[0])
	if err != nil {
		return err
	}
	if a.json {
		return a.emitJSON(p)
	}
	return a.emit(p.Text())
}

// pageOf describes a check, or what judges the results of checks.
func pageOf(id string) (checkpages.Page, error) {
	for _, p := range checkpages.Results() {
		if p.ID == id {
			return p, nil
		}
	}
	c := conformance.Builtin().Lookup(id)
	if c == nil {
		return checkpages.Page{}, unknownCheck(id)
	}
	return checkpages.Of(c)
}

// explained are the IDs that explain knows.
func explained() []string {
	out := checkIDs()
	for _, c := range conformance.ResultChecks() {
		out = append(out, c.ID)
	}
	return out
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
	for _, c := range conformance.ResultChecks() {
		if strings.EqualFold(c.ID, id) {
			near = []string{c.ID}
		}
	}
	if len(near) == 0 {
		return usageErrorf("check %q: got an unknown ID; `plumbline explain` lists them", id)
	}
	return usageErrorf("check %q: got an unknown ID; did you mean %s?", id, strings.Join(near, " or "))
}
