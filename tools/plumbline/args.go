package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// exactArgs is cobra's rule with our kind of error.
func exactArgs(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			if n == 0 && cmd.HasSubCommands() {
				return unknownCommand(cmd, args[0], what)
			}
			msg := fmt.Sprintf("got %s, want %s", plural(len(args), "argument"), what)
			if n == 0 && cmd.Flags().Lookup("candidate") != nil {
				msg += fmt.Sprintf("; the candidate's folder is a flag: --candidate %s", args[0])
			}
			return usageErrorf("%s", msg)
		}
		return nil
	}
}

// unknownCommand is an argument where only a subcommand may stand.
func unknownCommand(cmd *cobra.Command, arg, what string) error {
	msg := fmt.Sprintf("unknown command %s for %s, which takes no argument (%s)", strconv.Quote(arg), cmd.CommandPath(), what)
	cmd.SuggestionsMinimumDistance = max(cmd.SuggestionsMinimumDistance, 2)
	if near := cmd.SuggestionsFor(arg); len(near) > 0 {
		msg += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return usageErrorf("%s", msg)
}

// onePrompt allows one PROMPT or none.
func onePrompt(cmd *cobra.Command, args []string) error {
	if len(args) < 2 {
		return nil
	}
	msg := fmt.Sprintf("got %s, want one PROMPT", plural(len(args), "argument"))
	if f := cmd.Flags().Lookup("stop"); f != nil && f.Changed {
		msg += "; --stop takes several ids with commas between them"
	}
	return usageErrorf("%s", msg)
}

// plural counts things whose name takes an s.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// need returns a usage error for the first required flag that is empty.
func need(flags ...[2]string) error {
	for _, f := range flags {
		if f[1] == "" {
			return usageErrorf("--%s is required", f[0])
		}
	}
	return nil
}
