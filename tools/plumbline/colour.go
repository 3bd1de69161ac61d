package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// colourFlag is --color: auto, always or never.
type colourFlag string

// register adds the flag to a command and those below it.
func (c *colourFlag) register(cmd *cobra.Command) {
	*c = "auto"
	cmd.PersistentFlags().Var(c, "color", "colour in text: auto (a terminal, and no $NO_COLOR), always or never")
}

// String implements pflag.Value.
func (c *colourFlag) String() string { return string(*c) }

// Type implements pflag.Value.
func (c *colourFlag) Type() string { return "WHEN" }

// Set implements pflag.Value.
func (c *colourFlag) Set(s string) error {
	switch s {
	case "auto", "always", "never":
		*c = colourFlag(s)
		return nil
	}
	return fmt.Errorf("got %q, want auto, always or never", s)
}

// colours reports whether text on standard output is to have colours.
func (a *app) colours() bool {
	if a.json {
		return false
	}
	return a.colour.wanted(os.Getenv, func() bool { return isTerminal(a.stdout) && showsColours(a.stdout) })
}

// wanted follows no-color.org: NO_COLOR, set and not empty, turns colours off that were
// not asked for by a flag. terminal is asked last.
func (c colourFlag) wanted(getenv func(string) string, terminal func() bool) bool {
	switch {
	case c == "always":
		return true
	case c == "never", getenv("NO_COLOR") != "", getenv("TERM") == "dumb":
		return false
	}
	return terminal()
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
