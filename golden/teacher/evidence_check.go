package teacher

import (
	"bytes"
	"fmt"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/golden/canonical"
)

// EvidenceOf is what evidence is held to.
type EvidenceOf struct {
	Plan *Plan
	// Target and Argmax are the target file's sum and the largest id of each of its
	// rows; nil where it isn't known. TargetFile is its name.
	Target     *dumpfmt.TargetSum
	Argmax     []int
	TargetFile string
}

// evidenceChecker has no script behind it: nothing is marked as our own rule.
type evidenceChecker struct {
	checker
	of EvidenceOf
	// otherTarget is the problem of a target with another hash, -1 without one.
	otherTarget int
}

// CheckEvidence returns everything that is wrong with evidence: the constants, the
// plan and the target that it names, its trajectories, and last its hash of itself,
// which holds what nothing else can tell, such as the producer.
func CheckEvidence(name string, evidence canonical.Value, of EvidenceOf) []Problem {
	c := &evidenceChecker{checker{file: name}, of, -1}
	c.run(evidence)
	for i := range c.problems {
		c.problems[i].Script = Refuses
	}
	return c.problems
}

// CheckEvidenceBytes is [CheckEvidence] of the bytes of a file, which also have to be
// those that a producer writes. A text that is no JSON is a [*canonical.SyntaxError].
func CheckEvidenceBytes(name string, data []byte, of EvidenceOf) (canonical.Value, []Problem, error) {
	v, err := canonical.ParseAtMost(name, data, maxValues)
	if err != nil {
		return v, nil, err
	}
	problems := CheckEvidence(name, v, of)
	if len(problems) == 0 {
		problems = checkSpelling(name, data, v)
	}
	return v, problems, nil
}

func (c *evidenceChecker) run(v canonical.Value) {
	at := place{rule: RuleEvidence, point: NoPoint, what: "the evidence"}
	if v.Kind() != canonical.KindObject {
		c.add(at, Refuses, v.String(), "an object")
		return
	}
	at.what = ""
	c.fields(v, at, evidenceLayout)
	c.is(v, "schema_version", at, canonical.Int(1))
	c.is(v, "profile", at, canonical.String(evidenceProfile))
	c.is(v, "reference_input_sha256", at, canonical.String(c.of.Plan.InputSHA256.String()))
	c.is(v, "prediction_plan_sha256", at, canonical.String(c.of.Plan.PlanSHA256.String()))
	if artifact, ok := v.Get("target_artifact"); ok {
		c.artifact(artifact, at.at("target_artifact"))
	}
	if list, ok := c.list(v, "greedy_trajectories", at.of(RuleTrajectory)); ok {
		c.trajectories(list, at.of(RuleTrajectory))
	}
	if by, ok := v.Get("implementation"); ok {
		c.implementation(by, at.at("implementation"))
	}
	for _, f := range evidenceFlags {
		c.is(v, f.key, at, canonical.Bool(f.value))
	}
	got, ok := v.Get(selfHashKey)
	if !ok {
		return
	}
	if want := canonical.String(mustSum(v.Without(selfHashKey)).String()); !same(got, want) {
		c.unlike(at.of(RuleEvidenceHash).at(selfHashKey), Refuses, got, want)
	} else if c.otherTarget >= 0 && c.of.TargetFile != "" {
		// The evidence is as it was written, so that the target isn't.
		p := &c.problems[c.otherTarget]
		*p = Problem{Rule: RuleTarget, File: c.of.TargetFile, Point: NoPoint, What: "SHA-256 of the file", Got: p.Want, Want: p.Got + ", as " + dumpfmt.Printable(c.file) + " says"}
	}
}

// is demands one value of a member that is there.
func (c *evidenceChecker) is(v canonical.Value, key string, at place, want canonical.Value) {
	got, ok := v.Get(key)
	if ok {
		c.unlike(at.at(key), Refuses, got, want)
	}
}

// same reports whether two values have the same canonical bytes.
func same(a, b canonical.Value) bool {
	x, err := a.Append(nil, canonical.InsertionOrder)
	y, err2 := b.Append(nil, canonical.InsertionOrder)
	return err == nil && err2 == nil && bytes.Equal(x, y)
}

// checkSpelling holds the bytes of evidence to those that are written: a file that
// only means the same wasn't written by a producer.
func checkSpelling(name string, data []byte, evidence canonical.Value) []Problem {
	want, err := EvidenceBytes(evidence)
	if err != nil || bytes.Equal(data, want) {
		return nil
	}
	at := 0
	for at < min(len(data), len(want)) && data[at] == want[at] {
		at++
	}
	show := func(b []byte) string {
		if at < len(b) {
			return fmt.Sprintf("%q", b[at])
		}
		return "the end"
	}
	return []Problem{{Rule: RuleEvidence, File: name, Point: NoPoint, What: fmt.Sprintf("byte 0x%X", at), Got: show(data), Want: show(want) + ", as canonical JSON and a line break have it"}}
}

func (c *evidenceChecker) artifact(v canonical.Value, at place) {
	if !c.fields(v, at, artifactLayout) {
		return
	}
	c.is(v, "artifact_id", at, canonical.String(artifactID))
	c.is(v, "role", at, canonical.String(artifactRole))
	c.is(v, "byte_len", at, canonical.Int(c.of.Plan.TargetSpec().Size()))
	if c.of.Target == nil {
		c.hash256(v, "sha256", at)
		return
	}
	before := len(c.problems)
	c.is(v, "sha256", at, canonical.String(Sum(c.of.Target.SHA256).String()))
	if len(c.problems) > before {
		c.otherTarget = before
	}
}

func (c *evidenceChecker) trajectories(list canonical.Value, at place) {
	at = at.at("greedy_trajectories")
	prompts := c.of.Plan.Prompts
	c.differ(at, Refuses, fmt.Sprintf("%d trajectories", list.Len()), fmt.Sprintf("%d trajectories", len(prompts)))
	for i := range min(list.Len(), len(prompts)) {
		c.trajectory(list.Index(i), place{rule: RuleTrajectory, point: NoPoint, what: fmt.Sprintf("greedy_trajectories[%d]", i),
			example: c.of.Plan.Examples[prompts[i].Example].ID}, prompts[i])
	}
}

func (c *evidenceChecker) trajectory(v canonical.Value, at place, p Prompt) {
	if !c.fields(v, at, trajectoryLayout) {
		return
	}
	c.is(v, "stable_id", at, canonical.String(at.example))
	c.is(v, "prompt_token_ids_sha256", at, canonical.String(p.PrefixSHA256.String()))
	list, ok := v.Get("token_ids")
	if !ok {
		return
	}
	idsAt := at.at("token_ids")
	small, ok := list.Ints()
	if !ok {
		c.add(idsAt, Refuses, list.String(), "an array of integers")
		return
	}
	if len(small) != GreedyTokens {
		c.add(idsAt, Refuses, fmt.Sprintf("%d tokens", len(small)), fmt.Sprint(GreedyTokens))
	}
	ids := make([]int, len(small))
	for i, n := range small {
		if ids[i] = clamp(n); n < 0 || n >= int64(c.of.Plan.Vocab) {
			c.add(at.at(fmt.Sprintf("token_ids[%d]", i)), Refuses, fmt.Sprint(n), fmt.Sprintf("0 to %d, the vocabulary", c.of.Plan.Vocab-1))
			return
		}
	}
	if c.of.Argmax != nil && len(ids) > 0 && ids[0] != c.of.Argmax[p.Point] {
		first := at.at("token_ids[0]")
		first.point = p.Point
		c.add(first, Refuses, fmt.Sprint(ids[0]), fmt.Sprintf("%d, the largest logit of the point's row", c.of.Argmax[p.Point]))
	}
	if got, ok := v.Get("token_ids_sha256"); ok {
		want, err := TrajectorySHA256(ids)
		if err == nil { // else an id is out of range
			c.unlike(at.at("token_ids_sha256"), Refuses, got, canonical.String(want.String()))
		}
	}
}

// implementation: the script's producer has a Python version, ours one of Go.
func (c *evidenceChecker) implementation(v canonical.Value, at place) {
	l := implementationLayouts[0]
	if _, ok := v.Get("go_version"); ok {
		l = implementationLayouts[1]
	}
	if !c.fields(v, at, l) {
		return
	}
	for _, key := range l {
		switch key {
		case "cache_enabled":
			c.boolean(v, key, at)
		case "logit_dtype":
			c.is(v, key, at, canonical.String(logitDType))
		case "producer_sha256", "dependency_lock_sha256":
			c.hash256(v, key, at)
		default:
			c.text(v, key, at, Refuses)
		}
	}
}
