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

// Files are a plan's summary, and the target and evidence that belong to it.
type Files struct {
	Summary, Target, Evidence string
	// EachRow, if not nil, is called when so many rows of the target are verified.
	EachRow func(done, rows int)
}

// Verify holds a target and its evidence to their plan. What is refused is a
// [*RefusedError]: of the plan alone, where it has problems, else of target and
// evidence. What can't be read is another error. The target is streamed, and its
// first bad byte told.
func Verify(ctx context.Context, f Files) (*Verification, error) {
	plan, err := Read(f.Summary)
	if err != nil {
		return nil, asRefused(f.Summary, RuleFields, err)
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
	row := func(row, id int) {
		v.Argmax[row] = id
		if f.EachRow != nil {
			f.EachRow(row+1, len(plan.Points))
		}
	}
	if v.Target, err = dumpfmt.VerifyTarget(ctx, f.Target, plan.TargetSpec(), row); err != nil {
		if err := refused(f.Target, RuleTarget, err); err != nil {
			return nil, err
		}
	}
	held := EvidenceOf{Plan: plan, TargetFile: f.Target}
	if len(problems) == 0 {
		held.Target, held.Argmax = &v.Target, v.Argmax
	}
	value, err := checkEvidenceFile(f.Evidence, held)
	if err != nil {
		if err := refused(f.Evidence, RuleEvidence, err); err != nil {
			return nil, err
		}
	}
	if len(problems) > 0 {
		return nil, &RefusedError{Problems: problems}
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
	v, problems, err := CheckEvidenceBytes(path, data, of)
	if err != nil {
		return v, err
	}
	if len(problems) > 0 {
		return v, &RefusedError{Problems: problems}
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
	case errors.As(err, &format) && format.What == dumpfmt.WhatFileType:
		return err // nothing was read that could be refused
	case errors.As(err, &syntax), errors.As(err, &size), errors.As(err, &format):
		p := Problem{Rule: rule, File: file, Point: NoPoint, err: err}
		if size != nil || syntax != nil && syntax.Own {
			p.Script = Accepts
		}
		return &RefusedError{Problems: []Problem{p}}
	}
	return err
}
