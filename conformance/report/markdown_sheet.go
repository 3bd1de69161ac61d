package report

import (
	"fmt"
	"strings"
)

// maxMarkdown is how long a comment on GitHub may be, in characters; counted here in
// bytes, which are never fewer.
const maxMarkdown = 65536

// sheet is a sequence of blocks, each of which is written whole or not at all.
type sheet struct {
	b    strings.Builder
	left int
}

// tail is what a table's or list's line of what is left out may take, in bytes.
const tail = 120

func newSheet(most int) *sheet { return &sheet{left: most} }

// block appends a block if it fits.
func (p *sheet) block(s string) bool {
	if len(s) > p.left {
		return false
	}
	p.b.WriteString(s)
	p.left -= len(s)
	return true
}

// rows appends a table or list: head, then as many rows as share bytes hold, then foot.
// What is left out is said below it; a table of which no row fits is left out as a whole.
func (p *sheet) rows(share int, what, head string, rows []string, foot string) {
	if len(rows) == 0 {
		return
	}
	room := min(share, p.left) - len(head) - len(foot) - tail
	n, size := 0, 0
	for n < len(rows) && size+len(rows[n]) <= room {
		size += len(rows[n])
		n++
	}
	more := ""
	if n < len(rows) {
		more = fmt.Sprintf("\n%d of %d %s are left out here; the report's JSON has all of them.\n", len(rows)-n, len(rows), what)
	}
	if n == 0 {
		p.block(more)
		return
	}
	p.block(head + strings.Join(rows[:n], "") + more + foot)
}

// cells is one row of a table.
func cells(c ...string) string { return "| " + strings.Join(c, " | ") + " |\n" }

// header is a table's head, after an empty line.
func header(title string, c ...string) string {
	rule := make([]string, len(c))
	for i := range rule {
		rule[i] = "---"
	}
	return "\n### " + title + "\n\n" + cells(c...) + cells(rule...)
}
