package teacher

import (
	"fmt"
	"math"

	"github.com/plumbline-go/plumbline/golden/canonical"
)

// limits: totals are what is there, and what is there is within the limits. The
// script looks at none of them.
func (c *planChecker) limits(at, planAt place, points canonical.Value) {
	examples, rows := int64(len(c.plan.Examples)), int64(points.Len())
	prompts, _ := c.source.Get("greedy_prompts")
	tokens := int64(0)
	for _, e := range c.plan.Examples {
		tokens += int64(len(e.Tokens))
	}
	for _, x := range []struct {
		key  string
		want int64
	}{{"total_example_count", examples}, {"total_token_count", tokens}} {
		if got, ok := c.count(c.source, x.key, planAt); ok {
			c.differ(planAt.at(x.key), Accepts, got, x.want)
		}
	}
	c.count(c.source, "total_rendered_utf8_bytes", planAt)
	if rows == 0 {
		c.add(planAt.at("prediction_points"), Accepts, "none", "at least one: a target without rows judges nothing")
	}
	c.within(c.source, planAt, "limits", planLimitsLayout, []quantity{
		{"max_examples", examples, "examples"}, {"max_tokens", tokens, "tokens"},
		{"max_prediction_points", rows, "prediction points"}, {"max_greedy_prompts", int64(prompts.Len()), "greedy prompts"},
	})
	target := int64(0)
	if c.vocab > 0 && c.vocab <= math.MaxUint32 {
		target = c.plan.TargetSpec().Size()
	}
	limits := c.within(c.input, at, "target_limits", targetLimitsLayout, []quantity{
		{"max_vocabulary_size", c.vocab, "ids of the vocabulary"}, {"max_prediction_rows", rows, "rows"}, {"max_target_bytes", target, "bytes of target"},
	})
	if k, ok := c.count(limits, "top_k", at.at("target_limits")); ok && (k < 1 || k > c.vocab) {
		c.add(at.at("target_limits").at("top_k"), Accepts, fmt.Sprint(k), "1 to the vocabulary")
	}
}

type quantity struct {
	limit string
	n     int64
	what  string
}

// within holds quantities to an object of limits.
func (c *planChecker) within(v canonical.Value, at place, key string, l layout, quantities []quantity) canonical.Value {
	limits, ok := v.Get(key)
	at = at.at(key)
	if !ok {
		return limits
	}
	if limits.Kind() != canonical.KindObject {
		c.add(at.of(RuleFields), Accepts, limits.String(), "an object")
		return limits
	}
	c.fields(limits, at, l)
	for _, q := range quantities {
		if most, ok := c.count(limits, q.limit, at); ok && q.n > most {
			c.add(at.at(q.limit), Accepts, fmt.Sprintf("%d %s", q.n, q.what), fmt.Sprintf("at most %d", most))
		}
	}
	return limits
}
