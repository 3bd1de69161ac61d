package teacher

import (
	"fmt"
	"math"

	"github.com/plumbline-go/plumbline/golden/canonical"
)

// examples holds each example to its receipt.
func (c *planChecker) examples(examples, receipts canonical.Value) {
	c.byID = map[string]int{}
	c.plan.Examples = make([]Example, examples.Len())
	for i := range examples.Len() {
		c.example(i, examples.Index(i), receipts, i < receipts.Len())
	}
}

func (c *planChecker) example(i int, example, receipts canonical.Value, hasReceipt bool) {
	at := place{rule: RuleReceipt, point: NoPoint, what: fmt.Sprintf("examples[%d]", i)}
	receiptAt := place{rule: RuleReceipt, point: NoPoint, what: fmt.Sprintf("prediction_plan.examples[%d]", i)}
	if id, ok := example.Get("stable_id"); ok { // so that all of it is named
		at.example, _ = id.Text()
		receiptAt.example = at.example
	}
	if !c.fields(example, at, exampleLayout) {
		return
	}
	id, idOK := c.text(example, "stable_id", at, Dies)
	mode, _ := c.text(example, "render_mode", at, Accepts)
	tokens, ok := c.tokens(example, at)
	c.plan.Examples[i] = Example{id, mode, tokens}
	if idOK {
		if first, twice := c.byID[id]; twice {
			c.again = append(c.again, [2]int{first, i})
		}
		c.byID[id] = i
	}
	receipt := receipts.Index(i)
	if !hasReceipt || !c.fields(receipt, receiptAt, receiptLayout) {
		return
	}
	for _, key := range []string{"stable_id", "render_mode"} {
		want, ok := example.Get(key)
		got, ok2 := receipt.Get(key)
		if ok && ok2 {
			if same(got, want) {
				c.text(receipt, key, receiptAt, Accepts)
			} else {
				c.unlike(receiptAt.at(key), Refuses, got, want)
			}
		}
	}
	if !ok {
		return
	}
	if got, ok := receipt.Get("token_count"); ok {
		switch {
		case !scriptEqual(got, int64(len(tokens))):
			c.add(receiptAt.at("token_count"), Refuses, spelled(got), fmt.Sprint(len(tokens)))
		case got.Kind() != canonical.KindInteger:
			c.add(receiptAt.of(RuleFields).at("token_count"), Accepts, spelled(got), "an integer")
		}
	}
	if got, ok := receipt.Get("token_ids_sha256"); ok && idOK {
		want, err := c.hash.tokens(id, tokens)
		if err == nil { // else an id is out of any range
			c.unlike(receiptAt.at("token_ids_sha256"), Refuses, got, canonical.String(want.String()))
		}
	}
	if c.vocab < 1 {
		return // which is told already
	}
	for j, n := range tokens {
		if int64(n) < 0 || int64(n) >= c.vocab {
			script := Refuses
			if int64(n) < 0 || int64(n) > math.MaxUint32 {
				script = Dies // hashing it
			}
			list, _ := example.Get("token_ids")
			c.add(at.at(fmt.Sprintf("token_ids[%d]", j)), script, spelled(list.Index(j)), fmt.Sprintf("0 to %d, the vocabulary", c.vocab-1))
			break
		}
	}
}

// scriptEqual is Python's n == v.
func scriptEqual(v canonical.Value, n int64) bool {
	if f, ok := v.Float(); ok {
		return f == float64(n)
	}
	got, ok := scriptInt(v)
	return ok && got == n && v.Kind() != canonical.KindString
}

// tokens returns an example's ids as the script's int() reads them.
func (c *planChecker) tokens(example canonical.Value, at place) (ids []int, ok bool) {
	list, ok := c.list(example, "token_ids", at)
	if !ok {
		return nil, false
	}
	ids = make([]int, list.Len())
	if small, ok := list.Ints(); ok {
		for i, n := range small {
			ids[i] = clamp(n)
		}
		return ids, true
	}
	odd := false
	for i := range ids {
		v := list.Index(i)
		n, ok := scriptInt(v)
		if !ok {
			c.add(at.at(fmt.Sprintf("token_ids[%d]", i)), Dies, v.String(), "an integer")
			return nil, false
		}
		if v.Kind() != canonical.KindInteger && !odd {
			odd = true
			c.add(at.of(RuleFields).at(fmt.Sprintf("token_ids[%d]", i)), Accepts, spelled(v), "an integer")
		}
		ids[i] = clamp(n)
	}
	return ids, true
}

// clamp keeps an id out of every range where an int is too small for it.
func clamp(n int64) int { return int(max(math.MinInt, min(n, math.MaxInt))) }
