package main

import (
	"embed"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/tools/internal/checkpages"
)

// topicTexts are the help topics: the first line of each is its summary.
//
//go:embed topics/*.txt
var topicTexts embed.FS

// topics are what `plumbline help TOPIC` prints beside commands.
func topics() []*cobra.Command {
	var out []*cobra.Command
	for _, name := range []string{"verdicts", "dumps", "ci"} {
		data, err := topicTexts.ReadFile("topics/" + name + ".txt")
		if err != nil {
			panic(err) // embedded above
		}
		short, long, _ := strings.Cut(string(data), "\n\n")
		out = append(out, &cobra.Command{Use: name, Short: short, Long: short + "\n\n" + long})
	}
	const short = "The checks, one line each"
	list := &cobra.Command{Use: "checks", Short: short}
	list.Long = short + "; plumbline explain ID says all of one.\n\n" + string(checkpages.List(conformance.Builtin().Checks()))
	return append(out, list)
}

func newHelp(a *app, root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND | TOPIC | [check] ID]",
		Short: "Help about a command, a topic or a check",
		Long: `help prints the help of a command, one of the topics verdicts, dumps, ci and checks,
or what explain says of a check.`,
		Example: `  plumbline help gate
  plumbline help verdicts
  plumbline help LocalError
  plumbline help check LocalError`,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			switch {
			case len(args) == 0:
				return helpNames(root), cobra.ShellCompDirectiveNoFileComp
			case len(args) == 1 && args[0] == "check":
				return explained(), cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 && args[0] == "check" {
				if len(args) != 2 {
					return usageErrorf("help check: got %s, want one ID; `plumbline explain` lists them", plural(len(args)-1, "argument"))
				}
				return a.explain(args[1:])
			}
			if len(args) == 1 && slices.Contains(explained(), args[0]) {
				return a.explain(args)
			}
			of, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return unknownTopic(root, args)
			}
			of.InitDefaultHelpFlag()
			return of.Help()
		},
	}
}

// unknownTopic names the topics that are spelt like it.
func unknownTopic(root *cobra.Command, args []string) error {
	topic := strings.Join(args, " ")
	near := spelledLike(topic, helpNames(root))
	if ids := conformance.Builtin().Nearest(topic); len(near) == 0 && len(ids) > 0 {
		near = []string{"check " + ids[0]}
	}
	if len(near) == 0 {
		return usageErrorf("help: got the unknown topic %q; plumbline --help lists commands and topics", topic)
	}
	return usageErrorf("help: got the unknown topic %q; did you mean %s?", topic, strings.Join(near, " or "))
}

// spelledLike leaves the search to cobra, which looks only at commands that run.
func spelledLike(name string, names []string) []string {
	if name == "" {
		return nil
	}
	all := &cobra.Command{SuggestionsMinimumDistance: 2}
	for _, n := range names {
		all.AddCommand(&cobra.Command{Use: n, Run: func(*cobra.Command, []string) {}})
	}
	return all.SuggestionsFor(name)
}

// helpNames are the commands and topics.
func helpNames(root *cobra.Command) []string {
	names := []string{"check"}
	for _, c := range root.Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	slices.Sort(names)
	return names
}
