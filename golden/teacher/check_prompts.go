package teacher

import (
	"fmt"

	"github.com/plumbline-go/plumbline/golden/canonical"
)

// prompts: each greedy prompt is an example with one point, for generation, whose
// prefix it repeats. The script counts trajectories at the end of its run, and never
// looks at a prompt's prefix.
func (c *planChecker) prompts(points canonical.Value, at place) {
	list, ok := c.list(c.source, "greedy_prompts", at)
	if !ok {
		return
	}
	seen := make([]bool, len(c.plan.Examples))
	byExample := make([]*Prompt, len(c.plan.Examples))
	for i := range list.Len() {
		v := list.Index(i)
		at := place{rule: RulePrompt, point: NoPoint, what: fmt.Sprintf("greedy_prompts[%d]", i)}
		if !c.fields(v, at, promptLayout) {
			continue
		}
		id, ok := c.text(v, "stable_id", at, Dies)
		if !ok {
			continue
		}
		at.example = id
		e, ok := c.byID[id]
		switch {
		case !ok:
			c.add(at.at("stable_id"), Refuses, "an example that the plan doesn't have", "one of its examples")
			continue
		case seen[e]:
			c.add(at.at("stable_id"), Refuses, "a second prompt of the example", "one")
			continue
		}
		seen[e] = true
		byExample[e] = c.prompt(v, at, e)
	}
	for i, p := range c.plan.Points {
		if p.Kind == GenerationNext && p.Example >= 0 && !seen[p.Example] {
			c.add(place{RulePrompt, c.plan.Examples[p.Example].ID, i, "kind"}, Accepts, "generation_next without a greedy prompt", "a prompt of the example")
		}
	}
	for _, p := range byExample { // in the order in which they are run
		if p != nil {
			c.plan.Prompts = append(c.plan.Prompts, *p)
		}
	}
}

// prompt is the prompt of example e, nil where it has no single point.
func (c *planChecker) prompt(v canonical.Value, at place, e int) *Prompt {
	of := c.pointsOf[e]
	if len(of) != 1 {
		c.add(at, Refuses, fmt.Sprintf("%d points", len(of)), "exactly one, for generation")
		return nil
	}
	p := c.plan.Points[of[0]]
	if p.Kind != GenerationNext {
		at.point = of[0]
		c.add(at, Refuses, "a point of kind "+p.Kind.String(), "one of kind generation_next")
		return nil
	}
	if n, ok := c.count(v, "prefix_token_count", at); ok && n != int64(p.Prefix) {
		c.add(at.at("prefix_token_count"), Accepts, fmt.Sprint(n), fmt.Sprintf("%d, as at its point", p.Prefix))
	}
	if got, ok := v.Get("prefix_token_ids_sha256"); ok {
		c.unlike(at.at("prefix_token_ids_sha256"), Accepts, got, canonical.String(p.PrefixSHA256.String()))
	}
	return &Prompt{Example: e, Point: of[0], PrefixSHA256: p.PrefixSHA256}
}
