package teacher

import (
	"slices"

	"github.com/plumbline-go/plumbline/golden/canonical"
)

// MaxPlanBytes is the size above which a plan isn't read: ten times one of 1,000
// examples of 4,096 tokens.
const MaxPlanBytes = 256 << 20

// maxValues is how many values a plan or evidence may hold, tokens not counted: more
// than a plan of [MaxPlanBytes] that is nothing but points.
const maxValues = 16 << 20

// Read reads and checks the plan in the source-teacher summary at path. A plan that is
// refused is a [*RefusedError], with everything that is wrong; a text that is no JSON
// a [*canonical.SyntaxError], one that is too long a [*canonical.SizeError].
func Read(path string) (*Plan, error) {
	data, err := canonical.ReadBytes(path, MaxPlanBytes)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// Parse is [Read] of the bytes of a summary; name stands for the file in errors.
func Parse(name string, data []byte) (*Plan, error) {
	if len(data) > MaxPlanBytes {
		return nil, &canonical.SizeError{File: name, Size: int64(len(data)), Most: MaxPlanBytes}
	}
	summary, err := canonical.ParseAtMost(name, data, maxValues)
	if err != nil {
		return nil, err
	}
	return sound(check(name, summary))
}

func sound(c *planChecker) (*Plan, error) {
	if len(c.problems) > 0 {
		return nil, &RefusedError{c.problems, !c.whole || len(c.problems) == mostProblems}
	}
	return c.plan, nil
}

// Check returns the plan in a summary, or everything that is wrong with it: what the
// script refuses, or dies of, in its order, then what only rules of our own refuse.
// Of very many problems it keeps the first thousand.
func Check(name string, summary canonical.Value) (*Plan, []Problem) {
	c := check(name, summary)
	if len(c.problems) > 0 {
		return nil, c.problems
	}
	return c.plan, nil
}

func check(name string, summary canonical.Value) *planChecker {
	c := &planChecker{checker: checker{file: name}, hash: newHasher(), plan: &Plan{File: name}}
	c.run(summary)
	slices.SortStableFunc(c.problems, func(a, b Problem) int {
		return max(int(a.Script), int(Dies)) - max(int(b.Script), int(Dies))
	})
	return c
}

// planChecker goes through a summary as the script does.
type planChecker struct {
	checker
	hash *hasher
	// plan is filled on the way; whole says that there was one to follow to its end.
	plan  *Plan
	whole bool

	summary, input, source canonical.Value // source is the plan's own object
	vocab                  int64
	// byID is the last example of each id, as the script keeps them; again are the
	// examples with an id that another had before.
	byID  map[string]int
	again [][2]int
	// pointsOf are the points of each example, in order.
	pointsOf [][]int
}

func (c *planChecker) run(summary canonical.Value) {
	c.summary = summary
	top := place{rule: RuleExecution, point: NoPoint, what: "the summary"}
	if summary.Kind() != canonical.KindObject {
		c.add(top, Dies, summary.String(), "an object")
		return
	}
	top.what = ""
	c.execution(top)
	c.fields(summary, top, summaryLayout)
	input, ok := summary.Get("reference_input")
	at := top.at("reference_input").of(RuleInputHash)
	if !ok || !c.fields(input, at, inputLayout) {
		return
	}
	c.input = input
	c.inputHash(at)
	c.profile(at.of(RuleProfile))
	source, ok := input.Get("prediction_plan")
	planAt := at.at("prediction_plan").of(RuleDimensions)
	if !ok || !c.fields(source, planAt, planLayout) {
		return
	}
	c.source = source
	examples, receipts, ok := c.dimensions(at.of(RuleDimensions), planAt)
	if !ok {
		return
	}
	c.examples(examples, receipts)
	points, ok := c.list(source, "prediction_points", planAt.of(RulePrefix))
	if !ok {
		return
	}
	c.points(points)
	c.planHash(top, planAt)
	c.schedule(points)
	c.prompts(points, planAt.of(RulePrompt))
	c.constants(at, planAt)
	c.limits(at.of(RuleLimits), planAt.of(RuleLimits), points)
	c.whole = true
}
