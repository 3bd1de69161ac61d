package main

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/tools/internal/bisect"
)

type bisectFlags struct {
	ref, cand, refRepeat, candRepeat, groups, ratioTo string
}

func newBisect(a *app) *cobra.Command {
	var f bisectFlags
	cmd := &cobra.Command{
		Use:   "bisect --ref FOLDER --cand FOLDER",
		Short: "Compare the layer dumps of two folders row by row",
		Long: `Prints, for every case of the reference folder and every row of its layer dump:
Spearman (average ranks), Pearson of the z-scored rows (population standard deviation),
the largest |z-difference|, relative L2 and norm ratio. The first three can't see scale,
the last two can. A constant row's z-scores are all zeros; a correlation with a constant
row is NaN.

Without --model bisect measures and judges nothing, except rows that no engine may
produce (NaN, infinities, constant, all zero). With --model three columns are added:
the local error, which says which layer introduced what the later ones inherit; its
ratio to the yardstick's (local/yard); and the same for the error accumulated since the
embedding (accum/yard). The first bad row of a case is marked.

--groups FILE is a JSON object {"group": ["case", …]}; --ratio-to GROUP sets the other
groups' figures per row against that one's. --ref-repeat and --cand-repeat are folders of
a second run of the same build: what differs between the two is the resolving power.

A case whose dump is broken, missing or of another prompt costs none of the others.

Exit codes: 0 measured, and with --model nothing failed (without a model that is no
verdict; gate gives one on every check); 1 the candidate does not conform, a broken dump
or a row that no engine may produce included; 2 the run itself broke, a broken reference
dump included; 3 no case could be compared or judged.`,
		Example: `  plumbline bisect --ref goldens --cand dumps
  plumbline bisect --ref goldens --cand dumps --groups groups.json --ratio-to control
  plumbline bisect --ref goldens --cand dumps --model ./qwen2 --json`,
		Args: exactArgs(0, "none: the folders are flags"),
		RunE: func(cmd *cobra.Command, _ []string) error { return runBisect(cmd.Context(), a, f) },
	}
	a.modelFlag(cmd, reference.Float32, judging())
	fl := cmd.Flags()
	fl.StringVar(&f.ref, "ref", "", "dump folder of the reference (required)")
	fl.StringVar(&f.cand, "cand", "", "dump folder of the candidate (required)")
	fl.StringVar(&f.refRepeat, "ref-repeat", "", "dump folder of a second run of the reference")
	fl.StringVar(&f.candRepeat, "cand-repeat", "", "dump folder of a second run of the candidate")
	fl.StringVar(&f.groups, "groups", "", "JSON file that names groups of cases")
	fl.StringVar(&f.ratioTo, "ratio-to", "", "the group that the others' means are divided by")
	return cmd
}

// bisection is everything that bisect found.
type bisection struct {
	cases   []bisect.Case
	groups  []bisect.Group
	summary []bisect.GroupSummary
	// Medians by group, as summary; localErrors is nil without a model.
	relativeL2, localErrors []bisect.GroupMedians

	repeats []repeat
	ratioTo string
	// What the two folders declare.
	candidate, reference engine.Info
	judged               *judgement // nil without a model
}

// repeat is the comparison of two runs of one side.
type repeat struct {
	Side  bisect.Side
	Cases []bisect.Case
}

func runBisect(ctx context.Context, a *app, f bisectFlags) error {
	if err := need([2]string{"ref", f.ref}, [2]string{"cand", f.cand}); err != nil {
		return err
	}
	groups, err := readGroups(f)
	if err != nil {
		return err
	}
	ref, err := dumpfmt.OpenFolder(f.ref)
	if err != nil {
		return err // the golden's fault, or the flag's
	}
	cand, err := dumpfmt.OpenFolder(f.cand)
	if err != nil {
		return a.noBisection(f.cand, infoOf(ref), candidateFolderError(err))
	}
	b := &bisection{groups: groups, ratioTo: f.ratioTo, candidate: infoOf(cand), reference: infoOf(ref)}
	if b.cases, err = a.compare(ctx, "bisect", cand, ref); err != nil {
		return err
	}
	if b.groups == nil {
		b.groups = bisect.Everything(b.cases)
	}
	if err := bisect.CheckGroups(b.groups, b.cases); err != nil {
		return err
	}
	b.summary = bisect.SummariseGroups(b.groups, b.cases)
	b.relativeL2 = bisect.MedianOf(bisect.RelativeL2, b.groups, b.cases)
	for _, r := range []struct {
		side  bisect.Side
		dir   string
		first *dumpfmt.Folder
	}{{bisect.Candidate, f.candRepeat, cand}, {bisect.Reference, f.refRepeat, ref}} {
		if r.dir == "" {
			continue
		}
		second, err := dumpfmt.OpenFolder(r.dir)
		if err != nil {
			return err
		}
		cases, err := a.compare(ctx, "repeat of the "+string(r.side), second, r.first)
		if err != nil {
			return err
		}
		b.repeats = append(b.repeats, repeat{r.side, cases})
	}
	if a.modelPath() != "" {
		if b.judged, err = judgeBisection(ctx, a, cand); err != nil {
			return err
		}
		b.localErrors = bisect.MedianOf(b.localError, b.groups, b.cases)
	}
	if err := a.showBisection(b); err != nil {
		return err
	}
	return exitWith(b.exitCode())
}

func (a *app) compare(ctx context.Context, what string, cand, ref *dumpfmt.Folder) ([]bisect.Case, error) {
	task := a.progress().Start(what, len(ref.Cases()))
	defer task.End()
	return bisect.Compare(ctx, cand, ref, task.Step)
}

func infoOf(f *dumpfmt.Folder) engine.Info { return infoOfFile(f.Engine()) }

func infoOfFile(e dumpfmt.EngineFile) engine.Info {
	return engine.Info{Name: e.Name, Version: e.Version, Layers: e.Layers, Logits: e.Logits,
		Weights: e.Weights, Activations: e.Activations, KVCache: e.KVCache, DType: e.DType, Model: e.Model}
}

func readGroups(f bisectFlags) ([]bisect.Group, error) {
	if f.groups == "" {
		if f.ratioTo != "" {
			return nil, usageErrorf("--ratio-to %s: got no --groups", f.ratioTo)
		}
		return nil, nil
	}
	data, err := os.ReadFile(f.groups)
	if err != nil {
		return nil, err
	}
	groups, err := bisect.ParseGroups(f.groups, data)
	if err != nil {
		return nil, err
	}
	if f.ratioTo != "" && !slices.ContainsFunc(groups, func(g bisect.Group) bool { return g.Name == f.ratioTo }) {
		return nil, usageErrorf("--ratio-to %s: %s has no such group", f.ratioTo, f.groups)
	}
	return groups, nil
}

// candidateFolderError sorts what is wrong with a candidate's folder as a whole:
// no case at all is nothing to judge, a broken engine.json doesn't conform, and
// a folder that can't be read is a bad flag.
func candidateFolderError(err error) error {
	var none *dumpfmt.NoCasesError
	var format *dumpfmt.FormatError
	switch {
	case errors.As(err, &none):
		return &exitError{exitNotJudged, err}
	case errors.As(err, &format):
		return &exitError{exitFails, err}
	}
	return err
}

// exitCode weighs all cases: a broken reference breaks the run, a broken
// candidate doesn't conform, and nothing compared is never a success.
func (b *bisection) exitCode() int {
	code, compared := exitDone, 0
	worst := func(c int) {
		if c == exitBroken || code == exitDone {
			code = c
		}
	}
	for i := range b.cases {
		c := &b.cases[i]
		switch {
		case c.Err != nil:
			worst(codeOfFault(c.Err))
		case c.Compared():
			compared++
			if bad := firstBroken(c.Rows, bisect.Reference); bad >= 0 {
				worst(exitBroken)
			} else if firstBroken(c.Rows, bisect.Candidate) >= 0 {
				worst(exitFails)
			}
		}
	}
	for _, r := range b.repeats {
		for _, c := range r.Cases {
			switch { // both runs are of one side, whatever the fault says
			case c.Err == nil:
			case faultOf(c.Err) != nil && r.Side == bisect.Candidate:
				worst(exitFails)
			default:
				worst(exitBroken)
			}
		}
	}
	if code == exitDone && compared == 0 {
		return exitNotJudged
	}
	if b.judged != nil && code != exitBroken {
		return b.judged.exitCode
	}
	return code
}

// codeOfFault is 1 for the candidate's faults and 2 for everything else, an
// error of the system's included.
func codeOfFault(err error) int {
	if f := faultOf(err); f != nil && f.Side == bisect.Candidate {
		return exitFails
	}
	return exitBroken
}

// faultOf is the fault behind an error, if there is one.
func faultOf(err error) *bisect.Fault {
	var f *bisect.Fault
	errors.As(err, &f)
	return f
}
