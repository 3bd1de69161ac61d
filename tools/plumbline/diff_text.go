package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/golden"
	"github.com/plumbline-go/plumbline/golden/kernel"
)

// print writes the script's lines, through the end of its EXPORT block, and then
// Plumbline's own.
func (d *diffReport) print(reproduce string) func(io.Writer) {
	return func(w io.Writer) {
		line := func(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }
		if d.script.Unreadable != nil {
			line("The script says nothing: it ends with a traceback, reading %s.", d.inv.Coordinates(*d.script.Unreadable))
			d.written(line)
			d.own(line, reproduce)
			return
		}
		line("Computed %d rows (%d skipped/missing).", d.script.Rows, d.script.Skipped)
		d.written(line)
		d.keyNumbers(line)
		d.export(line)
		d.own(line, reproduce)
	}
}

func (d *diffReport) written(line liner) {
	if d.flags.csv != "" {
		line("CSV written: %s", dumpfmt.Printable(d.flags.csv))
	}
	if d.flags.summary != "" {
		line("Summary written: %s", dumpfmt.Printable(d.flags.summary))
	}
}

func (d *diffReport) keyNumbers(line liner) {
	s, op := d.script, d.inv.Ops[d.inv.BoundOp].Name
	line("\n=== KEY NUMBERS ===")
	overall := "None"
	if b := s.Overall; b != nil {
		overall = fmt.Sprintf("(%d, %d, '%s', %s)", b.Layer, d.step(b.Key), d.inv.Ops[b.Op].Name, kernel.PythonFloat(b.MaxAbs))
	}
	line("Global first breach: %s", overall)
	line("Kernel bound holds: %s", pythonBool(s.BoundHolds))
	line("\nFirst breach per op:")
	for i, b := range s.FirstBreach {
		first := "None"
		if b != nil {
			first = fmt.Sprintf("(%d, %d, %s)", b.Layer, d.step(b.Key), kernel.PythonFloat(b.MaxAbs))
		}
		line("  %s: %s", d.inv.Ops[i].Name, first)
	}
	line("\n%s max nrmse by layer (first %d):", op, d.firstLayers())
	for layer, v := range s.Bound[:d.firstLayers()] {
		text := "None"
		if v != nil {
			text = kernel.PythonFloat(*v)
		}
		line("  layer %2d: %s", layer, text)
	}
	line("\nClassification: %s", s.Class)
	line("Drilldown needed: %s  (%s)", pythonBool(s.DrilldownNeeded), s.DrilldownReason)
}

func (d *diffReport) export(line liner) {
	s := d.script
	line("\n=== EXPORT ===")
	line("CLASSIFICATION=%s", s.Class)
	line("DRILLDOWN_NEEDED=%s", pythonBool(s.DrilldownNeeded))
	if b := s.Overall; b != nil {
		line("BREACH_LAYER=%d", b.Layer)
		line("BREACH_POS=%d", d.step(b.Key))
		line("BREACH_OP=%s", d.inv.Ops[b.Op].Name)
		line("BREACH_MAG=%s", kernel.PythonExp(b.MaxAbs, 6))
	} else {
		for _, what := range []string{"LAYER", "POS", "OP", "MAG"} {
			line("BREACH_%s=None", what)
		}
	}
	line("KERNEL_BOUND_HOLDS=%s", pythonBool(s.BoundHolds))
	line("DRILLDOWN_REASON=%s", s.DrilldownReason)
	if b := s.Largest; s.Overall == nil && b != nil {
		line("LARGEST_MAX_ABS_DIFF: %s val=%s", d.inv.Coordinates(b.Key), kernel.PythonExp(b.MaxAbs, 6))
	}
}

func pythonBool(b bool) string {
	if b {
		return "True"
	}
	return "False"
}

// own are Plumbline's lines.
func (d *diffReport) own(line liner, reproduce string) {
	v, inv := d.verdict, d.inv
	line("\n=== PLUMBLINE ===")
	line("conclusion: %s%s", v.Conclusion, classSuffix(v.Class))
	line("compared: %d of %d tensors (inventory %s: %s x %s x %s)", v.Compared, v.Expected,
		dumpfmt.Printable(inv.Name), plural(len(inv.Layers), "layer"), plural(len(inv.Positions), "position"), plural(len(inv.Ops), "op"))
	line("missing %d, of another size %d, unreadable %d, non-finite %d, all-zero reference %d, without any difference %d",
		v.Missing, v.WrongSize, v.Unreadable, v.NonFinite, v.ZeroReference, v.Identical)
	first := "none"
	if b := v.Overall; b != nil {
		first = fmt.Sprintf("%s, %s", inv.Coordinates(b.Key), scientific(b.MaxAbs))
	}
	line("first breach: %s; limit: above %s (%s)", first, kernel.PythonFloat(d.t.Breach.Value), source(d.t.Breach))
	op := inv.Ops[inv.BoundOp].Name
	worst := "no figure"
	if k, ok := d.worstBound(); ok {
		worst = fmt.Sprintf("largest %s at %s", scientific(v.Layers[k.Layer].Max), inv.Coordinates(k))
	}
	state := strings.ToLower(holds(v.BoundHolds))
	if !v.BoundHolds && !d.boundExceeded() {
		state = "not shown, for want of tensors"
	}
	line("kernel bound: %s: nRMSE of %s within it in %d of %d layers; %s; limit: below %s in each (%s)", state, op,
		d.layersWithin(), len(v.Layers), worst, kernel.PythonFloat(d.t.NRMSE.Value), source(d.t.NRMSE))
	if b := v.LargestBoundOp; b != nil {
		line("largest difference of %s: %s at %s; limit: below %s (%s)", op, scientific(b.MaxAbs), inv.Coordinates(b.Key), kernel.PythonFloat(d.t.MaxAbs.Value), source(d.t.MaxAbs))
	}
	d.printFindings(line)
	for _, h := range d.heads {
		line("heads at %s (%s): %s", inv.Coordinates(h.key), h.why, headsText(h))
	}
	if len(v.Differs) > 0 {
		says := fmt.Sprintf("%s, kernel bound %s", d.script.Class, strings.ToLower(holds(d.script.BoundHolds)))
		if d.script.Unreadable != nil {
			says = "nothing"
		}
		line("as the script would say: %s. Plumbline differs, and decides:", says)
		for _, s := range v.Differs {
			line("  %s", s)
		}
	}
	for _, s := range append(v.Power, d.expired(time.Now())...) {
		line("power: %s", s)
	}
	line("reproduce: %s", reproduce)
}

func (d *diffReport) layersWithin() int {
	n := 0
	for _, l := range d.verdict.Layers {
		if l.Holds {
			n++
		}
	}
	return n
}

// source says where a bound comes from.
func source(b golden.Budget) string {
	if b.Expires != "" {
		return fmt.Sprintf("%s: %s; to be looked at again by %s", b.Source, b.Why, b.Expires)
	}
	if b.Multiple != 1 {
		return b.Describe()
	}
	return b.Source
}

// expired names bounds whose date has passed.
func (d *diffReport) expired(now time.Time) []string {
	var out []string
	if d.t.Breach.Expired(now) {
		out = append(out, "the breach threshold was set by hand and was to be looked at again by "+d.t.Breach.Expires)
	}
	return out
}

// perKindShown is how many findings of a kind the text shows; the JSON has more,
// the CSV all.
const perKindShown = 5

func (d *diffReport) printFindings(line liner) {
	shown := map[kernel.Kind]int{}
	counts := d.counts()
	for _, f := range d.verdict.Findings {
		if shown[f.Kind]++; shown[f.Kind] > perKindShown {
			continue
		}
		text := f.Says
		if !math.IsNaN(f.Limit) {
			text = fmt.Sprintf("%s, limit %s: %s", scientific(f.Got), kernel.PythonFloat(f.Limit), f.Says)
		}
		line("FAIL  %s: %s: %s", f.Kind, d.inv.Coordinates(f.Key), dumpfmt.Printable(text))
		if n := counts[f.Kind]; shown[f.Kind] == perKindShown && n > perKindShown {
			line("      … and %d more", n-perKindShown)
		}
	}
}

// counts are how many findings of each kind there are in all, where the findings
// themselves are cut.
func (d *diffReport) counts() map[kernel.Kind]int {
	v := d.verdict
	out := map[kernel.Kind]int{kernel.KindMissing: v.Missing, kernel.KindWrongSize: v.WrongSize, kernel.KindUnreadable: v.Unreadable,
		kernel.KindNonFinite: v.NonFinite, kernel.KindZeroReference: v.ZeroReference, kernel.KindMaxAbs: v.OverMaxAbs}
	for _, l := range v.Layers {
		if l.Compared > 0 && !(l.Max < d.t.NRMSE.Value) {
			out[kernel.KindBound]++
		}
	}
	return out
}

// boundExceeded reports whether some layer's figure is above the bound: without one,
// it only lacks tensors.
func (d *diffReport) boundExceeded() bool {
	return slices.ContainsFunc(d.verdict.Layers, func(l kernel.LayerBound) bool { return l.Compared > 0 && !(l.Max < d.t.NRMSE.Value) })
}

// headsText is the spread of nRMSE over the heads of a tensor.
func headsText(h tensorHeads) string {
	values := make([]float64, len(h.stats))
	worst := 0
	for i, s := range h.stats {
		values[i] = s.RelativeL2()
		if !math.IsNaN(values[worst]) && !(values[i] <= values[worst]) {
			worst = i
		}
	}
	at := h.stats[worst]
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return fmt.Sprintf("nRMSE median %s over %s, largest %s in head %d (norm ratio %s, max abs %s at channel %d)", scientific(sorted[len(sorted)/2]),
		plural(len(values), "head"), scientific(values[worst]), worst, fixed(at.NormRatio(), 4), scientific(at.MaxAbs), at.MaxAt)
}
