package report

import (
	"fmt"
	"regexp"
	"strings"

	"golang.org/x/text/unicode/bidi"
)

// prose is foreign text as Markdown that shows it and means nothing: no element, no
// mention, no link. It is one line, also in a cell of a table.
func prose(s string, most int) string {
	return isolate(inert(printable(s, most)))
}

// code is foreign text as a code span, or as prose where a span in a table's cell can't
// show it.
func code(s string, most int) string {
	p := printable(s, most)
	if p == "" || strings.ContainsAny(p, "`|\\") || strings.TrimSpace(p) != p || isolate(p) != p {
		return prose(s, most)
	}
	return "`" + p + "`"
}

// broken keeps apart what GitHub makes a mention, a reference to an issue, or a link of:
// it looks for those in the text that Markdown gave, so escapes alone don't help.
var broken = regexp.MustCompile(`(?i)@|#|\bgh-|://|\bwww\.|\bmailto:|\bxmpp:`)

// emoji is what becomes a picture where a colon follows. It leaves that colon, which may
// begin another.
var emoji = regexp.MustCompile(`:[A-Za-z0-9_+-]+`)

// apart keeps the names of pictures from being any. None has two digits, which are the
// minutes of a time that somebody may want to copy.
func apart(s string) string {
	var b strings.Builder
	last := 0
	for _, m := range emoji.FindAllStringIndex(s, -1) {
		if !strings.HasPrefix(s[m[1]:], ":") || m[1]-m[0] == 3 && strings.Trim(s[m[0]+1:m[1]], "0123456789") == "" {
			continue
		}
		b.WriteString(s[last:m[0]+1] + zeroWidthSpace)
		last = m[0] + 1
	}
	return b.String() + s[last:]
}

const zeroWidthSpace = "\u200b"

func inert(s string) string {
	s = broken.ReplaceAllStringFunc(s, func(m string) string {
		if m == "://" {
			return ":" + zeroWidthSpace + "//"
		}
		return m + zeroWidthSpace
	})
	s = apart(s)
	var b strings.Builder
	for i, c := range s {
		switch {
		case c == '&':
			b.WriteString("&amp;")
		case c == '<':
			b.WriteString("&lt;")
		case c == '>':
			b.WriteString("&gt;")
		case strings.ContainsRune("|\\$", c): // in a table, or for formulas, a backslash is not enough
			fmt.Fprintf(&b, "&#%d;", c)
		case strings.ContainsRune("`*_[]~", c),
			i == 0 && strings.ContainsRune("-+=#", c), // a list, a heading
			strings.ContainsRune(".)", c) && i > 0 && strings.Trim(s[:i], "0123456789") == "":
			b.WriteByte('\\')
			b.WriteRune(c)
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

// isolate keeps text that runs from right to left from turning what stands beside it
// (Unicode Standard Annex 9, FSI and PDI).
func isolate(s string) string {
	for _, c := range s {
		p, _ := bidi.LookupRune(c)
		if k := p.Class(); k == bidi.R || k == bidi.AL || k == bidi.AN {
			return "\u2068" + s + "\u2069"
		}
	}
	return s
}

// fence is foreign text as a block of code that it can't end.
func fence(s string) string {
	marks := "```"
	for strings.Contains(s, marks) {
		marks += "`"
	}
	return marks + "sh\n" + s + "\n" + marks + "\n"
}
