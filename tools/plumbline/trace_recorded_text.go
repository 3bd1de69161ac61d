package main

import (
	"fmt"
	"strings"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/tools/internal/routes"
)

// conclude says what fails.
func (r *recordedResult) conclude() {
	fail := func(format string, args ...any) { r.Failures = append(r.Failures, fmt.Sprintf(format, args...)) }
	if n := len(r.Problems); n > 0 {
		fail("document: %s: %s", plural(n, "problem"), r.Problems[0])
	}
	hold := func(what string, rows []recordedStage) {
		for _, s := range rows {
			if n := len(s.Zero); n > 0 {
				fail("%s: %s: %s of zeros, the first %s, token %d", s.Name, what, plural(n, "row"), s.Zero[0].Condition, s.Zero[0].Token)
				continue
			}
			if !(s.Ratio <= recordedMultiple) {
				fail("%s: %s: %.3g times the error of %s from %s, want at most %d; worst is %s, token %d", s.Name, what, s.Ratio, r.Emulation, r.Reference, recordedMultiple, s.At.Condition, s.At.Token)
			} else if !(s.Worst <= worstMultiple) {
				fail("%s: %s: %s, token %d: %.3g times the error of %s from %s in that row or at the 99th percentile, want at most %d",
					s.Name, what, s.At.Condition, s.At.Token, s.Worst, r.Emulation, r.Reference, worstMultiple)
			}
		}
	}
	hold("hidden rows", r.Stages)
	hold("weights of experts", r.Weights)
	if r.Flip > 0 {
		fail("%s with experts that no near tie explains", plural(r.Flip, "row"))
	}
	r.rates(fail)
	r.Conclusion = string(conformance.Conforms)
	switch {
	case len(r.Failures) > 0:
		r.Conclusion = string(conformance.Fails)
	case len(r.Conditions) == 0 || len(r.Stages) == 0: // routes alone say little of a model
		r.Conclusion = string(conformance.NothingJudged)
	case len(r.Missing) > 0:
		r.Conclusion = string(conformance.Partial)
	}
}

func (r *recordedResult) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, %d of them with a hash, which held\n", dumpfmt.Printable(r.Source), plural(r.Tensors, "tensor"), r.Hashed)
	if r.Document > 0 {
		fmt.Fprintf(&b, "document: %d values compared, %s\n", r.Document, plural(len(r.Problems), "problem"))
		for _, p := range r.Problems[:min(len(r.Problems), 10)] {
			fmt.Fprintf(&b, "  %s\n", p)
		}
	}
	if len(r.Conditions) > 0 {
		fmt.Fprintf(&b, "\nhidden rows of %s, relative L2 from %s on the recorded experts; the bound is %d times the error of %s, 99th percentile of rows, and for the worst row %d times its own 99th percentile or error in that row\n",
			strings.Join(r.Conditions, ", "), r.Reference, recordedMultiple, r.Emulation, worstMultiple)
		printStages(&b, r.Stages)
		fmt.Fprintf(&b, "\nweights of the recorded experts, likewise\n")
		printStages(&b, r.Weights)
		b.WriteString("\n" + r.routes.Text(routes.Names{Judged: "the recorded run", Reference: r.Emulation, Noise: r.Emulation + " against " + r.Reference}))
		b.WriteString(r.ratesText())
	}
	b.WriteByte('\n')
	for _, m := range r.Missing {
		fmt.Fprintf(&b, "missing: %s of %s: %s\n", m.Kind, m.Name, strings.Join(m.Conditions, ", "))
	}
	for _, f := range r.Failures {
		fmt.Fprintf(&b, "FAIL %s\n", f)
	}
	fmt.Fprintf(&b, "conclusion: %s\n", r.Conclusion)
	return b.String()
}

func printStages(b *strings.Builder, rows []recordedStage) {
	t := newTable("stage", "rows", "recorded", "emulated", "ratio p99", "ratio max", "recorded from emulated", "equal rows").alignLeft(0)
	for _, s := range rows {
		t.add("", s.Name, fmt.Sprint(s.Rows), fmt.Sprintf("%.2e", s.Error), fmt.Sprintf("%.2e", s.Emulation), fmt.Sprintf("%.2f", s.Ratio), fmt.Sprintf("%.2f", s.Worst), fmt.Sprintf("%.2e", s.Apart), fmt.Sprint(s.Exact))
	}
	t.print(b)
}
