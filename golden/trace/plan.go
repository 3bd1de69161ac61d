package trace

import (
	"fmt"
	"slices"
)

// Condition is one way to put a source before the model.
type Condition struct {
	Name string
	// System says whether the system text comes first.
	System bool
	// Boundary names the token at the start of the input: a key of the ids that
	// [Plan.Tokenise] gets.
	Boundary string
}

// Edge is a pair of conditions that are compared, left to right.
type Edge struct{ Name, Left, Right string }

// The scopes: the tokens of a source's text alone, and all of the input.
const (
	TargetContent = "target_content"
	FullInput     = "full_input"
)

// Scopes are the scopes in the order of the document.
func Scopes() []string { return []string{TargetContent, FullInput} }

// The indices of the scopes.
const (
	scopeContent = iota
	scopeFull
	scopes
)

// Plan says what is run and compared: conditions, pairs of them, and the text
// around a source. It doesn't change once it is in use.
type Plan struct {
	Conditions []Condition
	Edges      []Edge
	// System is the text of a condition with a system text, Before and After what
	// stands around a source in all of them.
	System, Before, After string
}

// Standard is the plan of v2_lite_trace.py: {without, with a system text} x {eos,
// bos, "x", "." at the start}, and ten edges that change one of the two.
func Standard() Plan {
	families := []string{"eos", "bos", "x", "period"}
	p := Plan{System: "You are a helpful assistant.\n\n", Before: "User: ", After: "\n\nAssistant:"}
	for s := range 2 {
		for _, f := range families {
			p.Conditions = append(p.Conditions, Condition{fmt.Sprintf("s%d_%s", s, f), s == 1, f})
		}
	}
	for _, f := range families {
		p.Edges = append(p.Edges, Edge{"system_" + f, "s0_" + f, "s1_" + f})
	}
	for _, f := range families[1:] {
		for s := range 2 {
			p.Edges = append(p.Edges, Edge{fmt.Sprintf("%s_at_s%d", f, s), fmt.Sprintf("s%d_eos", s), fmt.Sprintf("s%d_%s", s, f)})
		}
	}
	return p
}

// Names are the names of the conditions, in order.
func (p Plan) Names() []string {
	names := make([]string, len(p.Conditions))
	for i, c := range p.Conditions {
		names[i] = c.Name
	}
	return names
}

// Condition is the index of a condition, -1 for an unknown name.
func (p Plan) Condition(name string) int {
	return slices.IndexFunc(p.Conditions, func(c Condition) bool { return c.Name == name })
}

// Boundaries are the names of the tokens that inputs start with, each once.
func (p Plan) Boundaries() []string {
	var names []string
	for _, c := range p.Conditions {
		if !slices.Contains(names, c.Boundary) {
			names = append(names, c.Boundary)
		}
	}
	return names
}

// Text is a source as a condition puts it before the model, without the token at
// the start, and the bytes of the source in it.
func (p Plan) Text(c Condition, content string) (text string, start, end int) {
	before := p.Before
	if c.System {
		before = p.System + before
	}
	return before + content + p.After, len(before), len(before) + len(content)
}

// Validate checks that names are there once, and that edges join two conditions.
func (p Plan) Validate() error {
	if len(p.Conditions) == 0 || len(p.Edges) == 0 {
		return &UsageError{"plan", "conditions and edges", fmt.Sprintf("%d and %d", len(p.Conditions), len(p.Edges)), "at least one of each"}
	}
	seen := map[string]bool{}
	for _, c := range p.Conditions {
		if c.Name == "" || c.Boundary == "" || seen[c.Name] {
			return &UsageError{"plan", fmt.Sprintf("condition %q", c.Name), "no name, no boundary, or a name again", "a name of its own and a boundary"}
		}
		seen[c.Name] = true
	}
	edges := map[string]bool{}
	for _, e := range p.Edges {
		if e.Name == "" || edges[e.Name] || !seen[e.Left] || !seen[e.Right] || e.Left == e.Right {
			return &UsageError{"plan", fmt.Sprintf("edge %q", e.Name), fmt.Sprintf("%q to %q", e.Left, e.Right), "a name of its own, from one condition to another"}
		}
		edges[e.Name] = true
	}
	return nil
}

// ends are the indices of an edge's conditions.
func (p Plan) ends(e Edge) (left, right int) { return p.Condition(e.Left), p.Condition(e.Right) }
