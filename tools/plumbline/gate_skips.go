package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline-go/plumbline/conformance"
)

const skipsHelp = `--skip CHECK[:CASE]=REASON leaves a check out, everywhere or in one case, and says so
in the report; --only CHECK,… leaves out all others. A Core check that is left out,
of one case too, makes the verdict partial at best, and so does --only.`

// skipFlags leave checks out.
type skipFlags struct {
	skip, only []string
	skips      []conformance.CheckSkip
}

func (s *skipFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringArrayVar(&s.skip, "skip", nil, "leave a check out, `CHECK[:CASE]=REASON`; may be repeated")
	fl.StringSliceVar(&s.only, "only", nil, "run these checks only, with commas between them")
}

func (s *skipFlags) check(f *gateFlags) error {
	if f.exact && len(s.skip)+len(s.only) > 0 {
		return usageErrorf("--skip and --only: --exact has no checks to leave out")
	}
	for _, text := range s.skip {
		place, reason, _ := strings.Cut(text, "=")
		check, name, _ := strings.Cut(place, ":")
		if strings.TrimSpace(reason) == "" || check == "" {
			return usageErrorf("--skip: got %q, want CHECK=REASON or CHECK:CASE=REASON", text)
		}
		s.skips = append(s.skips, conformance.CheckSkip{Check: check, Case: name, Reason: reason})
	}
	return nil
}

func (s *skipFlags) load(*gateFlags) error { return nil }

func (s *skipFlags) apply(cfg *conformance.Config) { cfg.Skip, cfg.Only = s.skips, s.only }

func (s *skipFlags) args() []string {
	var args []string
	for _, text := range s.skip {
		args = append(args, "--skip", text)
	}
	if len(s.only) > 0 {
		args = append(args, "--only", strings.Join(s.only, ","))
	}
	return args
}
