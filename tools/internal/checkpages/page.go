package checkpages

import (
	"fmt"
	"strings"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/tools/suite"
)

// Page is one check in words.
type Page struct {
	ID, Rule string
	Catches  []string
	// Level is the level and what it means.
	Level string
	// Sides say whose answers are judged.
	Sides []string
	Needs []string
	// Bounds are the limits, one line each.
	Bounds []string
	Faults []Fault
	// Run are commands that run the check alone.
	Run []Command
}

// Fault is a planted fault that the check must fail on.
type Fault struct {
	Name string
	// Where says in what it is planted, and at which layer or row.
	Where string
	// Bug is what goes wrong in a real engine, Source a public report of one.
	Bug, Source string
	// Found says what counts as found.
	Found string
}

// Command is a command line and what it does.
type Command struct{ Line, Does string }

// levels say what a failing check means.
var levels = map[conformance.Level]string{
	conformance.Core:        "core: it must hold, and it must have been judged in at least one case, else the verdict is partial",
	conformance.Extended:    "extended: it must hold wherever it applies",
	conformance.Provisional: "provisional: it is reported, and no candidate fails by it",
}

// sides say whose answers are judged.
var sides = map[conformance.Side]string{
	conformance.SideCandidate: "the candidate",
	conformance.SideReference: "the reference: a failure means that no verdict can be trusted, exit 2",
	conformance.SideSuite:     "the suite itself",
}

// Of describes a check. It is an error when one of its planted faults has no
// description, or one of its bounds no budget.
func Of(c *conformance.Check) (Page, error) {
	p := Page{ID: c.ID, Rule: c.Rule, Catches: c.Catches, Level: levels[c.Level], Needs: c.Needs.Describe()}
	for _, s := range c.Sides {
		p.Sides = append(p.Sides, sides[s])
	}
	if len(p.Needs) == 0 {
		p.Needs = []string{"nothing of a case: it looks at files"}
	}
	budgets := conformance.DefaultBudgets()
	for _, name := range c.Bounds {
		named, err := budgets.Named(name)
		if err != nil {
			return p, fmt.Errorf("checkpages: %s: %w", c.ID, err)
		}
		for _, b := range named {
			p.Bounds = append(p.Bounds, boundText(b))
		}
	}
	if c.Basis != "" {
		p.Bounds = append(p.Bounds, c.Basis)
	}
	for _, k := range c.Controls {
		f, err := suite.FaultOf(k)
		if err != nil {
			return p, fmt.Errorf("checkpages: %s: %w", c.ID, err)
		}
		p.Faults = append(p.Faults, Fault{Name: k.Mutant, Where: whereText(k, f), Bug: f.Bug, Source: f.Source, Found: foundText(k)})
	}
	p.Run = commands(c)
	return p, nil
}

// commands run a check alone: on the embedded model, on somebody's dumps where a
// dump folder can hold what it needs, and its controls.
func commands(c *conformance.Check) []Command {
	test := fmt.Sprintf("go test ./conformance -run 'Test%s$'", c.ID)
	out := []Command{{test, "on the embedded model"}}
	if c.Level == conformance.Core || c.ID == "ProbeCandidate" || c.ID == "ResidualToLogits" || c.ID == "StopRule" {
		out = append(out, Command{test + " -args -model /abs/DIR -candidate /abs/FOLDER", "on your model and dumps"})
	}
	return append(out, Command{fmt.Sprintf("go test ./conformance -run 'TestEveryCheckCanFail/%s/'", c.ID), "its planted faults; those of the other checks run too, for minutes"})
}

func boundText(b conformance.NamedBudget) string {
	s := fmt.Sprintf("%s: %s; %s", b.Name, b.Describe(), b.Why)
	if b.Value != b.Multiple { // the figure that it is a multiple of is known beforehand
		s = fmt.Sprintf("%s: %.3g, which is %s; %s", b.Name, b.Value, b.Describe(), b.Why)
	}
	if b.Expires != "" {
		s = fmt.Sprintf("%s: %g, set by hand, to be looked at again by %s; %s", b.Name, b.Value, b.Expires, b.Why)
	}
	return s
}

func whereText(k conformance.Control, f suite.Fault) string {
	switch {
	case k.Layer < 0:
		return string(k.Side)
	case f.OfRow:
		return fmt.Sprintf("%s, row %d", k.Side, k.Layer)
	}
	return fmt.Sprintf("%s, layer %d", k.Side, k.Layer)
}

func foundText(k conformance.Control) string {
	var out []string
	if k.Floor > 0 {
		out = append(out, fmt.Sprintf("at least %g times over the limit", k.Floor))
	} else {
		out = append(out, "the check fails")
	}
	if k.Part != "" {
		out = append(out, "names "+string(k.Part))
	}
	if k.Kind != "" {
		out = append(out, fmt.Sprintf("says %q", string(k.Kind)))
	}
	if k.Metric != "" {
		out = append(out, fmt.Sprintf("finds %q", k.Metric))
	}
	return strings.Join(out, ", ")
}
