package teacher

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/golden/canonical"
)

// fault is one thing wrong with the case's summary.
type fault struct {
	name string
	edit edit
	// stale leaves the hashes over the plan as they were.
	stale bool
	// rule and script are the first problem's; script is what the reference script
	// does (TestTheScriptAgrees asks it).
	rule   Rule
	script Script
	// want is part of some problem's text.
	want string
}

const (
	ex  = inInput + "/examples"
	rc  = inPlan + "/examples"
	pt  = inPlan + "/prediction_points"
	gp  = inPlan + "/greedy_prompts"
	bad = `"0000000000000000000000000000000000000000000000000000000000000000"`
)

func faults() []fault {
	f := append(scriptFaults(), tracebackFaults()...)
	return append(f, ownFaults()...)
}

type values = []canonical.Value

func swap(i, j int) func(values) values {
	return func(all values) values { all[i], all[j] = all[j], all[i]; return all }
}

func drop(i int) func(values) values {
	return func(all values) values { return slices.Delete(all, i, i+1) }
}

func again(i int) func(values) values {
	return func(all values) values { return append(all, all[i]) }
}

// ordinals numbers the points as they stand.
var ordinals = list(pt, func(all values) values {
	for i := range all {
		all[i] = all[i].With("point_ordinal", canonical.Int(int64(i)))
	}
	return all
})

func totals(examples, tokens string) edit {
	return all(set(inPlan+"/total_example_count", examples), set(inPlan+"/total_token_count", tokens))
}

// scriptFaults are what the script refuses, in its order.
func scriptFaults() []fault {
	return []fault{
		{name: "not executed", edit: set("executed", "false"), rule: RuleExecution, want: "executed: got false, want true"},
		{name: "executed missing", edit: without("", "executed"), rule: RuleExecution, want: "executed: got no such key, want true"},
		{name: "executed 0", edit: set("executed", "0.0"), rule: RuleExecution, want: "executed: got 0.0, want true"},
		{name: "no receipt", edit: set("structural_target_receipt", "{}"), rule: RuleExecution, want: "structural_target_receipt: got {}, want a receipt"},
		{name: "input hash", edit: set(inInput+"/reference_input_sha256", bad), stale: true, rule: RuleInputHash, want: "reference_input.reference_input_sha256: got 0000"},
		{name: "input hash missing", edit: without(inInput, "reference_input_sha256"), stale: true, rule: RuleInputHash, want: "got no such key"},
		{name: "one token changed, hashes stale", edit: set(ex+"/0/token_ids/10", "6"), stale: true, rule: RuleInputHash, want: "example forced/one, prediction_plan.examples[0].token_ids_sha256: got"},
		{name: "nested keys reordered, hashes stale", edit: last(rc+"/2", "stable_id"), stale: true, rule: RuleInputHash, want: "example gen/é 😀, prediction_plan.examples[2].render_mode: got as key 1, want stable_id there"},
		{name: "manifest missing", edit: without(inPlan, "manifest_sha256"), stale: true, rule: RuleInputHash, want: "prediction_plan.manifest_sha256: got no such key"},
		{name: "plan no object", edit: set(inPlan, "[]"), stale: true, rule: RuleInputHash, want: "reference_input.prediction_plan: got [], want an object"},
		{name: "profile", edit: set(inInput+"/profile", `"exact_teacher_reference_input_v2"`), rule: RuleProfile, want: `reference_input.profile: got "exact_teacher_reference_input_v2", want "exact_teacher_reference_input_v1"`},
		{name: "vocabulary 0", edit: set(inInput+"/vocabulary_size", "0"), rule: RuleDimensions, want: "vocabulary_size: got 0, want 1 or more"},
		{name: "a receipt missing", edit: list(rc, drop(4)), rule: RuleDimensions, want: "prediction_plan.examples: got 4 receipts, want one for each of 5 examples"},
		{name: "receipt's id", edit: set(rc+"/1/stable_id", `"other"`), rule: RuleReceipt, want: "example no points, prediction_plan.examples[1].stable_id: got other, want no points"},
		{name: "receipt's mode", edit: set(rc+"/1/render_mode", `"generation_prompt"`), rule: RuleReceipt, want: "render_mode: got generation_prompt, want completed_transcript"},
		{name: "receipt's id a number", edit: all(set(ex+"/1/stable_id", `"1"`), set(rc+"/1/stable_id", "1")), rule: RuleReceipt, want: `example 1, prediction_plan.examples[1].stable_id: got 1, want "1"`},
		{name: "receipt's mode null", edit: all(set(ex+"/1/render_mode", `"null"`), set(rc+"/1/render_mode", "null")), rule: RuleReceipt, want: `render_mode: got null, want "null"`},
		{name: "receipt's count", edit: set(rc+"/1/token_count", "4"), rule: RuleReceipt, want: "token_count: got 4, want 3"},
		{name: "receipt's count as text", edit: set(rc+"/1/token_count", `"3"`), rule: RuleReceipt, want: `token_count: got "3", want 3`},
		{name: "receipt's hash", edit: set(rc+"/1/token_ids_sha256", bad), rule: RuleReceipt, want: "example no points, prediction_plan.examples[1].token_ids_sha256: got 0000"},
		{name: "one token changed", edit: set(ex+"/1/token_ids/1", "1"), rule: RuleReceipt, want: "example no points, prediction_plan.examples[1].token_ids_sha256: got"},
		{name: "one token more", edit: list(ex+"/1/token_ids", again(0)), rule: RuleReceipt, want: "token_count: got 3, want 4"},
		{name: "ids swapped", edit: list(ex+"/0/token_ids", swap(0, 1)), rule: RuleReceipt, want: "example forced/one, point 0, prefix_token_ids_sha256: got"},
		{name: "id outside", edit: set(inInput+"/vocabulary_size", "36"), rule: RuleReceipt, want: "example no points, examples[1].token_ids[0]: got 36, want 0 to 35, the vocabulary"},
		{name: "prefix hash", edit: set(pt+"/3/prefix_token_ids_sha256", bad), rule: RulePrefix, want: "example forced/one, point 3, prefix_token_ids_sha256: got 0000"},
		{name: "prefix off by one", edit: set(pt+"/0/prefix_token_count", "3"), rule: RulePrefix, want: "example forced/one, point 0, prefix_token_ids_sha256: got"},
		{name: "prefix too long", edit: set(pt+"/0/prefix_token_count", "12"), rule: RulePrefix, want: "point 0, prefix_token_count: got 12, want 1 to 11, the example's tokens"},
		{name: "prefix beyond any", edit: set(pt+"/0/prefix_token_count", "99999999999999999999"), rule: RulePrefix, want: "prefix_token_count: got 99999999999999999999, want 1 to 11"},
		{name: "kind no object", edit: set(pt+"/5/kind", `"generation_next"`), rule: RuleKind, want: `example gen/é 😀, point 5, kind: got "generation_next", want a tagged object`},
		{name: "unknown tag", edit: set(pt+"/5/kind/kind", `"sampled"`), rule: RuleKind, want: `kind.kind: got "sampled", want "teacher_forced" or "generation_next"`},
		{name: "no tag", edit: without(pt+"/5/kind", "kind"), rule: RuleKind, want: "kind.kind: got no tag"},
		{name: "a key more in a kind", edit: set(pt+"/5/kind/target_token_id", "1"), rule: RuleKind, want: "kind: got the keys kind, target_token_id, want exactly kind"},
		{name: "a key less in a kind", edit: without(pt+"/0/kind", "target_token_id"), rule: RuleKind, want: "want exactly kind, target_token_index, target_token_id"},
		{name: "forced index", edit: set(pt+"/0/kind/target_token_index", "5"), rule: RuleForcedTarget, want: "example forced/one, point 0, kind.target_token_index: got 5, want 4, the prefix's length"},
		{name: "forced id", edit: set(pt+"/0/kind/target_token_id", "6"), rule: RuleForcedTarget, want: "kind.target_token_id: got 6, want 5, token 4 of the example"},
		{name: "forced beyond the end", edit: set(pt+"/6/kind", `{"kind":"teacher_forced","target_token_index":1,"target_token_id":0}`), rule: RuleForcedTarget, want: "point 6, kind.target_token_index: got 1, want a token of the example, which has 1"},
		{name: "summary's plan hash", edit: set("prediction_plan_sha256", bad), stale: true, rule: RulePlanHash, want: "prediction_plan_sha256: got 0000"},
		{name: "plan hash a number", edit: all(set(inPlan+"/manifest_sha256", `"1"`), set("prediction_plan_sha256", "1"), rehashInput), stale: true, rule: RulePlanHash, want: `prediction_plan_sha256: got 1, want "1"`},
		{name: "points out of order", edit: all(list(pt, swap(3, 4)), ordinals), rule: RuleSchedule, want: "example forced/one, point 4, prefix_token_count: got 8, want 10 or more"},
		{name: "ordinals swapped", edit: all(set(pt+"/1/point_ordinal", "2"), set(pt+"/2/point_ordinal", "1")), rule: RuleSchedule, want: "point 1, point_ordinal: got 2, want 1"},
		{name: "ordinal repeated", edit: set(pt+"/8/point_ordinal", "7"), rule: RuleSchedule, want: "example forced/two, point 8, point_ordinal: got 7, want 8"},
		{name: "examples' points interleaved", edit: all(list(pt, swap(4, 5)), ordinals), rule: RuleSchedule, want: "point_ordinal: got 5, want 4: points are run by example"},
		{name: "two points of a prompt", edit: all(list(pt, func(a values) values { return slices.Insert(a, 6, a[5]) }), ordinals), rule: RulePrompt, want: "greedy_prompts[0]: got 2 points, want exactly one"},
		{name: "prompt of a forced example", edit: set(gp+"/1/stable_id", `"forced/two"`), rule: RulePrompt, want: "example forced/two, greedy_prompts[1]: got 2 points"},
		{name: "prompt with a forced point", edit: all(list(pt, drop(8)), ordinals, set(gp+"/1/stable_id", `"forced/two"`)), rule: RulePrompt, want: "example forced/two, point 7, greedy_prompts[1]: got a point of kind teacher_forced"},
		{name: "prompt of no example", edit: set(gp+"/0/stable_id", `"other"`), rule: RulePrompt, want: "example other, greedy_prompts[0].stable_id: got an example that the plan doesn't have"},
		{name: "prompt without a point", edit: set(gp+"/0/stable_id", `"no points"`), rule: RulePrompt, want: "example no points, greedy_prompts[0]: got 0 points"},
		{name: "prompt twice", edit: list(gp, again(0)), rule: RulePrompt, want: "greedy_prompts[2].stable_id: got a second prompt of the example"},
		{name: "an id twice, with points", edit: all(list(ex, again(0)), list(rc, again(0)), totals("6", "36")), rule: RuleIdentity, want: "example forced/one, examples[5].stable_id: got the id of examples[0] again, want one of its own"},
	}
}

// tracebackFaults are what the script ends on without a check.
func tracebackFaults() []fault {
	f := []fault{
		{name: "no object", edit: func(canonical.Value) canonical.Value { return value("[1]") }, stale: true, rule: RuleExecution, want: "the summary: got [1], want an object"},
		{name: "no input", edit: without("", "reference_input"), stale: true, rule: RuleFields, want: "reference_input: got no such key, want one"},
		{name: "input no object", edit: set("reference_input", "null"), stale: true, rule: RuleInputHash, want: "reference_input: got null, want an object"},
		{name: "limits missing", edit: without(inInput, "target_limits"), rule: RuleFields, want: "reference_input.target_limits: got no such key"},
		{name: "summary without its hash", edit: func(v canonical.Value) canonical.Value { return v.Without("prediction_plan_sha256") }, stale: true, rule: RuleFields, want: "prediction_plan_sha256: got no such key"},
		{name: "vocabulary no number", edit: set(inInput+"/vocabulary_size", `"many"`), rule: RuleDimensions, want: `vocabulary_size: got "many", want an integer`},
		{name: "examples a number", edit: set(ex, "3"), rule: RuleDimensions, want: "reference_input.examples: got 3, want an array"},
		{name: "example no object", edit: set(ex+"/1", "3"), rule: RuleReceipt, want: "examples[1]: got 3, want an object"},
		{name: "token no number", edit: set(ex+"/1/token_ids/1", "null"), rule: RuleReceipt, want: "example no points, examples[1].token_ids[1]: got null, want an integer"},
		{name: "tokens missing", edit: without(ex+"/1", "token_ids"), rule: RuleFields, want: "example no points, examples[1].token_ids: got no such key"},
		{name: "id no text", edit: all(set(ex+"/1/stable_id", "1"), set(rc+"/1/stable_id", "1")), rule: RuleFields, want: "examples[1].stable_id: got 1, want a string"},
		{name: "negative id", edit: set(ex+"/1/token_ids/1", "-1"), rule: RuleReceipt, want: "example no points, examples[1].token_ids[1]: got -1, want 0 to 36"},
		{name: "huge id", edit: set(ex+"/1/token_ids/1", "4294967296"), rule: RuleReceipt, want: "token_ids[1]: got 4294967296, want 0 to 36"},
		{name: "id beyond any", edit: set(ex+"/1/token_ids/1", "-99999999999999999999"), rule: RuleReceipt, want: "token_ids[1]: got -99999999999999999999, want 0 to 36"},
		{name: "points a number", edit: set(pt, "1"), rule: RulePrefix, want: "prediction_plan.prediction_points: got 1, want an array"},
		{name: "point of an unknown example", edit: set(pt+"/0/stable_id", `"other"`), rule: RuleIdentity, want: "example other, point 0, stable_id: got an example that the plan doesn't have"},
		{name: "point's hash missing", edit: without(pt+"/2", "prefix_token_ids_sha256"), rule: RuleFields, want: "prediction_points[2].prefix_token_ids_sha256: got no such key"},
		{name: "forced index no number", edit: set(pt+"/0/kind/target_token_index", "[]"), rule: RuleForcedTarget, want: "kind.target_token_index: got [], want an integer"},
		{name: "ordinal no number", edit: set(pt+"/0/point_ordinal", "null"), rule: RuleSchedule, want: "point 0, point_ordinal: got null, want an integer"},
		{name: "prompts a number", edit: set(gp, "1"), rule: RulePrompt, want: "prediction_plan.greedy_prompts: got 1, want an array"},
		{name: "prompt without an id", edit: without(gp+"/0", "stable_id"), rule: RuleFields, want: "greedy_prompts[0].stable_id: got no such key"},
	}
	for i := range f {
		f[i].script = Dies
	}
	return f
}

// rehashInput makes only the input's own hash right.
func rehashInput(v canonical.Value) canonical.Value {
	sum, _ := inputSHA256(at(v, inInput))
	return set(inInput+"/reference_input_sha256", `"`+sum.String()+`"`)(v)
}

func prefixOf(ids ...int) string {
	sum, err := PrefixSHA256(ids)
	if err != nil {
		panic(err)
	}
	return `"` + sum.String() + `"`
}

// ownFaults are what the script takes.
func ownFaults() []fault {
	forced := func(n, id string, prefix string) edit {
		return all(set(pt+"/0/prefix_token_count", n), set(pt+"/0/prefix_token_ids_sha256", prefix),
			set(pt+"/0/kind/target_token_index", n), set(pt+"/0/kind/target_token_id", id))
	}
	limit := func(key, n string) edit { return set(inPlan+"/limits/"+key, n) }
	target := func(key, n string) edit { return set(inInput+"/target_limits/"+key, n) }
	f := []fault{
		{name: "executed 1", edit: set("executed", "1"), rule: RuleFields, want: "executed: got 1, want true"},
		{name: "receipt a list", edit: set("structural_target_receipt", "[0]"), rule: RuleFields, want: "structural_target_receipt: got [0], want an object"},
		{name: "manifest hash", edit: all(set(inPlan+"/manifest_sha256", bad), set("prediction_plan_sha256", bad), rehashInput), stale: true, rule: RulePlanHash, want: "prediction_plan.manifest_sha256: got 0000"},
		{name: "plan changed, its hash stale", edit: all(set(inPlan+"/total_rendered_utf8_bytes", "98"), rehashInput), stale: true, rule: RulePlanHash, want: "prediction_plan.manifest_sha256: got"},
		{name: "schema of the input", edit: set(inInput+"/schema_version", "2"), rule: RuleProfile, want: "reference_input.schema_version: got 2, want 1"},
		{name: "schema of the plan", edit: set(inPlan+"/schema_version", "1.0"), rule: RuleProfile, want: "prediction_plan.schema_version: got 1.0, want 1"},

		{name: "a key more at the top", edit: set("extra", "1"), rule: RuleFields, want: "extra: got a key that isn't known, want none but executed, structural"},
		{name: "top keys reordered", edit: last("", "executed"), rule: RuleFields, want: "structural_target_receipt: got as key 1, want executed there"},
		{name: "a key more in the input", edit: set(inInput+"/extra", "1"), rule: RuleFields, want: "reference_input.extra: got a key that isn't known"},
		{name: "input's keys reordered", edit: last(inInput, "profile"), rule: RuleFields, want: "reference_input.prediction_plan: got as key 2, want profile there"},
		{name: "a key more in the plan", edit: set(inPlan+"/extra", "1"), rule: RuleFields, want: "prediction_plan.extra: got a key that isn't known"},
		{name: "plan's keys reordered", edit: last(inPlan, "limits"), rule: RuleFields, want: "prediction_plan.total_example_count: got as key 6, want limits there"},
		{name: "limits missing in the plan", edit: without(inPlan, "limits"), rule: RuleFields, want: "prediction_plan.limits: got no such key"},
		{name: "limits no object", edit: set(inPlan+"/limits", "3"), rule: RuleFields, want: "prediction_plan.limits: got 3, want an object"},
		{name: "a key more in an example", edit: set(ex+"/0/extra", "1"), rule: RuleFields, want: "example forced/one, examples[0].extra: got a key that isn't known"},
		{name: "a key more in a receipt", edit: set(rc+"/0/extra", "1"), rule: RuleFields, want: "example forced/one, prediction_plan.examples[0].extra: got"},
		{name: "receipt's keys reordered", edit: last(rc+"/0", "stable_id"), rule: RuleFields, want: "prediction_plan.examples[0].render_mode: got as key 1"},
		{name: "a key more in a point", edit: set(pt+"/3/extra", "1"), rule: RuleFields, want: "prediction_points[3].extra: got"},
		{name: "kind's keys reordered", edit: last(pt+"/0/kind", "target_token_index"), rule: RuleKind, want: "point 0, kind: got the keys kind, target_token_id, target_token_index, want kind, target_token_index, target_token_id: the order"},
		{name: "a key more in a prompt", edit: set(gp+"/0/extra", "1"), rule: RuleFields, want: "greedy_prompts[0].extra: got"},
		{name: "a key more in target limits", edit: target("extra", "1"), rule: RuleFields, want: "target_limits.extra: got"},
		{name: "an authority", edit: set(inInput+"/sensitivity_authority", "0"), rule: RuleFields, want: "reference_input.sensitivity_authority: got 0, want true or false"},
		{name: "a dependency", edit: set(inInput+"/runtime_dependency", "0"), rule: RuleFields, want: "reference_input.runtime_dependency: got 0, want true or false"},
		{name: "a hash in upper case", edit: set(inPlan+"/calibration_manifest_sha256", `"`+strings.Repeat("0A", 32)+`"`), rule: RuleFields, want: `calibration_manifest_sha256: got "0A0A`},
		{name: "a hash that is none", edit: set(inPlan+"/calibration_manifest_sha256", `"ABC"`), rule: RuleFields, want: `calibration_manifest_sha256: got "ABC", want 64 lower-case hexadecimal digits`},
		{name: "modes no text", edit: all(set(ex+"/1/render_mode", "null"), set(rc+"/1/render_mode", "null")), rule: RuleFields, want: "examples[1].render_mode: got null, want a string"},

		{name: "an id twice", edit: all(list(ex, again(1)), list(rc, again(1)), totals("6", "28")), rule: RuleIdentity, want: "example no points, examples[5].stable_id: got the id of examples[1] again"},
		{name: "fractional id", edit: set(ex+"/1/token_ids/1", "0.5"), rule: RuleFields, want: "example no points, examples[1].token_ids[1]: got 0.5, want an integer"},
		{name: "id a float", edit: set(ex+"/1/token_ids/0", "36.0"), rule: RuleFields, want: "token_ids[0]: got 36.0, want an integer"},
		{name: "id as text", edit: set(ex+"/1/token_ids/0", `" 3_6 "`), rule: RuleFields, want: `token_ids[0]: got " 3_6 ", want an integer`},
		{name: "id a boolean", edit: set(ex+"/1/token_ids/1", "false"), rule: RuleFields, want: "token_ids[1]: got false, want an integer"},
		{name: "count a float", edit: set(rc+"/1/token_count", "3.0"), rule: RuleFields, want: "token_count: got 3.0, want an integer"},
		{name: "vocabulary a float", edit: set(inInput+"/vocabulary_size", "37.5"), rule: RuleFields, want: "vocabulary_size: got 37.5, want an integer"},
		{name: "vocabulary as text", edit: set(inInput+"/vocabulary_size", `"37"`), rule: RuleFields, want: `vocabulary_size: got "37", want an integer`},
		{name: "prefix a float", edit: set(pt+"/0/prefix_token_count", "4.0"), rule: RuleFields, want: "point 0, prefix_token_count: got 4.0, want an integer"},
		{name: "ordinal a float", edit: set(pt+"/0/point_ordinal", "0.0"), rule: RuleFields, want: "point 0, point_ordinal: got 0.0, want an integer"},
		{name: "forced id a float", edit: set(pt+"/0/kind/target_token_id", "5.0"), rule: RuleFields, want: "kind.target_token_id: got 5.0, want an integer"},
		{name: "negative prefix", edit: forced("-1", "5", prefixOf(3, 1, 4, 1, 5, 9, 2, 6, 5, 3)), rule: RulePrefix, want: "example forced/one, point 0, prefix_token_count: got -1, want 1 to 11"},
		{name: "no prefix", edit: forced("0", "3", prefixOf()), rule: RulePrefix, want: "point 0, prefix_token_count: got 0, want 1 to 11"},
		{name: "ordinals by example, list not", edit: list(pt, func(a values) values { return append(a[7:9:9], a[:7]...) }), rule: RuleSchedule, want: "point 2, point_ordinal: got 0, want 2, its place in the list"},

		{name: "prompt's prefix", edit: set(gp+"/0/prefix_token_count", "3"), rule: RulePrompt, want: "example gen/é 😀, greedy_prompts[0].prefix_token_count: got 3, want 4, as at its point"},
		{name: "prompt's hash", edit: set(gp+"/0/prefix_token_ids_sha256", bad), rule: RulePrompt, want: "greedy_prompts[0].prefix_token_ids_sha256: got 0000"},
		{name: "prompt's prefix as text", edit: set(gp+"/0/prefix_token_count", `"4"`), rule: RuleFields, want: `greedy_prompts[0].prefix_token_count: got "4", want an integer, 0 or more`},
		{name: "no prompt of a generation point", edit: list(gp, drop(1)), rule: RulePrompt, want: "point 6, kind: got generation_next without a greedy prompt"},

		{name: "no points", edit: all(set(pt, "[]"), set(gp, "[]")), rule: RuleLimits, want: "prediction_points: got none, want at least one"},
		{name: "examples counted wrong", edit: totals("4", "25"), rule: RuleLimits, want: "total_example_count: got 4, want 5"},
		{name: "tokens counted wrong", edit: totals("5", "26"), rule: RuleLimits, want: "total_token_count: got 26, want 25"},
		{name: "bytes negative", edit: set(inPlan+"/total_rendered_utf8_bytes", "-1"), rule: RuleFields, want: "total_rendered_utf8_bytes: got -1, want an integer, 0 or more"},
		{name: "too many examples", edit: limit("max_examples", "4"), rule: RuleLimits, want: "limits.max_examples: got 5 examples, want at most 4"},
		{name: "too many tokens", edit: limit("max_tokens", "24"), rule: RuleLimits, want: "limits.max_tokens: got 25 tokens, want at most 24"},
		{name: "too many points", edit: limit("max_prediction_points", "8"), rule: RuleLimits, want: "limits.max_prediction_points: got 9 prediction points, want at most 8"},
		{name: "too many prompts", edit: limit("max_greedy_prompts", "1"), rule: RuleLimits, want: "limits.max_greedy_prompts: got 2 greedy prompts, want at most 1"},
		{name: "limit a float", edit: limit("max_tokens", "64.5"), rule: RuleFields, want: "limits.max_tokens: got 64.5, want an integer, 0 or more"},
		{name: "limit beyond any", edit: limit("max_tokens", "99999999999999999999"), rule: RuleFields, want: "limits.max_tokens: got 99999999999999999999, want an integer"},
		{name: "vocabulary too large", edit: target("max_vocabulary_size", "36"), rule: RuleLimits, want: "target_limits.max_vocabulary_size: got 37 ids of the vocabulary, want at most 36"},
		{name: "vocabulary beyond 32 bits", edit: all(set(inInput+"/vocabulary_size", "4294967296"), target("max_vocabulary_size", "4294967296")), rule: RuleDimensions, want: "vocabulary_size: got 4294967296, want one of ids that 32 bits hold"},
		{name: "too many rows", edit: target("max_prediction_rows", "8"), rule: RuleLimits, want: "target_limits.max_prediction_rows: got 9 rows, want at most 8"},
		{name: "target too large", edit: target("max_target_bytes", "1901"), rule: RuleLimits, want: "target_limits.max_target_bytes: got 1902 bytes of target, want at most 1901"},
		{name: "top_k 0", edit: target("top_k", "0"), rule: RuleLimits, want: "target_limits.top_k: got 0, want 1 to the vocabulary"},
		{name: "top_k above the vocabulary", edit: target("top_k", "38"), rule: RuleLimits, want: "target_limits.top_k: got 38, want 1 to the vocabulary"},
	}
	for i := range f {
		f[i].script = Accepts
	}
	return f
}

func (f fault) summary(t *testing.T) canonical.Value {
	v := f.edit(readCase(t, caseSummary))
	if !f.stale {
		v = rehashed(v)
	}
	return v
}

func TestEveryFaultOfAPlanIsNamed(t *testing.T) {
	for _, f := range faults() {
		t.Run(f.name, func(t *testing.T) {
			plan, problems := Check("x.json", f.summary(t))
			require.Nil(t, plan)
			require.NotEmpty(t, problems)
			var texts []string
			for _, p := range problems {
				texts = append(texts, p.Error())
			}
			text := strings.Join(texts, "\n")
			require.Equal(t, f.rule, problems[0].Rule, text)
			require.Equal(t, f.script, problems[0].Script, text)
			require.Contains(t, text, f.want)
			require.True(t, strings.HasPrefix(texts[0], "teacher: x.json: "), texts[0])
			require.Equal(t, f.script != Refuses, strings.Contains(texts[0], "a rule of our own"), texts[0])
			for i := 1; i < len(problems); i++ {
				require.False(t, problems[i-1].Script == Accepts && problems[i].Script != Accepts, "what the script refuses comes first: %s", text)
			}
			if !f.stale {
				require.LessOrEqual(t, len(problems), 6, "one fault, few problems: %s", text)
			}
		})
	}
}

// With nothing wrong, and with the hashes made again, the case is sound: the edits
// above make the difference.
func TestTheCaseIsSound(t *testing.T) {
	for _, v := range (values{readCase(t, caseSummary), rehashed(readCase(t, caseSummary))}) {
		plan, problems := Check("x.json", v)
		require.Empty(t, problems)
		require.Equal(t, caseVocab, plan.Vocab)
		require.Len(t, plan.Examples, 5)
		require.Equal(t, Example{"no points", "completed_transcript", []int{36, 0, 36}}, plan.Examples[1])
		require.Equal(t, `"`+plan.Points[0].PrefixSHA256.String()+`"`, prefixOf(3, 1, 4, 1))
		p := plan.Points[0]
		p.PrefixSHA256 = Sum{}
		require.Equal(t, Point{Ordinal: 0, Example: 0, Prefix: 4, Kind: TeacherForced, TargetIndex: 4, TargetID: 5}, p)
		require.Equal(t, GenerationNext, plan.Points[6].Kind)
		require.Equal(t, []Prompt{{2, 5, plan.Points[5].PrefixSHA256}, {3, 6, plan.Points[6].PrefixSHA256}}, plan.Prompts)
	}
}

// A plan may be as large as its limits say.
func TestAPlanAtItsLimitsIsSound(t *testing.T) {
	limits := set(inPlan+"/limits", `{"max_examples":5,"max_tokens":25,"max_prediction_points":9,"max_greedy_prompts":2}`)
	for name, e := range map[string]edit{
		"all":                set(inInput+"/target_limits", `{"max_vocabulary_size":37,"max_prediction_rows":9,"max_target_bytes":1902,"top_k":37}`),
		"smallest top_k":     set(inInput+"/target_limits/top_k", "1"),
		"largest vocabulary": all(set(inInput+"/vocabulary_size", "4294967295"), set(inInput+"/target_limits/max_vocabulary_size", "4294967295"), set(inInput+"/target_limits/max_target_bytes", "1099511627776")),
	} {
		_, problems := Check("x.json", rehashed(all(limits, e)(readCase(t, caseSummary))))
		require.Empty(t, problems, name)
	}
}

// What is no plan at all is told by its reader.
func TestParseRefusesWhatIsNoJSON(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "canonical: x.json: at byte 0x0: got the end",
		"{":                           "canonical: x.json: at byte 0x1",
		strings.Repeat("[", 10_000):   "deeper nesting, want at most 990 levels",
		`{"executed":NaN}`:            "invalid character 'N'",
		`{"executed":1,"executed":1}`: `got key "executed" twice`,
		"\xef\xbb\xbf{}":              "a byte order mark",
		"{\"\xff\":1}":                "invalid UTF-8",
		`{"a":"\ud800"}`:              "surrogate",
		"{} {}":                       "more after the JSON value",
	} {
		_, err := Parse("x.json", []byte(text))
		var syntax *canonical.SyntaxError
		require.ErrorAs(t, err, &syntax)
		require.ErrorContains(t, err, want)
	}
	path := filepath.Join(t.TempDir(), "x.json")
	f, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(1<<30))
	require.NoError(t, f.Close())
	var size *canonical.SizeError
	_, err = Read(path)
	require.ErrorAs(t, err, &size)
	require.ErrorContains(t, err, "got 1073741824 bytes, want at most 268435456 (not read)")
	_, err = Parse("x.json", make([]byte, MaxPlanBytes+1)) // of which no byte is touched
	require.ErrorAs(t, err, &size)
	require.ErrorContains(t, err, "x.json: ")
	require.ErrorContains(t, err, "got 268435457 bytes, want at most 268435456")
}

// A plan with thousands of faults is refused with the first thousand.
func TestProblemsAreFew(t *testing.T) {
	v := list(pt, func(a values) values {
		for range 3000 {
			a = append(a, value("0"))
		}
		return a
	})(readCase(t, caseSummary))
	_, problems := Check("x.json", v)
	require.Len(t, problems, mostProblems)
	require.Len(t, (&RefusedError{Problems: problems}).Problems, mostProblems)
	require.Contains(t, (&RefusedError{Problems: problems}).Error(), "(and 999 more)")
	require.NotEmpty(t, ofRule(problems, RuleInputHash))
	require.Empty(t, ofRule(problems, RuleKind))
}

// TestTheScriptAgrees asks the reference script itself (PLUMBLINE_TEACHER_SCRIPT names
// it, PLUMBLINE_PYTHON a Python with numpy) what it makes of every fault.
func TestTheScriptAgrees(t *testing.T) {
	script, python := os.Getenv("PLUMBLINE_TEACHER_SCRIPT"), os.Getenv("PLUMBLINE_PYTHON")
	if script == "" || python == "" {
		t.Skip("PLUMBLINE_TEACHER_SCRIPT and PLUMBLINE_PYTHON are not set")
	}
	dir := t.TempDir()
	type asked struct {
		Name    string `json:"name"`
		Summary string `json:"summary"`
	}
	ask := []asked{}
	want := []Script{}
	add := func(name string, v canonical.Value, s Script) {
		b, err := v.Append(nil, canonical.InsertionOrder)
		require.NoError(t, err)
		ask, want = append(ask, asked{name, string(b)}), append(want, s)
	}
	add("sound", readCase(t, caseSummary), Accepts)
	for _, f := range faults() {
		add(f.name, f.summary(t), f.script)
	}
	in, err := json.Marshal(ask)
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), python, "-B", "testdata/ask_script.py", script, dir)
	cmd.Stdin, cmd.Stderr = strings.NewReader(string(in)), os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	var got []string
	require.NoError(t, json.Unmarshal(out, &got))
	require.Len(t, got, len(want))
	for i, s := range want {
		word, _, _ := strings.Cut(got[i], ":")
		if word != [...]string{"refuses", "dies", "accepts"}[s] {
			t.Errorf("%s: the script %s, want %v", ask[i].Name, got[i], [...]string{"refuses", "dies", "accepts"}[s])
		}
	}
	t.Logf("the script agrees on %d summaries", len(got))
}
