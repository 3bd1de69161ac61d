package main

import (
	"math"
	"time"

	"github.com/plumbline-go/plumbline/golden/kernel"
)

const diffSchema = 1

// diffJSON is the object that diff --json prints.
type diffJSON struct {
	SchemaVersion  int               `json:"schema_version"`
	Conclusion     kernel.Conclusion `json:"conclusion"`
	Classification *kernel.Class     `json:"classification"`
	// The fields that every verdict has.
	Compared int `json:"compared"`
	Expected int `json:"expected"`

	Counts      diffCountsJSON         `json:"counts"`
	Inventory   diffInventoryJSON      `json:"inventory"`
	Thresholds  kernel.Thresholds      `json:"thresholds"`
	FirstBreach *breachJSON            `json:"first_breach"`
	PerOp       map[string]*breachJSON `json:"first_breach_per_op"`
	KernelBound kernelBoundJSON        `json:"kernel_bound"`
	Findings    []diffFindingJSON      `json:"findings"`
	Heads       []diffHeadsJSON        `json:"heads"`
	Script      diffScriptJSON         `json:"script"`
	Differs     []string               `json:"differs"`
	Power       []string               `json:"power"`
	Reproduce   string                 `json:"reproduce"`
}

type diffCountsJSON struct {
	Missing       int `json:"missing"`
	WrongSize     int `json:"wrong_size"`
	Unreadable    int `json:"unreadable"`
	NonFinite     int `json:"non_finite"`
	ZeroReference int `json:"zero_reference"`
	Identical     int `json:"identical"`
}

type diffInventoryJSON struct {
	Name      string   `json:"name"`
	Family    string   `json:"family"`
	Layers    int      `json:"layers"`
	Positions int      `json:"positions"`
	Ops       []string `json:"ops"`
	BoundOp   string   `json:"bound_op"`
}

// breachJSON is a place and a difference; pos is the decode step, as in the CSV.
type breachJSON struct {
	Layer      int    `json:"layer"`
	Pos        int    `json:"pos"`
	SeqPos     int    `json:"seq_pos"`
	Op         string `json:"op"`
	MaxAbsDiff num    `json:"max_abs_diff"`
}

type kernelBoundJSON struct {
	Holds       bool             `json:"holds"`
	MaxAbsHolds bool             `json:"max_abs_holds"`
	Layers      []layerBoundJSON `json:"layers"`
}

type layerBoundJSON struct {
	Layer    int  `json:"layer"`
	MaxNRMSE *num `json:"max_nrmse"` // null without a figure
	Pos      *int `json:"pos"`
	Compared int  `json:"compared"`
	Holds    bool `json:"holds"`
}

type diffFindingJSON struct {
	Kind   kernel.Kind `json:"kind"`
	Layer  int         `json:"layer"`
	Pos    int         `json:"pos"`
	SeqPos int         `json:"seq_pos"`
	Op     string      `json:"op"`
	Got    *num        `json:"got,omitempty"`
	Limit  *num        `json:"limit,omitempty"`
	Says   string      `json:"says"`
}

type diffHeadsJSON struct {
	Why   string         `json:"why"`
	Layer int            `json:"layer"`
	Pos   int            `json:"pos"`
	Op    string         `json:"op"`
	Heads []headStatJSON `json:"heads"`
}

type headStatJSON struct {
	NRMSE     num   `json:"nrmse"`
	NormRatio num   `json:"norm_ratio"`
	Cosine    num   `json:"cosine"`
	MaxAbs    num   `json:"max_abs_diff"`
	Channel   int64 `json:"channel"`
}

// diffScriptJSON is what the script would say.
type diffScriptJSON struct {
	Rows            int          `json:"rows"`
	Skipped         int          `json:"skipped"`
	Classification  kernel.Class `json:"classification"`
	BoundHolds      bool         `json:"kernel_bound_holds"`
	DrilldownNeeded bool         `json:"drilldown_needed"`
	DrilldownReason string       `json:"drilldown_reason"`
	FirstBreach     *breachJSON  `json:"first_breach"`
	Largest         *breachJSON  `json:"largest_max_abs_diff"`
	Crashes         bool         `json:"crashes"`
}

func (d *diffReport) json(reproduce string) *diffJSON {
	v, s, inv := d.verdict, d.script, d.inv
	out := &diffJSON{SchemaVersion: diffSchema, Conclusion: v.Conclusion, Compared: v.Compared, Expected: v.Expected,
		Counts:     diffCountsJSON{v.Missing, v.WrongSize, v.Unreadable, v.NonFinite, v.ZeroReference, v.Identical},
		Inventory:  diffInventoryJSON{Name: inv.Name, Family: inv.Family, Layers: len(inv.Layers), Positions: len(inv.Positions), BoundOp: inv.Ops[inv.BoundOp].Name},
		Thresholds: d.t, FirstBreach: d.breach(v.Overall), PerOp: map[string]*breachJSON{},
		KernelBound: kernelBoundJSON{Holds: v.BoundHolds, MaxAbsHolds: v.MaxAbsHolds, Layers: []layerBoundJSON{}},
		Findings:    []diffFindingJSON{}, Heads: []diffHeadsJSON{}, Differs: append([]string{}, v.Differs...),
		Power: append(append([]string{}, v.Power...), d.expired(time.Now())...), Reproduce: reproduce,
		Script: diffScriptJSON{s.Rows, s.Skipped, s.Class, s.BoundHolds, s.DrilldownNeeded, s.DrilldownReason, d.breach(s.Overall), d.breach(s.Largest), s.Crashes()}}
	if v.Class != "" {
		out.Classification = &v.Class
	}
	for i, op := range inv.Ops {
		out.Inventory.Ops = append(out.Inventory.Ops, op.Name)
		out.PerOp[op.Name] = d.breach(v.FirstBreach[i])
	}
	for i, l := range v.Layers {
		j := layerBoundJSON{Layer: i, Compared: l.Compared, Holds: l.Holds}
		if l.At >= 0 {
			x, step := num(l.Max), inv.Positions[l.At].Step
			j.MaxNRMSE, j.Pos = &x, &step
		}
		out.KernelBound.Layers = append(out.KernelBound.Layers, j)
	}
	number := func(x float64) *num {
		if math.IsNaN(x) {
			return nil
		}
		n := num(x)
		return &n
	}
	for _, f := range v.Findings {
		j := diffFindingJSON{Kind: f.Kind, Layer: f.Layer, Pos: d.step(f.Key), SeqPos: inv.Positions[f.Position].Pos, Op: inv.Ops[f.Op].Name, Says: f.Says}
		if !math.IsNaN(f.Limit) {
			n := num(f.Got) // NaN too: it is what the limit fails on
			j.Got, j.Limit = &n, number(f.Limit)
		}
		out.Findings = append(out.Findings, j)
	}
	for _, h := range d.heads {
		j := diffHeadsJSON{Why: h.why, Layer: h.key.Layer, Pos: d.step(h.key), Op: inv.Ops[h.key.Op].Name, Heads: []headStatJSON{}}
		for _, x := range h.stats {
			j.Heads = append(j.Heads, headStatJSON{num(x.RelativeL2()), num(x.NormRatio()), num(x.Cosine()), num(x.MaxAbs), x.MaxAt})
		}
		out.Heads = append(out.Heads, j)
	}
	return out
}

func (d *diffReport) breach(b *kernel.Breach) *breachJSON {
	if b == nil {
		return nil
	}
	return &breachJSON{b.Layer, d.step(b.Key), d.inv.Positions[b.Position].Pos, d.inv.Ops[b.Op].Name, num(b.MaxAbs)}
}
