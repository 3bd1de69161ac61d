package teacher

import (
	"context"
	"errors"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/golden/canonical"
)

// MaxEvidenceBytes is the size above which evidence isn't read.
const MaxEvidenceBytes = 64 << 20

// Verification is what [Verify] found sound.
type Verification struct {
	Plan   *Plan
	Target dumpfmt.TargetSum
	// Argmax is the lowest id of the largest value of each row.
	Argmax []int
	// EvidenceSHA256 is the evidence's hash of itself, Producer who it says made the
	// target.
	EvidenceSHA256 Sum
	Producer       string
}

// Verify holds the target and the evidence at two paths to the plan of a summary. What
// is refused is a [*RefusedError]: of the plan alone, where it has problems, else of
// target and evidence. What can't be read is another error. The target is streamed,
// and its first bad byte told.
func Verify(ctx context.Context, summary, target, evidence string) (*Verification, error) {
	plan, err := Read(summary)
	if err != nil {
		return nil, asRefused(summary, RuleFields, err)
	}
	v := &Verification{Plan: plan, Argmax: make([]int, len(plan.Points))}
	var problems []Problem
	refused := func(file string, rule Rule, err error) error {
		err = asRefused(file, rule, err)
		var r *RefusedError
		if !errors.As(err, &r) {
			return err
		}
		problems = append(problems, r.Problems...)
		return nil
	}
	if v.Target, err = dumpfmt.VerifyTarget(ctx, target, plan.TargetSpec(), func(row, id int) { v.Argmax[row] = id }); err != nil {
		if err := refused(target, RuleTarget, err); err != nil {
			return nil, err
		}
	}
	held := EvidenceOf{Plan: plan}
	if len(problems) == 0 {
		held.Target, held.Argmax = &v.Target, v.Argmax
	}
	value, err := checkEvidenceFile(evidence, held)
	if err != nil {
		if err := refused(evidence, RuleEvidence, err); err != nil {
			return nil, err
		}
	}
	if len(problems) > 0 {
		return nil, &RefusedError{problems}
	}
	self, _ := value.Get(selfHashKey)
	v.EvidenceSHA256, _ = parseSum(self)
	by, _ := value.Get("implementation")
	name, _ := by.Get("name")
	v.Producer, _ = name.Text()
	return v, nil
}

func checkEvidenceFile(path string, of EvidenceOf) (canonical.Value, error) {
	data, err := canonical.ReadBytes(path, MaxEvidenceBytes)
	if err != nil {
		return canonical.Value{}, err
	}
	v, err := canonical.Parse(path, data)
	if err != nil {
		return v, err
	}
	problems := CheckEvidence(path, v, of)
	if len(problems) == 0 {
		problems = checkSpelling(path, data, v)
	}
	if len(problems) > 0 {
		return v, &RefusedError{problems}
	}
	return v, nil
}

// asRefused makes a reader's complaint about a file's content a problem of the file;
// other errors stay what they are.
func asRefused(file string, rule Rule, err error) error {
	var refused *RefusedError
	var syntax *canonical.SyntaxError
	var size *canonical.SizeError
	var format *dumpfmt.FormatError
	switch {
	case errors.As(err, &refused):
		return err
	case errors.As(err, &syntax), errors.As(err, &size), errors.As(err, &format):
		return &RefusedError{[]Problem{{Rule: rule, File: file, Point: NoPoint, err: err}}}
	}
	return err
}
