package checkpages

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/plumbline-go/plumbline/conformance"
)

// width is that of lines in a terminal.
const width = 100

// Text is the page in a terminal.
func (p Page) Text() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n\n", p.ID)
	wrap(&b, "", sentence(p.Rule)+".")
	b.WriteByte('\n')
	wrap(&b, "level:  ", p.Level)
	wrap(&b, "judges: ", strings.Join(p.Sides, "; "))
	list := func(title string, items []string) {
		fmt.Fprintf(&b, "\n%s\n", title)
		for _, s := range items {
			wrap(&b, "  * ", s)
		}
	}
	list("Catches", p.Catches)
	list("Needs", p.Needs)
	list("Where its limits come from", p.Bounds)
	if len(p.Faults) == 0 {
		b.WriteString("\nPlanted faults\n")
		wrap(&b, "  ", judgesResults)
	} else {
		b.WriteString("\nPlanted faults that it is shown to fail on\n")
	}
	for _, f := range p.Faults {
		wrap(&b, "  * ", fmt.Sprintf("%s (%s): %s; %s", f.Name, f.Where, f.Bug, f.Found))
		if f.Source != "" {
			fmt.Fprintf(&b, "    %s\n", f.Source)
		}
	}
	b.WriteString("\nRun it alone, in a checkout of Plumbline\n")
	for _, c := range p.Run {
		fmt.Fprintf(&b, "  %s  # %s\n", c.Line, c.Does)
	}
	return b.Bytes()
}

// List is one line for each check, in the order in which they are judged.
func List(checks []*conformance.Check) []byte {
	var b bytes.Buffer
	for _, c := range checks {
		wrap(&b, fmt.Sprintf("%-26s %-12s", c.ID, c.Level), c.Rule)
	}
	b.WriteString("\nThese judge the results of the checks, where they are asked for.\n")
	for _, c := range conformance.ResultChecks() {
		wrap(&b, fmt.Sprintf("%-26s %-12s", c.ID, c.Level), c.Rule)
	}
	return b.Bytes()
}

// wrap writes a paragraph; its further lines are indented as far as the first.
func wrap(b *bytes.Buffer, first, text string) {
	line, indent := first, strings.Repeat(" ", utf8.RuneCountInString(first))
	begun := false
	for _, word := range strings.Fields(text) {
		if begun && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			b.WriteString(line + "\n")
			line, begun = indent, false
		}
		if begun {
			line += " "
		}
		line, begun = line+word, true
	}
	b.WriteString(line + "\n")
}
