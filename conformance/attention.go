package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden/kernel"
)

// Attention is two sides whose attention tensors are compared, layer by layer and
// position by position: what a quantised KV cache or an attention kernel changes.
type Attention struct {
	// Inventory says which tensors there are.
	Inventory *kernel.Inventory
	// Reference is the dense side, Candidate the one under test.
	Reference, Candidate kernel.Source
	// Thresholds are the bounds; nil for kernel.DefaultThresholds.
	Thresholds *kernel.Thresholds
}

// AttentionEvidence is what the comparison gave.
type AttentionEvidence struct {
	Inventory *kernel.Inventory
	// Bad are the tensors that can't be judged, in the inventory's order: absent, of
	// another size, unreadable, not finite, or without a reference.
	Bad []kernel.Row
	// Verdict is on all of them, held to Bound.
	Verdict *kernel.Verdict
	Bound   kernel.Thresholds
}

// attentionEvidence compares the two sides, if a check looks at them.
func attentionEvidence(ctx context.Context, cfg *Config, checks []*Check) (*AttentionEvidence, error) {
	a, wanted := cfg.Attention, false
	for _, c := range checks {
		wanted = wanted || c.Needs&NeedAttention != 0
	}
	if a == nil || !wanted {
		return nil, nil
	}
	switch {
	case a.Inventory == nil:
		return nil, errors.New("conformance: Config.Attention: Inventory is nil: nothing says which tensors there are")
	case a.Reference == nil || a.Candidate == nil:
		return nil, errors.New("conformance: Config.Attention: a side is nil, want a Reference and a Candidate")
	}
	if err := a.Inventory.Validate(); err != nil {
		return nil, fmt.Errorf("conformance: Config.Attention: %w", err)
	}
	ev := &AttentionEvidence{Inventory: a.Inventory, Bound: kernel.DefaultThresholds()}
	if a.Thresholds != nil {
		ev.Bound = *a.Thresholds
	}
	judge := kernel.NewJudge(a.Inventory, ev.Bound)
	err := kernel.Compare(ctx, a.Inventory, a.Reference, a.Candidate, kernel.Options{}, func(row kernel.Row) error {
		if row.Problem != kernel.None || row.NonFinite() || row.ZeroReference() {
			ev.Bad = append(ev.Bad, row)
		}
		return judge.Add(row)
	})
	if err != nil {
		return nil, fmt.Errorf("conformance: attention: %w", err)
	}
	_, ev.Verdict = judge.Verdicts()
	return ev, nil
}

// at are the coordinates of a tensor; op -1 stands for the one that is bounded.
func (ev *AttentionEvidence) at(k kernel.Key) (engine.Probe, At) {
	part := engine.PartAttnOut
	for _, op := range engine.AttentionOps() {
		if k.Op >= 0 && op.Name == ev.Inventory.Ops[k.Op].Name {
			part = op.Part
		}
	}
	at := At{Row: k.Layer + 1, Channel: -1}
	if k.Position >= 0 {
		at.Position = &ev.Inventory.Positions[k.Position].Pos
	}
	return engine.Block(k.Layer, part), at
}
