package main

import (
	"context"
	"errors"
	"math"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/tools/internal/bisect"
)

// judgement is what a model adds to bisect's figures.
type judgement struct {
	// report is the verdict: conclusion, first_bad_row, kind, power, source,
	// sources, checks.
	report *conformance.Report
	// exitCode is the code that the conclusion stands for.
	exitCode int
}

// judgeBisection runs the model that --model names beside the candidate's
// folder and returns the verdict. Bisecting looks at layers alone,
// so Core checks of tokens and logits that nothing judged don't matter here.
func judgeBisection(ctx context.Context, a *app, cand *dumpfmt.Folder) (*judgement, error) {
	rep, err := a.evaluate(ctx, "bisect: judging", cand.Dir(), wanted{})
	if err != nil {
		return nil, err
	}
	if rep.ReferenceFailed {
		return nil, errors.New("the reference failed a check of its own: no verdict can be trusted")
	}
	return &judgement{report: rep, exitCode: gateCode(rep.Conclusion, true)}, nil
}

// depth is the error along the rows of a case as the model sees it; nil without
// a model, and for a case that it didn't judge by value.
func (b *bisection) depth(name string) []conformance.DepthRow {
	if b.judged == nil {
		return nil
	}
	return b.judged.report.Cases[name].Depth
}

// localError is the figure that tells an introduced error from an inherited
// one. Row 0 has none: no layer wrote it.
func (b *bisection) localError(c *bisect.Case, r bisect.Row) (float64, bool) {
	depth := b.depth(c.Name)
	if r.Index >= len(depth) || depth[r.Index].Local == nil {
		return math.NaN(), false
	}
	return float64(*depth[r.Index].Local), true
}
