package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/conformance/report"
	"github.com/plumbline-go/plumbline/dumpfmt"
)

func newBaseline(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "baseline",
		Short: "Look at the report that later runs are held to, or make the next one",
		Long: `A baseline is the report.json of a run that conforms. plumbline gate --baseline holds
later runs to it.`,
		Args: exactArgs(0, "show or ratchet"),
		RunE: func(*cobra.Command, []string) error {
			return usageErrorf("baseline: got no command, want show or ratchet")
		},
	}
	cmd.AddCommand(newBaselineShow(a), newBaselineRatchet(a))
	return cmd
}

func newBaselineShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "show FILE",
		Short:   "What a baseline is of, and its figures",
		Args:    exactArgs(1, "one report.json"),
		Example: `  plumbline baseline show baseline.json`,
		RunE: func(_ *cobra.Command, args []string) error {
			rep, err := report.ReadFile(args[0])
			if err != nil {
				return fmt.Errorf("baseline show: %w", err)
			}
			shown := showBaseline(rep)
			if a.json {
				err = a.emitJSON(shown)
			} else {
				err = a.emit(shown.text())
			}
			if err != nil {
				return err
			}
			return a.usableAsBaseline(rep, args[0])
		},
	}
}

// usableAsBaseline is the error that gate --baseline would give of a report, too.
func (a *app) usableAsBaseline(r *conformance.Report, path string) error {
	if err := conformance.UsableAsBaseline(r, path, true); err != nil {
		return fmt.Errorf("baseline show: not usable as a baseline: %w", err)
	}
	if conformance.UsableAsBaseline(r, path, false) != nil {
		fmt.Fprintf(a.stderr, "plumbline: %s: usable as a baseline with --allow-partial alone\n", dumpfmt.Printable(path))
	}
	return nil
}

// shownBaseline is what baseline show prints.
type shownBaseline struct {
	Conclusion conformance.Conclusion    `json:"conclusion"`
	Candidate  string                    `json:"candidate"`
	Version    string                    `json:"version,omitempty"`
	Model      string                    `json:"model"`
	Cases      int                       `json:"cases"`
	Figures    []conformance.FigureMean  `json:"figures"`
	Repeat     *conformance.RepeatInfo   `json:"repeat,omitempty"`
	Ratchet    []conformance.RatchetStep `json:"ratchet,omitempty"`
}

func showBaseline(r *conformance.Report) shownBaseline {
	return shownBaseline{Conclusion: r.Conclusion, Candidate: r.Candidate.Name, Version: r.Candidate.Version, Model: r.Reference.Model,
		Cases: len(r.Cases), Figures: conformance.FigureMeans(r), Repeat: r.Repeat, Ratchet: r.Ratchet}
}

func (s shownBaseline) text() []byte {
	var b bytes.Buffer
	candidate := strings.TrimSpace(s.Candidate + " " + s.Version)
	printLine(&b, "%s: candidate %s on model %s, %s", s.Conclusion, candidate, s.Model, plural(s.Cases, "case"))
	if s.Repeat == nil {
		printLine(&b, "noise: not measured (gate --aa or --aa-again)")
	} else {
		printLine(&b, "noise: two runs of the build, %d figures, up to a factor of %.4g apart", s.Repeat.Figures, float64(s.Repeat.Largest))
	}
	for i, step := range s.Ratchet {
		line := fmt.Sprintf("ratchet %d: %d better, %d kept", i+1, step.Improved, step.Kept)
		if step.Loosened > 0 {
			line += fmt.Sprintf(", %d loosened: %s", step.Loosened, step.Reason)
		}
		printLine(&b, "%s", line)
	}
	if len(s.Figures) == 0 {
		return b.Bytes()
	}
	fmt.Fprintln(&b)
	t := newTable("place", "figure", "mean", "cases").alignLeft(0, 1)
	for _, f := range s.Figures {
		t.add("", f.Probe, f.Metric, fmt.Sprintf("%.4g", float64(f.Mean)), fmt.Sprint(f.Cases))
	}
	t.print(&b)
	return b.Bytes()
}

type ratchetFlags struct {
	baseline, report, out string
	partial               bool
	loosen                bool
	reason                string
}

func newBaselineRatchet(a *app) *cobra.Command {
	var f ratchetFlags
	cmd := &cobra.Command{
		Use:   "ratchet --baseline OLD --report NEW --out FILE",
		Short: "Make the next baseline: what got better stays better",
		Long: `ratchet makes a baseline out of the present one and a newer report, and prints every
figure and verdict that changes. Only what is better beyond the noise becomes the newer
report's; other figures stay as they are, since a baseline that followed the noise would
drift. It refuses where anything got worse, unless --loosen says that this is meant and
--reason why, which the new baseline keeps. The output is to be reviewed like any change.

Exit codes: 0 written; 1 something got worse, nothing written; 2 the run itself broke.`,
		Example: `  plumbline baseline ratchet --baseline baseline.json --report out/report.json --out next.json
  plumbline baseline ratchet --baseline b.json --report out/report.json --out b.json --overwrite \
    --loosen --reason 'the KV cache is int8 now, #12'`,
		Args: exactArgs(0, "none"),
		RunE: func(*cobra.Command, []string) error { return a.ratchet(f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.baseline, "baseline", "", "the present baseline, a report.json")
	fl.StringVar(&f.report, "report", "", "the newer report.json")
	fl.StringVar(&f.out, "out", "", "where the next baseline goes")
	fl.BoolVar(&f.partial, "allow-partial", false, "take reports whose verdict is partial")
	fl.BoolVar(&f.loosen, "loosen", false, "let figures and verdicts get worse")
	fl.StringVar(&f.reason, "reason", "", "why the baseline is loosened")
	a.overwriteFlag(cmd)
	return cmd
}

// ratchetResult is what baseline ratchet --json prints.
type ratchetResult struct {
	Out          string                   `json:"out,omitempty"`
	Improvements []conformance.Change     `json:"improvements"`
	Regressions  []conformance.Change     `json:"regressions"`
	Step         *conformance.RatchetStep `json:"step,omitempty"`
}

func (a *app) ratchet(f ratchetFlags) error {
	if err := need([2]string{"baseline", f.baseline}, [2]string{"report", f.report}, [2]string{"out", f.out}); err != nil {
		return err
	}
	if f.loosen != (f.reason != "") {
		return usageErrorf("--loosen and --reason go together")
	}
	if err := a.mayWrite("out", f.out); err != nil {
		return err
	}
	old, err := readReport("baseline", f.baseline)
	if err != nil {
		return err
	}
	newer, err := readReport("report", f.report)
	if err != nil {
		return err
	}
	next, info, err := conformance.Ratchet(old, newer, conformance.RatchetOptions{OldName: f.baseline, NewName: f.report,
		AllowPartial: f.partial, Loosen: f.loosen, Reason: f.reason})
	var worse *conformance.WorseError
	if err != nil && !errors.As(err, &worse) {
		return err
	}
	res := ratchetResult{Improvements: info.Improvements, Regressions: info.Regressions}
	if worse == nil {
		if err := a.writeBaseline(next, f.out); err != nil {
			return err
		}
		res.Out, res.Step = f.out, &next.Ratchet[len(next.Ratchet)-1]
	}
	if a.json {
		if err := a.emitJSON(res); err != nil {
			return err
		}
	} else if err := a.emit(res.text()); err != nil {
		return err
	}
	if worse != nil {
		return &exitError{code: exitFails, err: fmt.Errorf("%w (--loosen with --reason takes it)", err)}
	}
	return nil
}

func (a *app) writeBaseline(r *conformance.Report, path string) error {
	out, err := dumpfmt.Create(path, dumpfmt.WriteOptions{Overwrite: a.overwrite})
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	if err := r.WriteJSON(out); err != nil {
		return errors.Join(err, out.Abort())
	}
	return out.Commit()
}

func (r ratchetResult) text() []byte {
	var b bytes.Buffer
	changes := func(word string, cs []conformance.Change) {
		for _, c := range cs {
			place := c.Check
			if c.Probe != "" {
				place += ", " + c.Probe
			}
			printLine(&b, "%s %s, %s: %s: %s, was %s (%s)", word, place, caseLabel(c.Case), c.Metric, figureText(c.After), figureText(c.Before), c.Detail)
		}
	}
	changes("WORSE ", r.Regressions)
	changes("better", r.Improvements)
	if r.Step == nil {
		printLine(&b, "nothing written: %s worse", plural(len(r.Regressions), "change"))
		return b.Bytes()
	}
	printLine(&b, "%s: %d better, %s kept, %d loosened", r.Out, r.Step.Improved, plural(r.Step.Kept, "figure"), r.Step.Loosened)
	return b.Bytes()
}

func caseLabel(name string) string {
	if name == "*" {
		return "all cases"
	}
	return dumpfmt.Printable(name)
}

func figureText(n conformance.Number) string {
	if math.IsNaN(float64(n)) {
		return "unmeasured"
	}
	return fmt.Sprintf("%.4g", float64(n))
}
