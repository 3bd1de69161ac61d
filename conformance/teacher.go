package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/golden"
	"github.com/plumbline-go/plumbline/golden/teacher"
)

// Teacher is a plan of a teacher with the target and the evidence that were made for
// it: what pins a teacher's exact logits.
type Teacher struct {
	// Plan is the source-teacher summary, Evidence the evidence; without the latter
	// nobody's trajectories are judged.
	Plan, Evidence []byte
	// Target is the target file, TargetBytes its length. It is streamed. nil leaves
	// the target out.
	Target      io.ReaderAt
	TargetBytes int64
	// PlanFile, TargetFile and EvidenceFile name the three in findings.
	PlanFile, TargetFile, EvidenceFile string
	// Golden is the set that target and evidence are from, where they were recorded
	// with provenance: it says how far the rows are from float64, and is held to its
	// manifest, with Checkpoint, what it was recorded from.
	Golden     *golden.TeacherSet
	Checkpoint fs.FS
	// Open opens the reference in the target's arithmetic, bfloat16, with room for so
	// many positions; nil leaves out the check of its rows. Float64 opens the same
	// model in float64, which bounds them where Golden doesn't.
	Open, Float64 func(maxPositions int) (teacher.Session, error)
	// Create starts a target file, as [dumpfmt.CreateTarget] does, which nil stands for.
	Create func(path string, spec dumpfmt.TargetSpec) (TargetWriter, error)
}

// TeacherEvidence is what the plan, the target and the evidence are found to be.
type TeacherEvidence struct {
	// Plan is nil where it is refused: PlanErr is set for one that is no JSON, else
	// PlanProblems are what is wrong, as far as it was looked at: with PlanBrokeOff not
	// to its end.
	Plan         *teacher.Plan
	PlanErr      error
	PlanProblems []teacher.Problem
	PlanBrokeOff bool
	// NoTarget says why the target isn't judged. FramingErr is what is wrong with its
	// framing, ValueErr with its values; the first byte at fault decides which.
	NoTarget             string
	FramingErr, ValueErr error
	// NoEvidence says why the evidence isn't judged. EvidenceErr is set for one that is
	// no JSON, else EvidenceProblems are what is wrong.
	NoEvidence       string
	EvidenceErr      error
	EvidenceProblems []teacher.Problem
	// Rows are the reference's beside the target's, Flips where its greedy trajectories
	// leave the recorded ones; NoRows says why there are none. RowsPlain is true where
	// their bounds aren't recorded.
	Rows      []TargetRow
	Flips     []TrajectoryFlip
	NoRows    string
	RowsPlain bool
	// Writer is what a writer of target files was seen to do; NoWriter says why it
	// wasn't tried.
	Writer   []WriterTrial
	NoWriter string

	planFile, targetFile, evidenceFile string
	sum                                *dumpfmt.TargetSum
	argmax                             []int
	// greedy are the recorded trajectories, by the index of the example.
	greedy map[int][]int
}

// teacherEvidence reads plan, target and evidence, if a check looks at them.
func teacherEvidence(ctx context.Context, cfg *Config, checks []*Check) (*TeacherEvidence, error) {
	var needs Need
	for _, c := range checks {
		needs |= c.Needs & (NeedTeacher | NeedTargetRows | NeedTargetWriter)
	}
	t := cfg.Teacher
	if t == nil || needs == 0 {
		return nil, nil
	}
	if len(t.Plan) == 0 {
		return nil, errors.New("conformance: Config.Teacher: Plan is empty: nothing says what there is to judge")
	}
	ev := &TeacherEvidence{planFile: t.PlanFile, targetFile: t.TargetFile, evidenceFile: t.EvidenceFile}
	if needs&(NeedTeacher|NeedTargetRows) != 0 {
		ev.readPlan(t)
		if err := ev.readTarget(ctx, t); err != nil {
			return nil, fmt.Errorf("conformance: teacher: %w", err)
		}
		ev.readEvidence(t)
	}
	if needs&NeedTargetRows != 0 {
		if err := ev.runReference(ctx, t); err != nil {
			return nil, fmt.Errorf("conformance: teacher: %w", err)
		}
	}
	if needs&NeedTargetWriter != 0 {
		ev.tryWriter(t.Create)
	}
	return ev, nil
}

func (ev *TeacherEvidence) readPlan(t *Teacher) {
	plan, err := teacher.Parse(t.PlanFile, t.Plan)
	var refused *teacher.RefusedError
	switch {
	case err == nil:
		ev.Plan = plan
	case errors.As(err, &refused):
		ev.PlanProblems, ev.PlanBrokeOff = refused.Problems, refused.BrokeOff
	default:
		ev.PlanErr = err
	}
}

// readTarget streams the target. The error is the run's: of reading, not of what was
// read.
func (ev *TeacherEvidence) readTarget(ctx context.Context, t *Teacher) error {
	switch {
	case t.Target == nil:
		ev.NoTarget = "the run has no target file"
		return nil
	case ev.Plan == nil:
		ev.NoTarget = "the plan is refused: nothing says what the target has to hold"
		return nil
	}
	ev.argmax = make([]int, len(ev.Plan.Points))
	sum, err := dumpfmt.VerifyTargetReader(ctx, t.Target, t.TargetBytes, t.TargetFile, ev.Plan.TargetSpec(), func(row, id int) { ev.argmax[row] = id })
	content, err := ofFormat(err)
	var format *dumpfmt.FormatError
	switch {
	case err != nil:
		return err
	case errors.As(content, &format) && format.Value:
		ev.ValueErr = content
	case content != nil:
		ev.FramingErr = content
	default:
		ev.sum = &sum
	}
	return nil
}

// ofFormat tells what is wrong with a file from what is wrong with reading it.
func ofFormat(err error) (content, reading error) {
	var format *dumpfmt.FormatError
	var unsupported *dumpfmt.UnsupportedError
	if errors.As(err, &format) || errors.As(err, &unsupported) {
		return err, nil
	}
	return nil, err
}

func (ev *TeacherEvidence) readEvidence(t *Teacher) {
	switch {
	case t.Evidence == nil:
		ev.NoEvidence = "the run has no evidence"
		return
	case ev.Plan == nil:
		ev.NoEvidence = "the plan is refused: nothing says what the evidence has to name"
		return
	}
	of := teacher.EvidenceOf{Plan: ev.Plan, Target: ev.sum}
	if ev.sum != nil {
		of.Argmax = ev.argmax
	}
	v, problems, err := teacher.CheckEvidenceBytes(t.EvidenceFile, t.Evidence, of)
	ev.EvidenceProblems, ev.EvidenceErr = problems, err
	if err != nil || len(problems) > 0 {
		return
	}
	ev.greedy = map[int][]int{}
	list, _ := v.Get("greedy_trajectories")
	for i, p := range ev.Plan.Prompts {
		ids, _ := list.Index(i).Get("token_ids")
		small, _ := ids.Ints()
		for _, id := range small {
			ev.greedy[p.Example] = append(ev.greedy[p.Example], int(id))
		}
	}
}
