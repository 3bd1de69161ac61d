package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/golden/canonical"
	"github.com/plumbline-go/plumbline/golden/teacher"
	"github.com/plumbline-go/plumbline/tools/internal/progress"
)

func newTargetsVerify(a *app) *cobra.Command {
	var f teacher.Files
	cmd := &cobra.Command{
		Use:   "verify --source-teacher-summary FILE --target FILE --evidence FILE",
		Short: "Hold a target and its evidence to their plan, byte by byte",
		Long: `Checks the plan, then reads the target from its first byte to its last, in constant memory, and names
the first bad one: of the framing, of a logit that isn't finite, missing at the end, or beyond it. Of the
evidence it checks the constants, the hashes of plan and target, each greedy trajectory (32 tokens, the
first of them the largest logit of the point's row, the lowest id of equal ones) and the hash of itself.
No model is needed.

Everything that is wrong is listed, of a plan in the order in which the script qwen_teacher_reference.py
looks; rules that only Plumbline has are marked.

Exit codes: 0 plan, target and evidence belong together; 1 one of them is refused; 2 one can't be read.`,
		Example: `  plumbline targets verify --source-teacher-summary summary.json --target target.bin --evidence evidence.json
  plumbline targets verify --source-teacher-summary summary.json --target target.bin --evidence evidence.json --json`,
		Args: exactArgs(0, "none: files are flags"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := need([2]string{"source-teacher-summary", f.Summary}, [2]string{"target", f.Target}, [2]string{"evidence", f.Evidence}); err != nil {
				return err
			}
			return runTargetsVerify(cmd.Context(), a, f)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.Summary, "source-teacher-summary", "", "JSON of the source teacher's run, with the plan")
	fl.StringVar(&f.Target, "target", "", "the target file")
	fl.StringVar(&f.Evidence, "evidence", "", "its evidence")
	return cmd
}

func runTargetsVerify(ctx context.Context, a *app, f teacher.Files) error {
	printer := a.progress()
	var task *progress.Task
	f.EachRow = func(done, rows int) {
		if task == nil {
			task = printer.Start("targets verify", rows)
		}
		task.StepBytes(func() string { return fmt.Sprintf("row %d", done-1) }, 0)
	}
	v, err := teacher.Verify(ctx, f)
	if task != nil {
		task.End()
	}
	problems := teacher.Problems(f.Summary, err)
	if err != nil && problems == nil {
		return fmt.Errorf("targets verify: %w", err)
	}
	r := newVerifyReport(f, v, problems)
	if a.json {
		err = a.emitJSON(r)
	} else {
		err = a.emit([]byte(r.String()))
	}
	if err != nil {
		return err
	}
	if len(problems) > 0 {
		return exitWith(exitFails)
	}
	return nil
}

// verifyReport is what --json prints.
type verifyReport struct {
	// Conclusion is "conforms" or "fails".
	Conclusion string          `json:"conclusion"`
	Plan       *verifiedPlan   `json:"plan"`
	Target     *verifiedTarget `json:"target"`
	Evidence   *verifiedProof  `json:"evidence"`
	// Problems are in the order in which they were found; empty when it conforms.
	Problems []verifyProblem `json:"problems"`

	files teacher.Files
}

type verifiedPlan struct {
	Examples             int    `json:"examples"`
	Points               int    `json:"points"`
	Prompts              int    `json:"greedy_prompts"`
	Vocab                int    `json:"vocabulary_size"`
	ReferenceInputSHA256 string `json:"reference_input_sha256"`
	PlanSHA256           string `json:"prediction_plan_sha256"`
}

type verifiedTarget struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

type verifiedProof struct {
	Producer string `json:"producer"`
	SHA256   string `json:"evidence_sha256"`
}

type verifyProblem struct {
	Rule string `json:"rule"`
	// Own: the rule is Plumbline's, the script doesn't have it.
	Own     bool    `json:"own"`
	File    string  `json:"file"`
	Example *string `json:"example"`
	Point   *int    `json:"point"`
	// Offset is the byte at fault, null where none is.
	Offset *int64 `json:"offset"`
	What   string `json:"what"`
	Got    string `json:"got"`
	Want   string `json:"want"`
	Text   string `json:"text"`
}

func newVerifyReport(f teacher.Files, v *teacher.Verification, problems []teacher.Problem) *verifyReport {
	r := &verifyReport{Conclusion: "fails", Problems: []verifyProblem{}, files: f}
	if v != nil {
		p := v.Plan
		r.Conclusion = "conforms"
		r.Plan = &verifiedPlan{len(p.Examples), len(p.Points), len(p.Prompts), p.Vocab, p.InputSHA256.String(), p.PlanSHA256.String()}
		r.Target = &verifiedTarget{v.Target.Bytes, teacher.Sum(v.Target.SHA256).String()}
		r.Evidence = &verifiedProof{v.Producer, v.EvidenceSHA256.String()}
	}
	for i := range problems {
		r.Problems = append(r.Problems, newVerifyProblem(&problems[i]))
	}
	return r
}

func newVerifyProblem(p *teacher.Problem) verifyProblem {
	x := verifyProblem{Rule: string(p.Rule), Own: p.Own(), File: p.File, What: p.What, Got: p.Got, Want: p.Want, Text: p.Error()}
	if p.Example != "" {
		x.Example = &p.Example
	}
	if p.Point != teacher.NoPoint {
		x.Point = &p.Point
	}
	var format *dumpfmt.FormatError
	var syntax *canonical.SyntaxError
	switch {
	case errors.As(p, &format):
		x.What, x.Got, x.Want = format.What, format.Got, format.Want
		if format.Offset >= 0 {
			x.Offset = &format.Offset
		}
	case errors.As(p, &syntax):
		x.What, x.Got, x.Want, x.Offset = syntax.Pointer, syntax.Got, syntax.Want, &syntax.Offset
	}
	return x
}

// String is what the same run prints for people.
func (r *verifyReport) String() string {
	var b strings.Builder
	if r.Plan != nil {
		printLine(&b, "plan: %s: %s, %s, %s, vocabulary %d", r.files.Summary, plural(r.Plan.Examples, "example"), plural(r.Plan.Points, "point"), plural(r.Plan.Prompts, "greedy prompt"), r.Plan.Vocab)
		printLine(&b, "plan: reference_input_sha256 %s, prediction_plan_sha256 %s", r.Plan.ReferenceInputSHA256, r.Plan.PlanSHA256)
		printLine(&b, "target: %s: %d bytes, sha256 %s", r.files.Target, r.Target.Bytes, r.Target.SHA256)
		printLine(&b, "evidence: %s: by %s, evidence_sha256 %s", r.files.Evidence, r.Evidence.Producer, r.Evidence.SHA256)
	}
	var lines []string
	for _, p := range r.Problems {
		lines = append(lines, p.Text)
	}
	for _, l := range cutList(lines, 50) {
		printLine(&b, "refused: %s", l)
	}
	printLine(&b, "conclusion: %s", r.Conclusion)
	return b.String()
}
