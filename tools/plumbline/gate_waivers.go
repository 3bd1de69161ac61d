package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/plumbline-go/plumbline/conformance"
)

const waiversHelp = `--waivers F names failures that are known and accepted for a while, in JSON:
  {"waivers": [{"check": "LocalError", "case": "NAME", "reason": "issue 12",
    "expires": "2026-12-31", "probe": "blocks.7.resid_post"}]}
The case "*" is the verdict over all cases; probe may be left out. A waived failure
counts neither as one nor as a verdict. A waiver that has expired, or that waives
nothing, makes the run fail.`

// waiverFlags name the waivers.
type waiverFlags struct {
	file    string
	waivers []conformance.Waiver
}

func (w *waiverFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&w.file, "waivers", "", "JSON file of failures that are accepted for a while")
}

func (w *waiverFlags) check(f *gateFlags) error {
	if w.file != "" && f.exact {
		return usageErrorf("--waivers: --exact takes none: bits are the same or not")
	}
	return nil
}

func (w *waiverFlags) load(*gateFlags) error {
	if w.file == "" {
		return nil
	}
	file, err := os.Open(w.file)
	if err != nil {
		return fmt.Errorf("--waivers: %w", err)
	}
	defer file.Close()
	w.waivers, err = conformance.ReadWaivers(file, w.file)
	return err
}

func (w *waiverFlags) apply(cfg *conformance.Config) { cfg.Waivers = w.waivers }

func (w *waiverFlags) args() []string {
	if w.file == "" {
		return nil
	}
	return []string{"--waivers", w.file}
}

// named says in which file the waiver stands that a run refused.
func (w *waiverFlags) named(err error) error {
	var bad *conformance.WaiverError
	if errors.As(err, &bad) && bad.File == "" {
		bad.File = w.file
	}
	return err
}
