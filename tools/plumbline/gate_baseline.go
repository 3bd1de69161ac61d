package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
)

const baselineHelp = `--baseline F compares the run with an earlier report.json of the same candidate and
model: it fails when a figure is worse in all cases together, beyond the noise, when
something is judged no more, or when a waiver is used that the earlier run didn't
need. What two runs of one build differ by is measured with --aa FOLDER (dumps of a
second run of the same build) or, for a program, --aa-again (it is asked twice); a
report keeps it, and a later run uses its baseline's. plumbline baseline ratchet makes
the next baseline.`

// baselineFlags compare a run with an earlier one, and with itself.
type baselineFlags struct {
	file, aa string
	again    bool
	partial  *bool // --allow-partial

	baseline *conformance.Report
}

func (b *baselineFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&b.file, "baseline", "", "report.json of an earlier run that this one must not be worse than")
	fl.StringVar(&b.aa, "aa", "", "dump folder of a second run of the same build, to measure its noise by")
	fl.BoolVar(&b.again, "aa-again", false, "ask the program twice, to measure its noise by")
}

func (b *baselineFlags) check(f *gateFlags) error {
	b.partial = &f.partial
	switch {
	case f.exact && (b.file != "" || b.aa != "" || b.again):
		return usageErrorf("--baseline, --aa and --aa-again: --exact compares with --golden alone")
	case b.aa != "" && f.program.line != "":
		return usageErrorf("--aa: a program is asked again by --aa-again")
	case b.again && f.program.line == "":
		return usageErrorf("--aa-again needs --exec: the second run of a folder's build is another folder (--aa)")
	}
	return nil
}

func (b *baselineFlags) load(f *gateFlags) error {
	if b.aa != "" {
		second, err := os.Stat(b.aa)
		if err != nil || !second.IsDir() {
			return fmt.Errorf("--aa %s: no such folder", b.aa)
		}
		if first, err := os.Stat(f.candidate); err == nil && os.SameFile(first, second) {
			return fmt.Errorf("--aa %s: got the candidate's own folder, want the dumps of a second run", b.aa)
		}
	}
	if b.file == "" {
		return nil
	}
	var err error
	b.baseline, err = readReport("baseline", b.file)
	return err
}

func (b *baselineFlags) apply(cfg *conformance.Config) {
	cfg.Baseline, cfg.BaselineName = b.baseline, b.file
	cfg.AllowPartial = *b.partial
	switch {
	case b.aa != "":
		cfg.Repeat = engine.Dir(b.aa)
	case b.again:
		cfg.Repeat = cfg.Candidate
	}
}

func (b *baselineFlags) args() []string {
	var args []string
	for _, f := range [][2]string{{"--baseline", b.file}, {"--aa", b.aa}} {
		if f[1] != "" {
			args = append(args, f[0], f[1])
		}
	}
	if b.again {
		args = append(args, "--aa-again")
	}
	return args
}
