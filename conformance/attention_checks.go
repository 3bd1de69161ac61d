package conformance

import (
	"fmt"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden/kernel"
)

// tensorInventory wants every tensor before any number counts.
func tensorInventory() *Check {
	return &Check{
		ID: "TensorInventory",
		Rule: "every attention tensor of the inventory (layer, position, op) is there, with the exact size of its layer's type and finite " +
			"values, and the reference's is not all zero: one that isn't so is a finding, never silence",
		Catches: []string{"a dump that stopped early", "a NaN that a comparison lets pass", "a reference that was never written", "a global layer's shape in a local layer", "a comparison of what happens to be there"},
		Level:   Extended,
		Sides:   []Side{SideCandidate},
		Needs:   NeedAttention,
		Basis:   "exact: which tensors there are, their sizes, finite and not all zero",
		Controls: []Control{
			{Mutant: "tensor-gone", Side: SideCandidate, Layer: 7, Part: engine.PartK, Kind: KindFormat},
			{Mutant: "tensor-of-another-layer-type", Side: SideCandidate, Layer: 6, Part: engine.PartAttnOut, Kind: KindFormat},
			{Mutant: "tensor-nan", Side: SideCandidate, Layer: 9, Part: engine.PartQ, Kind: KindFormat},
			{Mutant: "tensor-reference-zero", Side: SideCandidate, Layer: 4, Part: engine.PartV, Kind: KindFormat},
		},
		Across: acrossInventory,
	}
}

func acrossInventory(run *RunEvidence) *Outcome {
	ev := run.Attention
	if ev == nil {
		return nil
	}
	var out []Finding
	for _, row := range ev.Bad {
		probe, at := ev.at(row.Key)
		out = append(out, Finding{Probe: probe, Metric: "tensors", Exact: true, Got: 0, Limit: Limit{1, "the inventory " + ev.Inventory.Name},
			At: at, Detail: whatIsBad(row)})
	}
	if len(out) > 0 {
		o := fail(KindFormat, out...)
		return &o
	}
	if ev.Verdict.Compared != ev.Verdict.Expected || ev.Verdict.Expected == 0 {
		o := fail(KindFormat, Finding{Metric: "tensors compared", Exact: true, Got: Number(ev.Verdict.Compared),
			Limit: Limit{Number(ev.Verdict.Expected), "the inventory " + ev.Inventory.Name}, At: Nowhere})
		return &o
	}
	o := pass()
	return &o
}

func whatIsBad(row kernel.Row) string {
	switch {
	case row.Problem != kernel.None:
		return row.Note
	case row.NonFinite():
		return "a side holds a NaN or an infinity"
	}
	return "the reference is all zero"
}

// kernelBoundNRMSE is an attention kernel's own bound on its output.
func kernelBoundNRMSE() *Check {
	return &Check{
		ID: "KernelBoundNRMSE",
		Rule: "in each layer the largest nRMSE of the output of attention over the positions is below the kernel's bound, " +
			"with nRMSE = sqrt(sum sq diff / sum sq ref) in float64, and no difference of it reaches the kernel test's ceiling; " +
			"q, k and v are not bounded: a quantised cache moves them from the second layer on",
		Catches: []string{"a cache that is read with another layer's scales", "four bits too few", "a window that is off by one"},
		Level:   Extended,
		Sides:   []Side{SideCandidate},
		Needs:   NeedAttention,
		Basis:   "what the attention kernel's own test asserts: 0.15 on the nRMSE, and a ceiling on a single difference (package golden/kernel)",
		Controls: []Control{
			{Mutant: "kv-four-bits-fewer", Side: SideCandidate, Layer: -1, Floor: 2},
			{Mutant: "kv-scale-wrong-layer", Side: SideCandidate, Layer: 17, Part: engine.PartAttnOut, Floor: 2},
			{Mutant: "window-off-by-one", Side: SideCandidate, Layer: 12, Part: engine.PartAttnOut, Floor: 2},
		},
		Across: acrossKernelBound,
	}
}

func acrossKernelBound(run *RunEvidence) *Outcome {
	ev := run.Attention
	if ev == nil {
		return nil
	}
	if ev.Verdict.Compared == 0 {
		o := skip("no attention tensor could be compared")
		return &o
	}
	bound := ev.Bound.NRMSE
	var out []Finding
	for n, l := range ev.Verdict.Layers {
		if l.Holds {
			continue
		}
		probe, at := ev.at(kernel.Key{Layer: n, Position: l.At, Op: ev.Inventory.BoundOp})
		out = append(out, Finding{Probe: probe, Metric: "nRMSE of the output of attention", Got: Number(l.Max),
			Limit: Limit{Number(bound.Value), bound.Describe()}, At: at,
			Detail: fmt.Sprintf("the largest of %d of %d positions", l.Compared, len(ev.Inventory.Positions))})
	}
	if l := ev.Verdict.LargestBoundOp; l != nil && !ev.Verdict.MaxAbsHolds {
		probe, at := ev.at(l.Key)
		out = append(out, Finding{Probe: probe, Metric: "largest difference of the output of attention", Got: Number(l.MaxAbs),
			Limit: Limit{Number(ev.Bound.MaxAbs.Value), ev.Bound.MaxAbs.Describe()}, At: at})
	}
	if len(out) > 0 {
		o := fail("", out...)
		return &o
	}
	o := pass()
	return &o
}
