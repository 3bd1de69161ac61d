package conformance_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/conformance/report"
	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/golden"
	"github.com/plumbline-go/plumbline/tools/suite"
)

// The flags of this test binary: go test ./conformance -args -model DIR …
// A test runs in its package's folder, so the paths must be absolute.
var (
	modelFlag     = flag.String("model", "", "checkpoint to run as the reference; default the embedded one")
	candidateFlag = flag.String("candidate", "", "dump folder to judge; default the int8 emulation of the model")
	goldenFlag    = flag.String("golden", "", "dump folder whose cases the candidate must all answer, and whose float rows the reference is held to; needs -model")
	reportFlag    = flag.String("report", "", "folder that gets report.json, report.md, junit.xml and report.html; an earlier report in it is replaced")
	partialFlag   = flag.Bool("allow-partial", false, "pass although a Core check was judged on no case")
)

// ownSubject reports whether the flags put something of the user's to the test.
// The suite's proofs of itself then have nothing to add.
func ownSubject() bool { return *modelFlag != "" || *candidateFlag != "" }

// onlyOnEmbedded skips a proof of the suite itself.
func onlyOnEmbedded(t *testing.T) {
	t.Helper()
	if ownSubject() {
		t.Skip("a proof of the suite on its embedded model; run without -model and -candidate")
	}
}

// sweep marks a test that plants faults by the dozen: -short leaves it out, so
// that the race detector, which has no question about arithmetic, stays quick.
func sweep(t *testing.T) {
	t.Helper()
	onlyOnEmbedded(t)
	if testing.Short() {
		t.Skip("a sweep over planted faults; run without -short")
	}
}

// scaled is the scheme of the embedded default candidate.
var scaled = engine.Scheme{RowsInt8: true}

// embedded is the suite on the checkpoint and prompts that the module brings.
var embedded = sync.OnceValues(suite.Embedded)

// seeded is the suite on the checkpoint that was made for sweeps.
var seeded = sync.OnceValues(suite.Seeded)

// flagged is what the flags ask for: the embedded default without any.
func flagged() (conformance.Config, error) {
	for name, path := range map[string]string{"model": *modelFlag, "candidate": *candidateFlag, "golden": *goldenFlag, "report": *reportFlag} {
		if path != "" && !filepath.IsAbs(path) {
			return conformance.Config{}, fmt.Errorf("-%s %s: got a relative path, want an absolute one: a test runs in its package's folder", name, path)
		}
	}
	cfg, err := embedded()
	if err != nil {
		return cfg, err
	}
	if *modelFlag != "" {
		ckpt, err := reference.Load(*modelFlag)
		if err != nil {
			return cfg, err
		}
		cases := cfg.Cases
		if cfg, err = suite.On(ckpt, cases); err != nil {
			return cfg, err
		}
		if *candidateFlag == "" {
			cfg.Cases = inVocabulary(cases, ckpt.Arch().Vocab)
		}
		cfg.ReferenceCases = 1
	}
	if *candidateFlag != "" {
		cfg.Candidate, cfg.Cases = engine.Dir(*candidateFlag), nil
	}
	if *goldenFlag != "" {
		folder, err := dumpfmt.OpenFolder(*goldenFlag)
		if err != nil {
			return cfg, err
		}
		if cfg.Golden, err = golden.OpenFolder(*goldenFlag); err != nil {
			return cfg, err
		}
		cfg.Cases = nil
		for _, c := range folder.Cases() {
			if err := c.Check(); err != nil {
				return cfg, err
			}
			cfg.Cases = append(cfg.Cases, engine.Case{Name: c.Name, Text: c.File.Text, TokenIDs: c.File.TokenIDs, Stop: c.File.Stop})
		}
	}
	return cfg, nil
}

// inVocabulary keeps the cases that a model of another vocabulary can run.
func inVocabulary(cases []engine.Case, vocab int) []engine.Case {
	var out []engine.Case
next:
	for _, c := range cases {
		for _, id := range c.TokenIDs {
			if id >= vocab {
				continue next
			}
		}
		out = append(out, c)
	}
	return out
}

// reportErr is why the report couldn't be written: the checks are judged all the same,
// and the run fails in the end.
var reportErr error

// theReport is one evaluation that the tests of the single checks share.
var theReport = sync.OnceValues(func() (*conformance.Report, error) {
	cfg, err := flagged()
	if err != nil {
		return nil, err
	}
	if testing.Short() && !ownSubject() {
		// The race detector's runs: it has no question about arithmetic, and is slow.
		cfg.Cases, cfg.ReferenceCases = suite.ProofCases(cfg.Cases), 2
		few := *cfg.Routes
		few.Models = slices.Clone(few.Models)
		few.Models[0].Cases = []string{"clear"}
		cfg.Routes = &few
	}
	cfg.Shard = suiteShard
	rep, err := conformance.Evaluate(context.Background(), cfg)
	if err != nil {
		return nil, err
	}
	if *reportFlag != "" {
		rep.PartialAllowed = *partialFlag || !ownSubject()
		reportErr = report.OverwriteFolder(*reportFlag, rep)
	}
	return rep, nil
})

// holds asserts that the check held on every case of the side, and that at
// least one case was judged.
func holds(t *testing.T, id string, side conformance.Side) {
	t.Helper()
	rep, err := theReport()
	require.NoError(t, err)
	judged := 0
	for _, r := range rep.Checks {
		if r.ID != id || r.Side != side {
			continue
		}
		switch r.Status {
		case conformance.Fail, conformance.Error:
			t.Errorf("%s [%s %s]: %s\nrule: %s", r.Case, r.Side, r.Status, r.Reason, r.Rule)
			for i, f := range r.Findings {
				if i == 5 {
					t.Logf("  and %d more", len(r.Findings)-i)
					break
				}
				t.Logf("  %s", f)
			}
		case conformance.Pass:
			judged++
			if testing.Verbose() {
				for _, f := range r.Findings {
					t.Logf("%s: %s", r.Case, f)
				}
			}
		default:
			t.Logf("%s [%s]: %s: %s", r.Case, r.Side, r.Status, r.Reason)
			continue
		}
	}
	if judged == 0 && !t.Failed() {
		if s := rep.Shard; s != nil {
			t.Skipf("%s judged no case of the %s in shard %d of %d (index %d)", id, side, s.Index+1, s.Total, s.Index)
		}
		if ownSubject() {
			t.Skipf("%s judged no case of the %s", id, side)
		}
		t.Errorf("%s judged no case of the %s: nothing was shown", id, side)
	}
}

func TestMain(m *testing.M) {
	flag.Parse()
	if err := checkFlags(); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(2)
	}
	if err := openSuiteShard(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	code := m.Run()
	if reportErr != nil {
		fmt.Fprintln(os.Stderr, "conformance: -report:", reportErr)
		code = max(code, 1)
	}
	os.Exit(code)
}

func checkFlags() error {
	for name, f := range map[string]*string{
		"model": modelFlag, "candidate": candidateFlag, "golden": goldenFlag, "report": reportFlag,
	} {
		if *f != "" && !filepath.IsAbs(*f) {
			return fmt.Errorf("-%s %s: got a relative path, want an absolute one: a test runs in its package's folder", name, *f)
		}
	}
	if *goldenFlag != "" && *modelFlag == "" {
		return fmt.Errorf("-golden %s: got no -model, want the checkpoint that it was recorded from", *goldenFlag)
	}
	if *candidateFlag != "" && *modelFlag == "" {
		return fmt.Errorf("-candidate %s: got no -model, want the checkpoint that the candidate runs", *candidateFlag)
	}
	return nil
}
