package report

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// How many characters of what a report holds are shown in one place.
const (
	nameLength     = 100
	sentenceLength = 1000
)

// printable is s as dumpfmt.Printable shows it, in at most about most characters.
func printable(s string, most int) string {
	if len(s) > 8*most { // quoting makes it longer, never shorter
		head, tail := s[:4*most], s[len(s)-4*most:]
		if utf8.ValidString(s) {
			head, tail = strings.ToValidUTF8(head, ""), strings.ToValidUTF8(tail, "")
		}
		quoted := dumpfmt.Printable(head + tail)
		return cut(quoted, most, utf8.RuneCountInString(s))
	}
	return shorten(dumpfmt.Printable(s), most)
}

// shorten leaves out the middle of what is longer than most characters, and says so.
func shorten(s string, most int) string { return cut(s, most, utf8.RuneCountInString(s)) }

// cut is shorten for a text of total characters, of which s has enough.
func cut(s string, most, total int) string {
	if utf8.RuneCountInString(s) <= most && total <= most {
		return s
	}
	r := []rune(s)
	head := min(2*most/3, len(r))
	tail := min(most-head, len(r)-head)
	return string(r[:head]) + "…" + string(r[len(r)-tail:]) + " (" + strconv.Itoa(total) + " characters)"
}
