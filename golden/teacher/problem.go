package teacher

import (
	"errors"
	"fmt"
	"strings"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// Rule is what a plan, a target or evidence is held to.
type Rule string

// The rules of a plan, in the script's order.
const (
	// RuleExecution: the summary is one of a completed run, with a receipt.
	RuleExecution Rule = "execution"
	// RuleInputHash: reference_input_sha256 reproduces.
	RuleInputHash Rule = "input hash"
	// RuleProfile: profile and schema versions are known.
	RuleProfile Rule = "profile"
	// RuleDimensions: a vocabulary, and as many examples as receipts.
	RuleDimensions Rule = "dimensions"
	// RuleReceipt: id, render mode, count, hash and range of an example's tokens are
	// those of its receipt.
	RuleReceipt Rule = "receipt"
	// RulePrefix: a point's prefix hash reproduces from the example's tokens.
	RulePrefix Rule = "prefix"
	// RuleKind: a point's kind is a tagged object with exactly the tag's keys.
	RuleKind Rule = "kind"
	// RuleForcedTarget: a teacher-forced point's target is the token after its prefix.
	RuleForcedTarget Rule = "forced target"
	// RulePlanHash: the summary's plan hash is the plan's, and that one reproduces.
	RulePlanHash Rule = "plan hash"
	// RuleSchedule: points can be run in order, and have the ordinals of that order.
	RuleSchedule Rule = "schedule"
	// RulePrompt: a greedy prompt has one generation point, and its prefix.
	RulePrompt Rule = "prompt"
	// RuleFields: objects have their keys, no others, in order, of the right type.
	RuleFields Rule = "fields"
	// RuleIdentity: ids are unique, and name an example.
	RuleIdentity Rule = "identity"
	// RuleLimits: totals are right, and limits hold.
	RuleLimits Rule = "limits"
)

// The rules of a target and its evidence.
const (
	// RuleTarget: the target file is framed as the plan says, and finite.
	RuleTarget Rule = "target"
	// RuleEvidence: the evidence's constants, and the plan and target that it names.
	RuleEvidence Rule = "evidence"
	// RuleTrajectory: a greedy trajectory starts with the row's token, is 32 long and
	// has its hash.
	RuleTrajectory Rule = "trajectory"
	// RuleEvidenceHash: evidence_sha256 reproduces.
	RuleEvidenceHash Rule = "evidence hash"
)

// Script is what the reference script makes of a plan with a problem.
type Script uint8

const (
	// Refuses: the script has this check.
	Refuses Script = iota
	// Dies: it has none, but ends with a traceback; the rule is ours.
	Dies
	// Accepts: it has none and goes on; the rule is ours.
	Accepts
)

// NoPoint is the Point of a problem that concerns no prediction point.
const NoPoint = -1

// Problem is one thing that is wrong.
type Problem struct {
	Rule Rule
	// File is where it is.
	File string
	// Example is the stable id of the example at fault, "" without one; Point is the
	// place of the prediction point in the plan's list, or [NoPoint].
	Example string
	Point   int
	// What is the element, with what was found and expected.
	What, Got, Want string
	// Script is what the reference script does, where it is given a plan.
	Script Script

	err error // says it all, where it has its own text
}

// Own reports whether the rule is ours, not the script's.
func (p *Problem) Own() bool { return p.Script != Refuses }

func (p *Problem) Error() string {
	if p.err != nil {
		return p.err.Error()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "teacher: %s: ", dumpfmt.Printable(p.File))
	if p.Example != "" {
		fmt.Fprintf(&b, "example %s, ", shown(p.Example))
	}
	if p.Point != NoPoint {
		fmt.Fprintf(&b, "point %d, ", p.Point)
	}
	fmt.Fprintf(&b, "%s: got %s, want %s", shown(p.What), shown(p.Got), shown(p.Want))
	switch p.Script {
	case Dies:
		b.WriteString(" (a rule of our own: the script ends with a traceback)")
	case Accepts:
		b.WriteString(" (a rule of our own: the script takes it)")
	}
	return b.String()
}

// shown is a text of the file, on one line and no longer than helps.
func shown(s string) string {
	const limit = 200
	if r := []rune(s); len(r) > limit {
		s = string(r[:limit]) + "…"
	}
	return dumpfmt.Printable(s)
}

// Unwrap returns the error of the reader that found the problem, if one did.
func (p *Problem) Unwrap() error { return p.err }

// RefusedError says that a file is refused, with everything that is wrong; the first
// problem is the one that the script would end on, where it has a check for any.
type RefusedError struct {
	Problems []Problem
	// BrokeOff is true for a plan that can't be followed to its end, or has more
	// problems than are kept: a rule without a problem may still be broken.
	BrokeOff bool
}

func (e *RefusedError) Error() string {
	first := e.Problems[0].Error()
	if n := len(e.Problems) - 1; n > 0 {
		return fmt.Sprintf("%s (and %d more)", first, n)
	}
	return first
}

// Unwrap returns the first problem.
func (e *RefusedError) Unwrap() error { return &e.Problems[0] }

// Problems are what an error of [Read], [Parse] or [Verify] says is wrong with the
// content of files: nil for an error about something else. file is the plan's, for
// one that is no JSON.
func Problems(file string, err error) []Problem {
	var refused *RefusedError
	if errors.As(asRefused(file, RuleFields, err), &refused) {
		return refused.Problems
	}
	return nil
}
