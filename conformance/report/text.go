package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/dumpfmt"
)

// TextOptions says how [Text] writes.
type TextOptions struct {
	// Colour marks the conclusion and the words FAIL, ERROR and pass with the colours
	// of ANSI terminals. Whether w is one is for the caller to know.
	Colour bool
}

// Text writes a report for a terminal: the source on top, then one line per failing
// check, worst first, then what was seen and what wasn't; the command that repeats the
// run comes last. Whatever a name or a reason holds, it stays in its line.
func Text(w io.Writer, r *conformance.Report, o TextOptions) error {
	t := &text{colour: o.Colour}
	t.verdict(r)
	t.failures(r)
	t.seen(r)
	if _, err := w.Write(t.b.Bytes()); err != nil {
		return fmt.Errorf("report: text: %w", err)
	}
	return nil
}

// text is written at once, so that what breaks leaves no half verdict.
type text struct {
	b      bytes.Buffer
	colour bool
}

// lineLength is how many characters of a line are shown. The longest that Plumbline
// writes by itself are below 500.
const lineLength = 2000

// line prints one line that stays one: what would not show as it stands, such as a line
// break in a file's name, makes it a quoted one.
func (t *text) line(format string, args ...any) {
	fmt.Fprintln(&t.b, printable(fmt.Sprintf(format, args...), lineLength))
}

// marked is line with the first of its words in colour.
func (t *text) marked(word string, format string, args ...any) {
	line := printable(fmt.Sprintf(format, args...), lineLength)
	fmt.Fprintln(&t.b, strings.Replace(line, word, t.paint(word), 1))
}

// The colours, as ECMA-48 (SGR) numbers them.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
)

func (t *text) paint(word string) string {
	code := red
	switch word {
	case "pass", string(conformance.Conforms):
		code = green
	case string(conformance.Partial), string(conformance.NothingJudged):
		code = yellow
	}
	if !t.colour || word == "" {
		return word
	}
	return "\x1b[" + code + "m" + word + "\x1b[0m"
}

// verdict is the conclusion and where the first wrong number is.
func (t *text) verdict(r *conformance.Report) {
	t.marked(string(r.Conclusion), "conclusion: %s", r.Conclusion)
	if r.FirstBadRow != nil {
		t.line("first bad row: %s", conformance.AtRow(*r.FirstBadRow).String())
	}
	if r.FirstBadPosition != nil {
		t.line("first bad position: %d", *r.FirstBadPosition)
	}
	if r.Kind != nil {
		t.line("kind: %s", *r.Kind)
	}
	for i, s := range r.Sources {
		label := "source"
		if i > 0 {
			label = "further source"
		}
		t.line("%s: %s", label, s)
	}
	for _, n := range r.Notes {
		t.line("note: %s", n)
	}
	for _, c := range r.Checks {
		if c.Side == conformance.SideReference && bad(c) {
			t.line("the reference itself fails %s, %s: %s", c.ID, caseLabel(c.Case), findingText(c))
		}
	}
}

// failures has what makes the candidate fail, and the rules that it broke.
func (t *text) failures(r *conformance.Report) {
	lines := failureLines(r)
	lines = append(lines, waiverProblems(r)...)
	lines = append(lines, regressionLines(r)...)
	if len(lines) == 0 {
		return
	}
	fmt.Fprintln(&t.b)
	for _, l := range lines {
		if word, _, _ := strings.Cut(l, " "); word == "FAIL" || word == "ERROR" {
			t.marked(word, "%s", l)
		} else {
			t.line("%s", l)
		}
	}
	fmt.Fprintln(&t.b)
	for _, rule := range rulesOf(r.Failures()) {
		t.line("rule: %s", rule)
	}
}

// seen is what was judged, by what, and what wasn't.
func (t *text) seen(r *conformance.Report) {
	if n := t.b.Len(); n > 1 && !bytes.HasSuffix(t.b.Bytes(), []byte("\n\n")) {
		fmt.Fprintln(&t.b)
	}
	if s := r.Shard; s != nil {
		t.line("%s", shardLine(s, len(r.Cases)))
	}
	tally := tally(r)
	if strings.Contains(tally, " pass") {
		t.marked("pass", "checks: %s", tally)
	} else {
		t.line("checks: %s", tally)
	}
	for _, l := range waivedLines(r) {
		t.line("%s", l)
	}
	for _, l := range baselineLines(r.Baseline) {
		t.line("%s", l)
	}
	for _, l := range notOffered(r) {
		t.line("not judged: %s", l)
	}
	for _, l := range logitLines(r.Logits) {
		t.line("%s", l)
	}
	for _, p := range r.Power {
		t.line("power: %s", p)
	}
	for _, n := range r.NotJudged {
		t.line("core check not judged: %s (%s)", n.ID, n.WouldRun)
	}
	if r.Reproduce != "" { // to be copied, so it is whole
		fmt.Fprintln(&t.b, dumpfmt.Printable("reproduce: "+r.Reproduce))
	}
}
