package conformance

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/plumbline-go/plumbline/engine"
)

// Proof is the demonstration that a check fails on one of its controls.
type Proof struct {
	Check   string
	Control Control
	// Failed is true when the check failed on the planted fault.
	Failed bool
	// Excess is how many times over its bound the worst finding was; +Inf for
	// an exact check that failed.
	Excess float64
	// Holds is true when the check failed by at least the control's floor.
	Holds bool
	// Why explains a proof that does not hold.
	Why string
}

// Prove runs each check on the clean configuration, which it must pass, and on
// each of its controls, which it must fail on by the declared floor.
// cfg.Mutants plants the faults.
func Prove(ctx context.Context, cfg Config) ([]Proof, error) {
	if cfg.Mutants == nil {
		return nil, errors.New("conformance: prove: Config.Mutants is nil: nothing plants the faults")
	}
	if cfg.Reference == nil || cfg.Candidate == nil {
		return nil, errors.New("conformance: prove: Config needs a Reference and a Candidate that is clean")
	}
	cfg = withMemory(cfg)
	clean := cfg
	clean.Only = nil
	rep, err := Evaluate(ctx, clean)
	if err != nil {
		return nil, fmt.Errorf("conformance: prove: on the clean engine: %w", err)
	}
	var out []Proof
	for _, c := range Builtin().Checks() {
		for _, side := range c.Sides {
			if why := notClean(rep, c.ID, side); why != "" {
				return nil, fmt.Errorf("conformance: prove: %s on the clean %s: %s", c.ID, side, why)
			}
		}
		for _, k := range c.Controls {
			p, err := prove(ctx, cfg, c, k)
			if err != nil {
				return nil, err
			}
			out = append(out, p)
		}
	}
	return out, nil
}

func notClean(rep *Report, id string, side Side) string {
	passed := false
	for _, r := range rep.Checks {
		if r.ID != id || r.Side != side {
			continue
		}
		switch r.Status {
		case Pass:
			passed = true
		case Fail, Error:
			return fmt.Sprintf("case %s: %s %s", r.Case, r.Reason, r.Findings)
		}
	}
	if !passed {
		return "passed on no case"
	}
	return ""
}

// referenceProofs is on how many cases a fault of the reference is shown: a check
// of the reference judges each case by itself.
const referenceProofs = 3

func prove(ctx context.Context, cfg Config, c *Check, k Control) (Proof, error) {
	p := Proof{Check: c.ID, Control: k}
	planted, err := cfg.Mutants(cfg, k)
	if err != nil {
		return p, fmt.Errorf("conformance: prove: %s: planting %s: %w", c.ID, k.Mutant, err)
	}
	planted.Only = []string{c.ID}
	if k.Side == SideReference {
		planted.paths = nil // another reference, another path
		// What fails on few cases fails on all of them.
		planted.Cases = planted.Cases[max(0, len(planted.Cases)-referenceProofs):]
	}
	rep, err := Evaluate(ctx, planted)
	if err != nil {
		return p, fmt.Errorf("conformance: prove: %s on %s: %w", c.ID, k.Mutant, err)
	}
	reason := ""
	for _, r := range rep.Checks {
		if r.ID != c.ID || r.Side != k.Side || r.Status != Fail {
			continue
		}
		if why := wrongReason(r, k); why != "" {
			reason = why
			continue
		}
		p.Failed = true
		if k.Floor == 0 {
			p.Excess = math.Inf(1)
		}
		for _, f := range r.Findings {
			p.Excess = max(p.Excess, excess(f))
		}
	}
	switch {
	case !p.Failed && reason != "":
		p.Why = reason
	case !p.Failed:
		p.Why = "the check passed on the planted fault"
	case p.Excess < k.Floor:
		p.Why = fmt.Sprintf("missed its bound by %.2f, want at least %g", p.Excess, k.Floor)
	case k.Side == SideSuite && (rep.Conclusion == Conforms || rep.Conclusion == Partial):
		p.Why = fmt.Sprintf("the run concluded %q", rep.Conclusion)
	default:
		p.Holds = true
	}
	return p, nil
}

// wrongReason says why a failure is not the one that the control planted; empty
// when it is, or when the control does not say.
func wrongReason(r Result, k Control) string {
	if k.Part != "" && !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Probe == engine.Block(k.Layer, k.Part) && !f.follows }) {
		return fmt.Sprintf("named other places: want %s", engine.Block(k.Layer, k.Part))
	}
	if k.Metric != "" && !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Metric == k.Metric }) {
		return fmt.Sprintf("found other things: want %s", k.Metric)
	}
	if k.Kind == "" || (k.Part != "" && r.Kind == k.Kind) {
		return ""
	}
	if r.Kind != k.Kind {
		return fmt.Sprintf("failed for another reason: kind %q, want %q", r.Kind, k.Kind)
	}
	if k.Layer < 0 || len(r.Findings) == 0 || r.Findings[0].At.Row == k.Layer {
		return ""
	}
	return fmt.Sprintf("failed at another place: row %d, want %d", r.Findings[0].At.Row, k.Layer)
}
