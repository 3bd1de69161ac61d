package checkpages

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/plumbline-go/plumbline/conformance"
)

// generated is the first line of every page.
const generated = "<!-- Written by `make docs` from the registry; edits are lost. -->\n\n"

// Files returns the pages of the checks by file name, ID.md, and their index,
// README.md.
func Files(checks []*conformance.Check) (map[string][]byte, error) {
	out := map[string][]byte{}
	var pages []Page
	for _, c := range checks {
		p, err := Of(c)
		if err != nil {
			return nil, err
		}
		pages = append(pages, p)
		out[p.ID+".md"] = p.Markdown()
	}
	for _, p := range Results() {
		pages = append(pages, p)
		out[p.ID+".md"] = p.Markdown()
	}
	out["README.md"] = index(pages)
	return out, nil
}

func index(pages []Page) []byte {
	var b bytes.Buffer
	b.WriteString(generated + "# Checks\n\n")
	b.WriteString("In the order in which they are judged; the last three judge the results of the others. `plumbline explain ID` prints a page in a terminal.\n\n")
	b.WriteString("| check | level | judges | rule |\n|---|---|---|---|\n")
	for _, p := range pages {
		level, _, _ := strings.Cut(p.Level, ":")
		var who []string
		for _, s := range p.Sides {
			s, _, _ = strings.Cut(s, ":")
			who = append(who, s)
		}
		fmt.Fprintf(&b, "| [%s](%s.md) | %s | %s | %s |\n", p.ID, p.ID, level, strings.Join(who, ", "), cell(p.Rule))
	}
	return b.Bytes()
}

// Markdown is the page below conformance/checks.
func (p Page) Markdown() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s# %s\n\n%s.\n\n", generated, p.ID, sentence(p.Rule))
	fmt.Fprintf(&b, "* Level: %s.\n* Judges: %s.\n", p.Level, strings.Join(p.Sides, "; "))
	list := func(title string, items []string) {
		fmt.Fprintf(&b, "\n## %s\n\n", title)
		for _, s := range items {
			fmt.Fprintf(&b, "* %s\n", s)
		}
	}
	list("Catches", p.Catches)
	list("Needs", p.Needs)
	list("Where its limits come from", p.Bounds)
	b.WriteString("\n## Planted faults\n\n")
	if len(p.Faults) == 0 {
		b.WriteString(judgesResults + "\n")
	} else {
		b.WriteString("A check that can't fail is not a check: it is shown to fail on each of these.\n\n")
		b.WriteString("| fault | planted in | what goes wrong | counts as found when |\n|---|---|---|---|\n")
	}
	for _, f := range p.Faults {
		bug := cell(f.Bug)
		if f.Source != "" {
			bug += fmt.Sprintf(" ([report](%s))", f.Source)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", f.Name, f.Where, bug, cell(f.Found))
	}
	b.WriteString("\n## Run it alone\n\n```sh\n")
	for _, c := range p.Run {
		fmt.Fprintf(&b, "%s  # %s\n", c.Line, c.Does)
	}
	b.WriteString("```\n")
	return b.Bytes()
}

// cell is text inside a table.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// sentence begins with a capital.
func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
