package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// printLine prints one line that stays one: what would not show as it stands,
// such as a line break in a file's name, makes it a quoted one.
func printLine(w io.Writer, format string, args ...any) {
	fmt.Fprintln(w, dumpfmt.Printable(fmt.Sprintf(format, args...)))
}

// errorText is an error for standard error. Line breaks stay, since some errors
// have several lines, and so do tabs.
func errorText(err error) string {
	lines := strings.Split(err.Error(), "\n")
	for i, l := range lines {
		if dumpfmt.Printable(strings.ReplaceAll(l, "\t", " ")) != strings.ReplaceAll(l, "\t", " ") {
			lines[i] = dumpfmt.Printable(l)
		}
	}
	return strings.Join(lines, "\n")
}

// printables is a list of names for a line of text, at most limit of them.
func printables(names []string, limit int) string {
	var shown []string
	for _, n := range names[:min(len(names), limit)] {
		shown = append(shown, dumpfmt.Printable(n))
	}
	text := strings.Join(shown, ", ")
	if more := len(names) - limit; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
