package main

import (
	"slices"
	"strconv"
	"strings"
)

// asksGitBisect reports whether a command line that could not be parsed asks for
// gate --git-bisect. The flags' own values aren't there when parsing fails, and
// git bisect takes the 2 of a bad flag for a bad commit.
func asksGitBisect(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	asked := false
	for _, a := range args {
		value, is := strings.CutPrefix(a, "--git-bisect")
		switch {
		case !is:
		case value == "":
			asked = true
		case value[0] == '=':
			on, err := strconv.ParseBool(value[1:])
			asked = on || err != nil // a value that isn't one is a mistake, not a no
		}
	}
	return asked && slices.Contains(args, "gate")
}
