package teacher

import (
	"fmt"
	"math"

	"github.com/plumbline-go/plumbline/golden/canonical"
)

const inputProfile = "exact_teacher_reference_input_v1"

// execution: the flag and the receipt count as Python's truth has it; a flag that is
// true only by that is refused by a rule of our own.
func (c *planChecker) execution(top place) {
	executed, ok := c.summary.Get("executed")
	switch b, isBool := executed.Bool(); {
	case !ok:
		c.add(top.at("executed"), Refuses, "no such key", "true")
	case !scriptTruth(executed):
		c.add(top.at("executed"), Refuses, executed.String(), "true")
	case !isBool || !b:
		c.add(top.of(RuleFields).at("executed"), Accepts, executed.String(), "true")
	}
	const key = "structural_target_receipt"
	receipt, ok := c.summary.Get(key)
	switch {
	case !ok:
		c.add(top.at(key), Refuses, "no such key", "a receipt")
	case !scriptTruth(receipt):
		c.add(top.at(key), Refuses, receipt.String(), "a receipt")
	case receipt.Kind() != canonical.KindObject:
		c.add(top.of(RuleFields).at(key), Accepts, receipt.String(), "an object")
	}
}

// inputHash: reference_input_sha256 is the hash of the other members in their order,
// whatever their order in the file.
func (c *planChecker) inputHash(at place) {
	const key = "reference_input_sha256"
	want, ok := inputSHA256(c.input)
	if !ok {
		return // a key is missing, which fields has reported
	}
	c.plan.InputSHA256 = want
	got, ok := c.input.Get(key)
	switch text, isText := got.Text(); {
	case !ok:
		c.add(at.at(key), Refuses, "no such key", want.String())
	case !isText:
		c.add(at.at(key), Refuses, got.String(), want.String())
	default:
		c.differ(at.at(key), Refuses, text, want)
	}
}

// inputSHA256 is the hash of a reference input; ok is false where it lacks a member.
func inputSHA256(input canonical.Value) (sum Sum, ok bool) {
	view := make([]canonical.Member, 0, len(inputLayout)-1)
	for i := range len(inputLayout) - 1 {
		v, ok := input.Get(inputLayout.name(i))
		if !ok {
			return sum, false
		}
		view = append(view, canonical.Member{Key: inputLayout.name(i), Value: v})
	}
	return mustSum(canonical.Object(view...)), true
}

// mustSum is the hash of a parsed value, or of one made of parsed values and
// constants, all of which can be written.
func mustSum(v canonical.Value) Sum {
	sum, err := v.SHA256(canonical.InsertionOrder)
	if err != nil {
		panic(err)
	}
	return sum
}

func (c *planChecker) profile(at place) {
	got, _ := c.input.Get("profile")
	if text, ok := got.Text(); !ok || text != inputProfile {
		c.add(at.at("profile"), Refuses, got.String(), fmt.Sprintf("%q", inputProfile))
	}
}

// constants are members with one value that the script doesn't look at.
func (c *planChecker) constants(at, planAt place) {
	for _, x := range []struct {
		v canonical.Value
		p place
	}{{c.input, at}, {c.source, planAt}} {
		const key = "schema_version"
		v, ok := x.v.Get(key)
		if n, isInt := v.Int(); ok && (!isInt || n != 1) {
			c.add(x.p.of(RuleProfile).at(key), Accepts, spelled(v), "1")
		}
	}
	for _, key := range []string{"source_teacher_authority", "sensitivity_authority", "allocator_authority", "selector_authority", "autoquant_authority", "runtime_dependency"} {
		c.boolean(c.input, key, at)
	}
	for _, key := range []string{"dataset_partition_manifest_sha256", "calibration_corpus_artifact_sha256", "calibration_manifest_sha256", "rendered_token_stream_sha256"} {
		c.hash256(c.source, key, planAt)
	}
}

// dimensions: a vocabulary, and two lists of the same length.
func (c *planChecker) dimensions(at, planAt place) (examples, receipts canonical.Value, ok bool) {
	vocab, ok := c.integer(c.input, "vocabulary_size", at)
	switch {
	case !ok:
		vocab = math.MaxUint32 // no id is outside
	case vocab <= 0:
		c.add(at.at("vocabulary_size"), Refuses, fmt.Sprint(vocab), "1 or more")
	case vocab > math.MaxUint32:
		c.add(at.at("vocabulary_size"), Accepts, fmt.Sprint(vocab), "one of ids that 32 bits hold")
	}
	c.vocab, c.plan.Vocab = vocab, int(vocab)
	examples, ok = c.list(c.input, "examples", at)
	receipts, ok2 := c.list(c.source, "examples", planAt)
	if !ok || !ok2 {
		return examples, receipts, false
	}
	if e, r := examples.Len(), receipts.Len(); e != r {
		c.add(planAt.at("examples"), Refuses, fmt.Sprintf("%d receipts", r), fmt.Sprintf("one for each of %d examples", e))
	}
	return examples, receipts, true
}

// planHash: the summary names the plan's hash, and the plan's hash is its own.
func (c *planChecker) planHash(top, planAt place) {
	const key, named = "manifest_sha256", "prediction_plan_sha256"
	manifest, ok := c.source.Get(key)
	if !ok {
		return
	}
	if got, ok := c.summary.Get(named); ok {
		c.unlike(top.of(RulePlanHash).at(named), Refuses, got, manifest)
	}
	c.plan.PlanSHA256 = mustSum(c.source.Without(key))
	c.unlike(planAt.of(RulePlanHash).at(key), Accepts, manifest, canonical.String(c.plan.PlanSHA256.String()))
}
