package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/quant"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/golden"
	"github.com/plumbline-go/plumbline/tools/internal/progress"
)

// exitBisectSkip is what git bisect run takes for "this commit can't be judged".
const exitBisectSkip = 125

type gateFlags struct {
	candidate, golden, prompts, report string
	exact, partial, bisect, smoke      bool
	program                            programFlags
	waivers                            waiverFlags
	skips                              skipFlags
	baseline                           baselineFlags
	shards                             shardFlags
}

// options are the groups of flags that have a file of their own.
func (f *gateFlags) options() []gateOption {
	return []gateOption{&f.waivers, &f.skips, &f.baseline}
}

func newGate(a *app) *cobra.Command {
	var f gateFlags
	cmd := &cobra.Command{
		Use:   "gate --model DIR --candidate FOLDER | --exec CMD",
		Short: "Judge a candidate's dumps: every check that applies, and the verdict",
		Long: `gate judges a folder of dumps, or a program, against the float reference engine,
which runs the same checkpoint in this process. It names the first bad row and the
layer that introduced the error.

With --exact it compares two folders of one engine bit for bit (int8 codes with
their m and e, float bits, logits) and needs no model.

With --golden the cases are those of the golden folder, a case that the candidate
lacks is a failure, and the reference itself is held to the folder's float layer
dumps; a manifest beside the folder is verified, and with one of plumbline record the
checkpoint too. With --prompts the cases are the lines of a JSONL file,
{"name": …, "prompt": …}, as plumbline capture reads it.

The model's tokenizer, where its folder has one, says which ids a case's text should
have become.

` + programHelp + `

` + waiversHelp + `

` + skipsHelp + `

` + baselineHelp + `

--smoke first tests the way between the program and Plumbline on two fakes
(plumbline selftest --help describes them); a program with --protocol that says
"smoke":true is tested without being asked.

` + shardHelp + `

Exit codes: 0 conforms; 1 does not conform, a malformed candidate file included;
2 the run itself broke; 3 nothing, or a Core check nowhere, could be judged.
--allow-partial turns the latter half of 3 into 0, --git-bisect 2 and 3 into 125.`,
		Example: `  plumbline gate --model ./Qwen2.5-0.5B --candidate ./dumps
  plumbline gate --model ./Qwen2.5-0.5B --candidate ./dumps --json --allow-partial
  plumbline gate --model ./m --golden ./ref --exec './engine --ids {ids} --layers {layers}' --layers f32
  plumbline gate --model ./m --prompts p.jsonl --protocol --exec 'python3 serve.py' --timeout 1m
  plumbline gate --model ./m --candidate ./dumps --waivers waivers.json --skip 'StopRule=no stop ids yet'
  plumbline gate --model ./m --candidate ./dumps --aa ./dumps-again --report out
  plumbline gate --model ./m --candidate ./dumps --baseline out/report.json
  plumbline gate --model ./m --candidate ./dumps --shard 0/4 --report ./reports/0
  plumbline gate --exact --golden ./dumps-v1 --candidate ./dumps-v2
  git bisect run sh -c 'make dumps || exit 125; plumbline gate --git-bisect --model ./m --candidate ./dumps'`,
		Args: exactArgs(0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.gate(cmd, &f) },
	}
	for _, o := range f.options() {
		o.register(cmd)
	}
	fl := cmd.Flags()
	a.modelFlag(cmd, reference.Float32, judging())
	fl.StringVar(&f.candidate, "candidate", "", "dump folder of the engine under test")
	fl.StringVar(&f.golden, "golden", "", "dump folder whose cases must all be there, and that the reference is held to; with --exact, what the candidate must equal")
	fl.StringVar(&f.prompts, "prompts", "", "the prompts of a program, one JSON object a line")
	f.program.register(cmd)
	f.shards.register(cmd)
	fl.BoolVar(&f.smoke, "smoke", false, "test the program on the two fakes before it is judged")
	fl.StringVar(&f.report, "report", "", "folder, new or empty, that gets report.json, report.md, junit.xml and report.html")
	fl.BoolVar(&f.exact, "exact", false, "compare code by code with --golden, without a model")
	fl.BoolVar(&f.partial, "allow-partial", false, "exit 0 when nothing failed but a Core check was judged nowhere")
	fl.BoolVar(&f.bisect, "git-bisect", false, "exit 125 in place of 2 and 3")
	return cmd
}

func (a *app) gate(cmd *cobra.Command, f *gateFlags) error {
	err := a.gateRun(cmd, f)
	if code := exitCode(err); f.bisect && (code == exitBroken || code == exitNotJudged) {
		var e *exitError
		if errors.As(err, &e) {
			err = e.err
		}
		return &exitError{code: exitBisectSkip, err: err}
	}
	return err
}

func (a *app) gateRun(cmd *cobra.Command, f *gateFlags) error {
	if err := f.check(cmd); err != nil {
		return err
	}
	if f.report != "" {
		if err := emptyOrNew("report", f.report); err != nil {
			return err
		}
	}
	if err := eachOption(f.options(), func(o gateOption) error { return o.load(f) }); err != nil {
		return err
	}
	if err := a.openShard(cmd, f); err != nil {
		return err
	}
	a.wholeRun = a.reproduce(f)
	rep, err := a.gateReport(cmd, f)
	if err != nil {
		return f.waivers.named(err)
	}
	rep.Reproduce = a.wholeRun + f.shards.args(a.shard)
	return a.conclude(rep, f.partial, "report", f.report)
}

// check refuses flags that mean nothing together.
func (f *gateFlags) check(cmd *cobra.Command) error {
	if err := f.program.check(cmd); err != nil {
		return err
	}
	if err := eachOption(f.options(), func(o gateOption) error { return o.check(f) }); err != nil {
		return err
	}
	switch {
	case f.program.line == "" && f.candidate == "":
		return usageErrorf("--candidate is required, or --exec")
	case f.program.line == "" && f.smoke:
		return usageErrorf("--smoke needs --exec")
	case f.program.line == "" && f.prompts != "":
		return usageErrorf("--prompts needs --exec: a dump folder has its own")
	case f.program.line == "":
		return nil
	case f.candidate != "":
		return usageErrorf("--candidate and --exec: got both, want one")
	case f.exact:
		return usageErrorf("--exact compares two folders, not a program")
	case (f.golden == "") == (f.prompts == ""):
		return usageErrorf("--exec needs the cases: --golden or --prompts, one of them")
	}
	return nil
}

func (a *app) gateReport(cmd *cobra.Command, f *gateFlags) (*conformance.Report, error) {
	if f.exact {
		if err := need([2]string{"golden", f.golden}); err != nil {
			return nil, err
		}
		if a.model != "" {
			return nil, usageErrorf("--exact needs no --model: it compares two folders")
		}
		return conformance.Exact(cmd.Context(), f.golden, f.candidate)
	}
	var want wanted
	if f.golden != "" {
		var err error
		if want, err = openGolden(f.golden); err != nil {
			return nil, err
		}
		if err := a.holdRecording(f.golden, &want); err != nil {
			return nil, err
		}
	}
	want.options = f.options()
	if f.program.line == "" {
		return a.evaluate(cmd.Context(), "gate", f.candidate, want)
	}
	if f.prompts != "" {
		rows, err := a.readPrompts(f.prompts, defaultSystem)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			want.cases = append(want.cases, r.asCase())
		}
	}
	return a.evaluateProgram(cmd.Context(), &f.program, f.smoke, want)
}

// evaluate judges a dump folder against the model that --model names, on the
// folder's own cases when no others are wanted.
func (a *app) evaluate(ctx context.Context, what, folder string, want wanted) (*conformance.Report, error) {
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("--candidate %s: no such folder", folder)
	}
	ref, err := a.openReference()
	if err != nil {
		return nil, err
	}
	return a.judge(ctx, what, ref, engine.Dir(folder), want)
}

// judge judges a candidate against a reference.
func (a *app) judge(ctx context.Context, what string, ref *reference.Engine, candidate engine.Candidate, want wanted) (*conformance.Report, error) {
	text, err := a.text()
	if err != nil {
		return nil, err
	}
	cfg := conformance.Config{Reference: ref, Yardstick: quant.New(ref), Candidate: candidate, Cases: want.cases, Golden: want.golden, GoldenInputs: want.inputs,
		Encode: text.encoder(), Probes: conformance.StandardProbes(ref.Weights().Arch()),
		Power: want.power, Reproduce: a.wholeRun, Shard: a.shard, Costs: a.costs}
	var bar *progress.Task // the number of cases is known at the first step
	cfg.Progress = func(_, total int, name string) {
		if bar == nil {
			bar = a.progress().Start(what, total)
		}
		bar.Step(name)
	}
	for _, o := range want.options {
		o.apply(&cfg)
	}
	rep, err := conformance.Evaluate(ctx, cfg)
	if bar != nil {
		bar.End()
	}
	return rep, err
}

// wanted is what a candidate must answer, and what the reference is held to.
type wanted struct {
	cases  []engine.Case
	golden *golden.Set
	inputs golden.Inputs // of a recording
	power  []string      // of the report, further lines
	// options change how it is judged.
	options []gateOption
}

// openGolden reads a golden folder: its cases, and its float layer dumps.
func openGolden(dir string) (wanted, error) {
	folder, err := dumpfmt.OpenFolder(dir)
	if err != nil {
		return wanted{}, fmt.Errorf("--golden: %w", err)
	}
	w := wanted{}
	if w.golden, err = golden.OpenFolder(dir); err != nil {
		return w, fmt.Errorf("--golden: %w", err)
	}
	for _, c := range folder.Cases() {
		w.cases = append(w.cases, engine.Case{Name: c.Name, Text: c.File.Text, TokenIDs: c.File.TokenIDs, Stop: c.File.Stop})
	}
	return w, nil
}

func gateCode(c conformance.Conclusion, allowPartial bool) int {
	switch {
	case c == conformance.Conforms, c == conformance.Partial && allowPartial:
		return exitDone
	case c == conformance.Fails:
		return exitFails
	}
	return exitNotJudged
}

// reproduce is the command that repeats the run.
func (a *app) reproduce(f *gateFlags) string {
	args := []string{"plumbline", "gate"}
	if f.exact {
		args = append(args, "--exact")
	} else {
		args = append(args, "--model", a.modelPath())
		if a.dtype != "float32" {
			args = append(args, "--dtype", a.dtype)
		}
		if a.backend != "" {
			args = append(args, "--backend", a.backend)
		}
	}
	if f.golden != "" {
		args = append(args, "--golden", f.golden)
	}
	if f.prompts != "" {
		args = append(args, "--prompts", f.prompts)
	}
	if f.program.line != "" {
		args = append(args, f.program.args()...)
		if f.smoke {
			args = append(args, "--smoke")
		}
	} else {
		args = append(args, "--candidate", f.candidate)
	}
	if f.partial {
		args = append(args, "--allow-partial")
	}
	for _, o := range f.options() {
		args = append(args, o.args()...)
	}
	return shellJoin(args)
}
