package main

import "github.com/spf13/cobra"

// exactArgs is cobra's rule with our kind of error.
func exactArgs(n int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != n {
			return usageErrorf("got %d arguments, want %s", len(args), what)
		}
		return nil
	}
}

// need returns a usage error for the first required flag that is empty.
func need(flags ...[2]string) error {
	for _, f := range flags {
		if f[1] == "" {
			return usageErrorf("--%s is required", f[0])
		}
	}
	return nil
}
