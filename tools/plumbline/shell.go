package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:=,@%+-]+$`)

// shellJoin quotes what a shell would take apart.
func shellJoin(args []string) string {
	out := make([]string, len(args))
	for i, a := range args {
		if plainWord.MatchString(a) {
			out[i] = a
		} else {
			out[i] = shellQuote(a)
		}
	}
	return strings.Join(out, " ")
}

func shellQuote(a string) string {
	if dumpfmt.Printable(a) == a {
		return "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}
	// The quotes that bash, zsh and ksh have for control characters.
	var b strings.Builder
	b.WriteString("$'")
	for _, c := range []byte(a) {
		switch {
		case c == '\'' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, "\\%03o", c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String() + "'"
}
