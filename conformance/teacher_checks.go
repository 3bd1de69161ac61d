package conformance

import (
	"errors"
	"fmt"
	"slices"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/golden/teacher"
)

// Which check a rule of a teacher's files belongs to. A plan that is no JSON belongs
// to the first.
var (
	receiptRules = []teacher.Rule{teacher.RuleExecution, teacher.RuleInputHash, teacher.RuleProfile, teacher.RuleDimensions, teacher.RuleReceipt,
		teacher.RulePlanHash, teacher.RuleFields, teacher.RuleIdentity, teacher.RuleLimits}
	prefixRules     = []teacher.Rule{teacher.RulePrefix, teacher.RuleSchedule, teacher.RulePrompt}
	kindRules       = []teacher.Rule{teacher.RuleKind, teacher.RuleForcedTarget}
	trajectoryRules = []teacher.Rule{teacher.RuleTrajectory, teacher.RuleEvidence, teacher.RuleEvidenceHash, teacher.RuleFields}
)

// hashRules are those whose breach shows that something belongs to something else.
var hashRules = []teacher.Rule{teacher.RuleInputHash, teacher.RuleReceipt, teacher.RulePlanHash, teacher.RulePrefix, teacher.RuleEvidenceHash, teacher.RuleForcedTarget}

// planReceipts holds a plan's examples to their receipts.
func planReceipts() *Check {
	return &Check{
		ID: "PlanReceipts",
		Rule: "in a teacher's plan the stable id, render mode, count, hash and range of every example's tokens agree with its receipt, " +
			"and the hashes of the reference input and of the plan reproduce from their canonical bytes",
		Catches: []string{"a plan edited by hand", "a plan that another JSON writer wrote again", "a receipt of another tokenisation"},
		Level:   Extended,
		Sides:   []Side{SideCandidate},
		Needs:   NeedTeacher,
		Basis:   "exact: counts and hashes",
		Controls: []Control{
			{Mutant: "plan-token-changed", Side: SideCandidate, Layer: -1, Metric: string(teacher.RuleReceipt)},
			{Mutant: "plan-nested-keys-reordered", Side: SideCandidate, Layer: -1, Metric: string(teacher.RuleInputHash)},
			{Mutant: "plan-hash-of-another", Side: SideCandidate, Layer: -1, Metric: string(teacher.RulePlanHash)},
			{Mutant: "plan-no-json", Side: SideCandidate, Layer: -1, Kind: KindFormat},
		},
		Across: func(run *RunEvidence) *Outcome {
			if run.Teacher != nil && run.Teacher.PlanErr != nil {
				return unreadable(run.Teacher.planFile, run.Teacher.PlanErr)
			}
			return ofPlan(run, receiptRules)
		},
	}
}

// prefixHash holds prediction points to the tokens before them.
func prefixHash() *Check {
	return &Check{
		ID: "PrefixHash",
		Rule: "the prefix hash of every prediction point, and of every greedy prompt, reproduces from the tokens of its example; " +
			"within an example prefixes never shrink, and ordinals are the order in which points are run",
		Catches: []string{"a prefix that is off by one", "a point of another example", "points in an order that no cache can run"},
		Level:   Extended,
		Sides:   []Side{SideCandidate},
		Needs:   NeedTeacher,
		Basis:   "exact: hashes, and the order of points",
		Controls: []Control{
			{Mutant: "plan-prefix-off-by-one", Side: SideCandidate, Layer: -1, Metric: string(teacher.RulePrefix)},
			{Mutant: "plan-ids-swapped", Side: SideCandidate, Layer: -1, Metric: string(teacher.RulePrefix)},
			{Mutant: "plan-prefixes-shrink", Side: SideCandidate, Layer: -1, Metric: string(teacher.RuleSchedule)},
		},
		Across: func(run *RunEvidence) *Outcome { return ofPlan(run, prefixRules) },
	}
}

// pointKinds holds prediction points to the two kinds there are.
func pointKinds() *Check {
	return &Check{
		ID: "PointKinds",
		Rule: "the kind of every prediction point is a tagged object with exactly the canonical keys of its tag, " +
			"and a teacher-forced point's target is the token behind its prefix",
		Catches: []string{"a field that another version added", "a kind that nobody knows", "a target that is off by one"},
		Level:   Extended,
		Sides:   []Side{SideCandidate},
		Needs:   NeedTeacher,
		Basis:   "exact: keys and values",
		Controls: []Control{
			{Mutant: "kind-extra-key", Side: SideCandidate, Layer: -1, Metric: string(teacher.RuleKind)},
			{Mutant: "kind-unknown-tag", Side: SideCandidate, Layer: -1, Metric: string(teacher.RuleKind)},
			{Mutant: "kind-another-target", Side: SideCandidate, Layer: -1, Metric: string(teacher.RuleForcedTarget)},
		},
		Across: func(run *RunEvidence) *Outcome { return ofPlan(run, kindRules) },
	}
}

// targetFraming holds a target file to its plan, its values apart.
func targetFraming() *Check {
	return &Check{
		ID: "TargetFraming",
		Rule: "a teacher's target file is the magic and, per prediction point in order, ROW1, the ordinal, the vocabulary, the prefix hash, " +
			"the length and the row; its length is exact",
		Catches: []string{"a target of another plan", "a download that was cut", "a row that is written twice"},
		Level:   Extended,
		Sides:   []Side{SideCandidate},
		Needs:   NeedTeacher,
		Basis:   "exact: bytes",
		Controls: []Control{
			{Mutant: "target-truncated", Side: SideCandidate, Layer: -1, Kind: KindFormat},
			{Mutant: "target-ordinal-repeated", Side: SideCandidate, Layer: -1, Kind: KindFormat},
			{Mutant: "target-rows-swapped", Side: SideCandidate, Layer: -1, Kind: KindFormat},
			{Mutant: "target-byte-added", Side: SideCandidate, Layer: -1, Kind: KindFormat},
		},
		Across: func(run *RunEvidence) *Outcome {
			ev := run.Teacher
			switch {
			case ev == nil:
				return nil
			case ev.NoTarget != "":
				o := skip(ev.NoTarget)
				return &o
			case ev.FramingErr != nil:
				return unreadable(ev.targetFile, ev.FramingErr)
			case ev.ValueErr != nil:
				o := skip("a value isn't finite: the target file is read up to there")
				return &o
			}
			o := pass()
			return &o
		},
	}
}

// targetFinite wants numbers in a target file.
func targetFinite() *Check {
	return &Check{
		ID:      "TargetFinite",
		Rule:    "every value of a teacher's target file is finite",
		Catches: []string{"an overflow of the teacher", "a row that was never computed"},
		Level:   Extended,
		Sides:   []Side{SideCandidate},
		Needs:   NeedTeacher,
		Basis:   "exact: every value is finite",
		Controls: []Control{
			{Mutant: "target-nan", Side: SideCandidate, Layer: -1, Kind: KindFormat},
			{Mutant: "target-infinite", Side: SideCandidate, Layer: -1, Kind: KindFormat},
		},
		Across: func(run *RunEvidence) *Outcome {
			ev := run.Teacher
			switch {
			case ev == nil:
				return nil
			case ev.NoTarget != "":
				o := skip(ev.NoTarget)
				return &o
			case ev.FramingErr != nil:
				o := skip("the target file is framed otherwise: nobody knows where its values are")
				return &o
			case ev.ValueErr != nil:
				return unreadable(ev.targetFile, ev.ValueErr)
			}
			o := pass()
			return &o
		},
	}
}

// greedyTrajectory holds evidence to its plan and its target.
func greedyTrajectory() *Check {
	return &Check{
		ID: "GreedyTrajectory",
		Rule: fmt.Sprintf("a teacher's evidence has %d greedy tokens for each generation prompt, of which the first is the largest logit of the prompt's row, ", teacher.GreedyTokens) +
			"with their hash; it names this plan and this target, and its hash of itself reproduces",
		Catches: []string{"a trajectory that a stop id ended", "a token edited by hand", "evidence of another target"},
		Level:   Extended,
		Sides:   []Side{SideCandidate},
		Needs:   NeedTeacher,
		Basis:   "exact: tokens and hashes",
		Controls: []Control{
			{Mutant: "trajectory-token-changed", Side: SideCandidate, Layer: -1, Metric: string(teacher.RuleTrajectory)},
			{Mutant: "trajectory-short", Side: SideCandidate, Layer: -1, Metric: string(teacher.RuleTrajectory)},
			{Mutant: "trajectory-of-another-first-token", Side: SideCandidate, Layer: -1, Metric: string(teacher.RuleTrajectory)},
			{Mutant: "evidence-of-another-target", Side: SideCandidate, Layer: -1, Metric: string(teacher.RuleEvidence)},
			{Mutant: "evidence-byte-changed", Side: SideCandidate, Layer: -1, Metric: string(teacher.RuleEvidenceHash)},
		},
		Across: func(run *RunEvidence) *Outcome {
			ev := run.Teacher
			switch {
			case ev == nil:
				return nil
			case ev.NoEvidence != "":
				o := skip(ev.NoEvidence)
				return &o
			case ev.EvidenceErr != nil:
				return unreadable(ev.evidenceFile, ev.EvidenceErr)
			}
			return ofProblems(ev.EvidenceProblems, trajectoryRules)
		},
	}
}

// ofPlan is the outcome of the problems of a plan that break some rules.
func ofPlan(run *RunEvidence, rules []teacher.Rule) *Outcome {
	ev := run.Teacher
	switch {
	case ev == nil:
		return nil
	case ev.PlanErr != nil:
		o := skip("the plan can't be read")
		return &o
	}
	o := ofProblems(ev.PlanProblems, rules)
	if o.Status == Pass && ev.PlanBrokeOff {
		skipped := skip("the plan is refused before all of it was looked at")
		return &skipped
	}
	return o
}

func ofProblems(problems []teacher.Problem, rules []teacher.Rule) *Outcome {
	var fs []Finding
	kind := Kind("")
	for _, p := range problems {
		if !slices.Contains(rules, p.Rule) {
			continue
		}
		at := At{Row: -1, Channel: -1, File: p.File}
		if p.Point != teacher.NoPoint {
			at.Point = &p.Point
		}
		if fs = append(fs, Finding{Metric: string(p.Rule), Exact: true, Got: 1, Limit: Limit{0, "problems of the file"}, At: at, Detail: p.Error()}); kind == "" {
			kind = kindOfRule(p.Rule)
		}
	}
	o := pass()
	if len(fs) > 0 {
		o = fail(kind, fs...)
	}
	return &o
}

func kindOfRule(r teacher.Rule) Kind {
	if slices.Contains(hashRules, r) {
		return KindProvenance
	}
	return KindFormat
}

// unreadable is the outcome of a file that can't be read as what it should be.
func unreadable(file string, err error) *Outcome {
	f := Finding{Metric: "problems of the file", Exact: true, Got: 1, Limit: Limit{0, "a readable file"}, At: At{Row: -1, Channel: -1, File: file}, Detail: err.Error()}
	var format *dumpfmt.FormatError
	if errors.As(err, &format) && format.Offset >= 0 {
		f.Metric = fmt.Sprintf("%s at byte 0x%X", format.What, format.Offset)
	}
	o := fail(KindFormat, f)
	return &o
}
