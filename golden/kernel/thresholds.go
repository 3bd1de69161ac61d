package kernel

import (
	"fmt"
	"math"

	"github.com/plumbline-go/plumbline/golden"
)

// Thresholds are the bounds, each with its source. How each is read is part of
// it: the kernel's test asserts "below", the two others fire "above".
type Thresholds struct {
	// Breach: a tensor whose max |ref - cand| is above it is a breach.
	Breach golden.Budget `json:"breach"`
	// MaxAbs: the bound op's max |ref - cand| must be below it.
	MaxAbs golden.Budget `json:"max_abs"`
	// NRMSE: per layer, the bound op's largest nRMSE must be below it.
	NRMSE golden.Budget `json:"nrmse"`
	// Drilldown: without a breach, an nRMSE of the bound op at the last step
	// above it asks for a closer look.
	Drilldown golden.Budget `json:"drilldown"`
}

// handSet is when the bounds without a measurement are to be looked at again.
const handSet = "2027-12-31"

// DefaultThresholds are those of tq_c0_diff.py.
func DefaultThresholds() Thresholds {
	asserted := func(value float64, what string) golden.Budget {
		return golden.Budget{Value: value, Multiple: 1, Source: "the flash-attention kernel's own test, which asserts " + what,
			Why: "what the kernel promises with a quantised KV cache"}
	}
	return Thresholds{
		Breach:    golden.ByHand(1e-3, "more than float32 rounding makes of an attention tensor", handSet),
		MaxAbs:    asserted(1.0, "max_abs_diff < 1.0"),
		NRMSE:     asserted(0.15, "nrmse < 0.15"),
		Drilldown: golden.Budget{Value: 0.10, Multiple: 2.0 / 3, Source: "the kernel bound on nRMSE", Why: "two thirds of it leave little room for more decode steps"},
	}
}

// Override is a bound of the caller's own; source says who set it.
func Override(value float64, source string) golden.Budget {
	return golden.Budget{Value: value, Multiple: 1, Source: source, Why: "overridden"}
}

// Validate refuses bounds that nothing, or everything, would hold.
func (t Thresholds) Validate() error {
	for _, b := range []struct {
		name string
		golden.Budget
	}{{"breach", t.Breach}, {"max_abs", t.MaxAbs}, {"nrmse", t.NRMSE}, {"drilldown", t.Drilldown}} {
		if !(b.Value >= 0) || math.IsInf(b.Value, 1) {
			return fmt.Errorf("kernel: threshold %s: got %v, want a finite number, not negative", b.name, b.Value)
		}
	}
	return nil
}

// breaches reports whether a difference is a breach. NaN is one.
func (t Thresholds) breaches(maxAbs float64) bool { return !t.Breach.Holds(maxAbs) }

// below is the kernel test's way to read a bound: the bound itself fails.
func below(got float64, b golden.Budget) bool { return got < b.Value }
