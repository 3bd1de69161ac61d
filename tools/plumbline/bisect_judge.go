package main

import (
	"context"
	"errors"
	"math"

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

// judgeBisection runs the model that --model names beside the candidate's
// folder and returns verdict and local errors. Bisecting looks at layers alone,
// so Core checks of tokens and logits that nothing judged don't matter here.
func judgeBisection(ctx context.Context, a *app, cand *dumpfmt.Folder) (*judgement, error) {
	rep, err := a.evaluate(ctx, "bisect: judging", cand.Dir(), nil)
	if err != nil {
		return nil, err
	}
	if rep.ReferenceFailed {
		return nil, errors.New("the reference failed a check of its own: no verdict can be trusted")
	}
	j := &judgement{report: rep, local: map[string][]float64{}, exitCode: gateCode(rep.Conclusion, true)}
	for name, v := range rep.Cases {
		if len(v.Depth) == 0 {
			continue
		}
		local := make([]float64, len(v.Depth))
		for i, d := range v.Depth {
			local[i] = math.NaN()
			if d.Local != nil {
				local[i] = float64(*d.Local)
			}
		}
		j.local[name] = local
	}
	return j, nil
}
