package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/golden/canonical"
	"github.com/plumbline-go/plumbline/golden/teacher"
	"github.com/plumbline-go/plumbline/tools/suite"
)

type targetsFlags struct {
	model, dtype, backend     string
	summary, target, evidence string
}

func newTargets(a *app) *cobra.Command {
	var f targetsFlags
	cmd := &cobra.Command{
		Use:   "targets --model-dir DIR --source-teacher-summary FILE --output-target FILE --output-evidence FILE",
		Short: "Write the exact logits of a teacher at the points of a plan, with evidence, or verify them",
		Long: `Runs the plan in a source-teacher summary and writes, per prediction point, the whole row of logits
as float32 (the target), and JSON that binds plan, target and producer by SHA-256 (the evidence). Both
files have the bytes that the script qwen_teacher_reference.py gives them, but for the logits and who
made them. The evidence also goes to standard output.

The plan is checked first: hashes, receipts, prefixes, kinds, forced targets, order; and, by rules of
Plumbline's own, fields, types, ids, totals and limits. Each example runs as in the script: its tokens up
to the first point in one batch, then one by one; after a generation prompt 32 greedy tokens, the lowest
id of equal logits, over any end of sequence. A logit that isn't finite ends the run.

Neither file is ever written over another, and both are looked for before anything runs. Their folders are
made. Mode is 0600. Both are whole on the disk before either has its name; an error or an interrupt leaves
neither. What kills the process between the two names (kill -9, loss of power) leaves a target without
evidence, and elsewhere than on Linux a kill at any time may leave hidden temporary files, .NAME.tmp-…, as on
file systems of Linux without files that have no name. They are in nobody's way but such a target is: remove it.

--dtype bfloat16, the default, rounds as a bfloat16 run of transformers does.

Exit codes: 0 written; 1 the plan is refused; 2 anything else.`,
		Example: `  plumbline targets --model-dir ./qwen3_5 --source-teacher-summary summary.json --output-target out/target.bin --output-evidence out/evidence.json
  plumbline targets verify --source-teacher-summary summary.json --target out/target.bin --evidence out/evidence.json`,
		Args: exactArgs(0, "files are flags"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.model == "" {
				f.model = os.Getenv(modelEnv)
			}
			if err := need([2]string{"model-dir", f.model}, [2]string{"source-teacher-summary", f.summary},
				[2]string{"output-target", f.target}, [2]string{"output-evidence", f.evidence}); err != nil {
				return err
			}
			a.model, a.dtype, a.backend = f.model, f.dtype, f.backend
			return runTargets(cmd.Context(), a, f)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.model, "model-dir", "", "the teacher's checkpoint: a Hugging Face folder, a hub cache folder with one snapshot, or a GGUF file; default $"+modelEnv)
	fl.StringVar(&f.summary, "source-teacher-summary", "", "JSON of the source teacher's run, with the plan")
	fl.StringVar(&f.target, "output-target", "", "the target file to write")
	fl.StringVar(&f.evidence, "output-evidence", "", "the evidence to write")
	fl.StringVar(&f.dtype, "dtype", "bfloat16", "the reference's arithmetic: bfloat16 (emulated), float32 or float64")
	fl.StringVar(&f.backend, "backend", "", `the reference's GoMLX backend, as "go" or "go:OPTION,…"; default `+reference.DefaultBackend)
	cmd.AddCommand(newTargetsVerify(a))
	return cmd
}

func runTargets(ctx context.Context, a *app, f targetsFlags) error {
	if _, err := a.referenceOptions(); err != nil {
		return err
	}
	for _, out := range [][2]string{{"output-target", f.target}, {"output-evidence", f.evidence}} {
		if err := mayCreate(out[0], out[1]); err != nil {
			return err
		}
	}
	if sameName(f.target, f.evidence) {
		return usageErrorf("--output-evidence: got the file of --output-target, want another")
	}
	plan, err := teacher.Read(f.summary)
	if err != nil {
		return a.refusedPlan(f.summary, err)
	}
	ckpt, err := a.checkpoint()
	if err != nil {
		return err
	}
	if got := ckpt.Arch().Vocab; got != plan.Vocab {
		return fmt.Errorf("targets: %s: vocabulary: got %d, want %d, the plan's", dumpfmt.Printable(f.model), got, plan.Vocab)
	}
	if got, most := plan.MaxPositions(), ckpt.Arch().MaxPositions; most > 0 && got > most {
		return fmt.Errorf("targets: %s: got a plan of %d positions, want at most %d, the model's", dumpfmt.Printable(f.summary), got, most)
	}
	ref, err := a.openReference()
	if err != nil {
		return err
	}
	by, err := producer(ref.Describe(), ckpt.Arch().Family)
	if err != nil {
		return err
	}
	open := func(positions int) (teacher.Session, error) { return suite.OpenSession(ref, positions) }
	evidence, err := a.writeTargets(ctx, plan, open, by, f)
	if err != nil {
		return err
	}
	text, err := teacher.EvidenceBytes(evidence)
	if err != nil {
		return err
	}
	return a.emit(text)
}

// writeTargets writes both files, or neither. The places for both are taken before the
// run, which may take hours.
func (a *app) writeTargets(ctx context.Context, plan *teacher.Plan, open func(int) (teacher.Session, error), by teacher.Implementation, f targetsFlags) (evidence canonical.Value, err error) {
	w, err := dumpfmt.CreateTarget(f.target, plan.TargetSpec())
	if err != nil {
		return evidence, fmt.Errorf("targets: %w", err)
	}
	defer func() { _ = w.Abort() }()
	ev, err := dumpfmt.Create(f.evidence, dumpfmt.WriteOptions{Perm: 0o600, IgnoreUmask: true})
	if err != nil {
		return evidence, fmt.Errorf("targets: %w", err)
	}
	defer func() { _ = ev.Abort() }()

	task := a.progress().Start("targets", plan.Calls())
	defer task.End()
	label := "the first prefix"
	counted := func(positions int) (teacher.Session, error) {
		s, err := open(positions)
		return &countedSession{s, func() { task.Step(label) }}, err
	}
	trajectories, err := teacher.Execute(ctx, plan, counted, func(p teacher.Point, row []float32) error {
		label = fmt.Sprintf("point %d of %s", p.Ordinal, dumpfmt.Printable(plan.Examples[p.Example].ID))
		return w.WriteRow(p.Ordinal, row)
	})
	if err != nil {
		return evidence, fmt.Errorf("targets: nothing written: %w", err)
	}
	task.End()
	err = w.CommitWith(ev, func(sum dumpfmt.TargetSum) (text []byte, err error) {
		if evidence, err = teacher.NewEvidence(plan, sum, trajectories, by); err != nil {
			return nil, err
		}
		return teacher.EvidenceBytes(evidence)
	})
	if err != nil {
		return evidence, fmt.Errorf("targets: nothing written: %w", err)
	}
	return evidence, nil
}

// refusedPlan is exit 1 for a plan that was read and refused, with all that is wrong
// on standard error.
func (a *app) refusedPlan(path string, err error) error {
	problems := teacher.Problems(path, err)
	if problems == nil {
		return fmt.Errorf("targets: %w", err)
	}
	lines := make([]string, 0, len(problems))
	for i := range problems {
		lines = append(lines, problems[i].Error())
	}
	return &exitError{exitFails, fmt.Errorf("targets: the plan is refused: %s", strings.Join(cutList(lines, 20), "\n  "))}
}

// cutList is at most limit lines, and how many more there are.
func cutList(lines []string, limit int) []string {
	if more := len(lines) - limit; more > 0 {
		return append(lines[:limit:limit], fmt.Sprintf("and %d more", more))
	}
	return lines
}

// mayCreate finds an existing file, or a folder of that name, before the work; flag
// names it. The writer checks again.
func mayCreate(flag, path string) error {
	if strings.HasSuffix(path, string(filepath.Separator)) {
		return fmt.Errorf("--%s %s: got a folder, want a file to write", flag, dumpfmt.Printable(path))
	}
	_, err := os.Lstat(path)
	switch {
	case err == nil:
		return fmt.Errorf("--%s: %w: a target and its evidence are never overwritten", flag, &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist})
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("--%s: %w", flag, err)
	}
	return nil
}

// sameName reports whether two paths that don't exist are one.
func sameName(x, y string) bool {
	a, err := filepath.Abs(x)
	b, err2 := filepath.Abs(y)
	return err == nil && err2 == nil && a == b
}
