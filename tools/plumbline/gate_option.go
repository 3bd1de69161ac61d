package main

import (
	"github.com/spf13/cobra"

	"github.com/plumbline-go/plumbline/conformance"
)

// gateOption is a group of gate's flags that changes how a candidate is judged, in a
// file of its own.
type gateOption interface {
	register(cmd *cobra.Command)
	// check refuses flags that mean nothing together with the others.
	check(f *gateFlags) error
	// load reads the files that the flags name, before anything runs.
	load(f *gateFlags) error
	// apply changes the run.
	apply(cfg *conformance.Config)
	// args are the flags for the command that repeats a run.
	args() []string
}

// eachOption calls f until it gives an error.
func eachOption(options []gateOption, f func(gateOption) error) error {
	for _, o := range options {
		if err := f(o); err != nil {
			return err
		}
	}
	return nil
}
