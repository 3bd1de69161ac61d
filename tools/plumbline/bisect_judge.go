package main

import (
	"context"
	"fmt"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/dumpfmt"
)

// judgement is what a model adds to bisect's figures.
type judgement struct {
	// report is the verdict: conclusion, first_bad_row, kind, power, source,
	// sources, checks.
	report *conformance.Report
	// local[case][row] is the local error of a row (B_N of the verdict rules for
	// row N+1), NaN where there is none. A case may be absent.
	local map[string][]float64
	// exitCode is the code that the conclusion stands for.
	exitCode int
}

// judgeBisection is the SEAM to package conformance: it runs the model that
// --model names beside the candidate's folder and returns verdict and local
// errors. Everything around it (flags, columns, JSON, exit code) is in place.
func judgeBisection(_ context.Context, _ *app, _ *dumpfmt.Folder) (*judgement, error) {
	return nil, fmt.Errorf("bisect: --model: the local error isn't built in yet; unset %s to compare without a model", modelEnv)
}
