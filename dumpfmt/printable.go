package dumpfmt

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable returns s, or s in Go quotes where it holds what a terminal would
// not show as it stands: control characters, line breaks, format characters
// such as those that turn the direction of writing, invalid UTF-8. Names of
// files and cases come from the other side, and one with an escape sequence or
// a line break could write a line of its own into a report.
func Printable(s string) string {
	if isPrintable(s) {
		return s
	}
	return strconv.Quote(s)
}

func isPrintable(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) }) < 0
}

// hasControl reports whether a name can't be a case's: format characters are
// part of some scripts' words, control characters of none.
func hasControl(name string) bool {
	return !utf8.ValidString(name) || strings.IndexFunc(name, unicode.IsControl) >= 0
}
