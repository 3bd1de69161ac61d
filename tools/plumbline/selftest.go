package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/tools/suite"
)

func newSelftest(a *app) *cobra.Command {
	var f programFlags
	cmd := &cobra.Command{
		Use:   "selftest [--exec CMD [--protocol]]",
		Short: "The suite on its own planted faults, or a program on the two fakes",
		Long: `selftest shows that every check can fail: it runs each on the embedded model as it
is, which it must pass, and on that model with each of its controls planted, which
it must fail on. The table says by how many times over its bound a check failed
(excess), and how many times it has to (floor; exact checks have none).

With --exec it shows that the way between a program and Plumbline is sound, before
the engine behind it is judged. No model is needed. It says what the program declares
of itself (with --protocol in its handshake), and asks for the fakes: the right one,
the wrong one, and the right one again, so that an answer that was kept from before is
seen. What is wrong is named: the key or element of an answer, or the file, byte, row
and value of a dump.

` + smokeHelp + `

` + programHelp + `

Exit codes: 0 everything holds; 1 something doesn't; 2 the run itself broke.`,
		Example: `  plumbline selftest
  plumbline selftest --json
  plumbline selftest --exec './engine --ids {ids} --layers {layers}' --layers f32
  plumbline selftest --exec 'sh run.sh {ids_file} {text_file} {dir}' --json
  plumbline selftest --protocol --exec 'python3 serve.py' --timeout 1m`,
		Args: exactArgs(0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			if f.line != "" {
				return a.selftestProgram(cmd.Context(), &f)
			}
			return a.selftest(cmd.Context())
		},
	}
	f.register(cmd)
	return cmd
}

// proofResult is one line of selftest's table.
type proofResult struct {
	Check   string           `json:"check"`
	Side    conformance.Side `json:"side"`
	Control string           `json:"control"`
	// Layer is where the fault was planted, null when it has no place.
	Layer *int `json:"layer"`
	// Floor is null for an exact check, which just has to fail.
	Floor  *float64           `json:"floor"`
	Excess conformance.Number `json:"excess"`
	Failed bool               `json:"failed"`
	Holds  bool               `json:"holds"`
	Why    string             `json:"why,omitempty"`
}

// selftestResult is what --json prints.
type selftestResult struct {
	Holds  bool          `json:"holds"`
	Proofs []proofResult `json:"proofs,omitempty"`
	// Declares is what a program says of itself, null where it could not say it.
	Declares *declaration              `json:"declares,omitempty"`
	Fakes    []conformance.SmokeResult `json:"fakes,omitempty"`
}

func (a *app) selftest(ctx context.Context) error {
	cfg, err := suite.Embedded()
	if err != nil {
		return err
	}
	cfg.Cases = suite.ProofCases(cfg.Cases)
	runs := 0
	for _, c := range conformance.Builtin().Checks() {
		runs += 1 + len(c.Controls)
	}
	task := a.progress().Start("selftest", runs)
	cfg.Progress = func(done, total int, _ string) {
		if done == total {
			task.Step("runs")
		}
	}
	proofs, err := conformance.Prove(ctx, cfg)
	task.End()
	if err != nil {
		return err
	}
	return a.reportProofs(proofs)
}

func (a *app) reportProofs(proofs []conformance.Proof) error {
	out := selftestResult{Holds: len(proofs) > 0}
	for _, p := range proofs {
		r := proofResult{Check: p.Check, Side: p.Control.Side, Control: p.Control.Mutant,
			Excess: conformance.Number(p.Excess), Failed: p.Failed, Holds: p.Holds, Why: p.Why}
		if p.Control.Layer >= 0 {
			r.Layer = &p.Control.Layer
		}
		if p.Control.Floor > 0 {
			r.Floor = &p.Control.Floor
		}
		out.Holds = out.Holds && p.Holds
		out.Proofs = append(out.Proofs, r)
	}
	if err := a.emitSelftest(out, proofsText); err != nil {
		return err
	}
	return holdsOrFails(out.Holds)
}

func (a *app) emitSelftest(r selftestResult, text func(selftestResult) []byte) error {
	if a.json {
		return a.emitJSON(r)
	}
	return a.emit(text(r))
}

func holdsOrFails(holds bool) error {
	if holds {
		return nil
	}
	return exitWith(exitFails)
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "NO"
}

func proofsText(r selftestResult) []byte {
	var b bytes.Buffer
	t := newTable("check", "side", "control", "at", "floor", "excess", "holds").alignLeft(0, 1, 2)
	held := 0
	for _, p := range r.Proofs {
		at, floor, excess := "-", "exact", "-"
		if p.Layer != nil {
			at = strconv.Itoa(*p.Layer)
		}
		if p.Floor != nil {
			floor = strconv.FormatFloat(*p.Floor, 'g', -1, 64)
		}
		if p.Failed && p.Floor != nil {
			excess = excessText(float64(p.Excess))
		} else if p.Failed {
			excess = "failed"
		}
		note := ""
		if p.Why != "" {
			note = "  " + p.Why
		}
		if p.Holds {
			held++
		}
		t.add(note, p.Check, string(p.Side), p.Control, at, floor, excess, yesNo(p.Holds))
	}
	t.print(&b)
	fmt.Fprintf(&b, "\n%d of %d controls hold\n", held, len(r.Proofs))
	return b.Bytes()
}

// excessText is an excess with three digits; one that left the scale is a NaN
// or a zero bound.
func excessText(x float64) string {
	if math.IsInf(x, 1) {
		return "inf"
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

func cmpDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
