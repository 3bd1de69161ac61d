package main

import (
	"fmt"
	"strings"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/golden/kernel"
)

// markdown is the script's summary, line by line but for the title and the two
// sides; where Plumbline's verdict is another one, a section at the end says so. Where the
// script would have died reading, its conclusions are left out.
func (d *diffReport) markdown() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# %s", dumpfmt.Printable(d.flags.title))
	line("")
	if d.flags.fromCSV != "" {
		line("Session: recorded figures `%s`", dumpfmt.Printable(d.flags.fromCSV))
	} else {
		line("Session: reference `%s` | candidate `%s`", dumpfmt.Printable(d.flags.ref), dumpfmt.Printable(d.flags.cand))
	}
	line("Threshold: `max_abs_diff > %s` = BUG signal | `nrmse < %s` = kernel bound",
		kernel.PythonFloat(d.t.Breach.Value), kernel.PythonFloat(d.t.NRMSE.Value))
	line("")
	d.tableA(line)
	d.tableB(line)
	above := "All of the above is what the script would say."
	if d.script.Unreadable == nil {
		d.tableC(line)
		d.narrative(line)
	} else {
		above = "The script writes no summary here; the tables above are the rows that could be read."
	}
	if len(d.verdict.Differs) > 0 {
		line("## Plumbline's verdict")
		line("")
		line("%s Plumbline concludes: **%s**%s, %d of %d tensors compared.",
			above, d.verdict.Conclusion, classSuffix(d.verdict.Class), d.verdict.Compared, d.verdict.Expected)
		line("")
		for _, s := range d.verdict.Differs {
			line("- %s", dumpfmt.Printable(s))
		}
		line("")
	}
	return b.String()
}

func classSuffix(c kernel.Class) string {
	if c == "" {
		return ""
	}
	return " (" + string(c) + ")"
}

type liner func(format string, args ...any)

// header prints a Markdown table's first two lines.
func (line liner) header(cells ...string) {
	dashes := make([]string, len(cells))
	for i, c := range cells {
		dashes[i] = strings.Repeat("-", len(c)+2)
	}
	line("| %s |", strings.Join(cells, " | "))
	line("|%s|", strings.Join(dashes, "|"))
}

func (d *diffReport) tableA(line liner) {
	line("## Table A — Gating Verdict (First Threshold Breach per Op)")
	line("")
	line.header("Op", "First Breach Layer", "First Breach Pos", "max_abs_diff")
	for i, op := range d.inv.Ops {
		if b := d.script.FirstBreach[i]; b != nil {
			line("| %s | %d | %d | %s |", op.Name, b.Layer, d.step(b.Key), kernel.PythonExp(b.MaxAbs, 6))
		} else {
			line("| %s | NONE | NONE | NONE — within threshold at all %d measurements |", op.Name, len(d.inv.Layers)*len(d.inv.Positions))
		}
	}
	line("")
}

func (d *diffReport) tableB(line liner) {
	at := d.inv.Positions[d.inv.Progression]
	line("## Table B — Per-Layer Progression at Decode Pos %d (seq_pos=%d)", at.Step, at.Pos)
	line("")
	cells := []string{"Layer"}
	for _, op := range d.inv.Ops {
		cells = append(cells, op.Label+"_max", op.Label+"_nrmse")
	}
	line.header(cells...)
	for layer, ops := range d.script.Progression {
		row := fmt.Sprintf("| %2d ", layer)
		for _, p := range ops {
			if p == nil {
				row += "| MISSING | MISSING "
				continue
			}
			row += fmt.Sprintf("| %s | %s ", bold(kernel.PythonExp(p.MaxAbs, 6), p.MaxAbs > d.t.Breach.Value),
				bold(kernel.PythonExp(p.NRMSE, 6), p.NRMSE > d.t.NRMSE.Value))
		}
		line("%s|", row)
	}
	line("")
	line("Values exceeding threshold/bound are **bold**.")
	line("")
}

func bold(s string, on bool) string {
	if on {
		return "**" + s + "**"
	}
	return s
}

func (d *diffReport) tableC(line liner) {
	op := d.inv.Ops[d.inv.BoundOp].Name
	limit := d.t.NRMSE.Value
	line("## Table C — Kernel-Bound Check: %s max nrmse across positions per layer", op)
	line("")
	line("Kernel bound: nrmse < %s  |  Overall: %s", kernel.PythonFloat(limit), holds(d.script.BoundHolds))
	line("")
	line.header("Layer", fmt.Sprintf("%s max_nrmse (over %d positions)", op, len(d.inv.Positions)), "Within Bound?")
	for layer, v := range d.script.Bound {
		switch {
		case v == nil:
			line("| %2d | MISSING | MISSING |", layer)
		case *v < limit:
			line("| %2d | %s | YES |", layer, kernel.PythonExp(*v, 6))
		default: // NaN isn't bold, and isn't within
			line("| %2d | %s | **NO** |", layer, bold(kernel.PythonExp(*v, 6), *v >= limit))
		}
	}
	line("")
}

func holds(yes bool) string {
	if yes {
		return "HOLDS"
	}
	return "VIOLATED"
}

func (d *diffReport) narrative(line liner) {
	op, limit := d.inv.Ops[d.inv.BoundOp], kernel.PythonFloat(d.t.NRMSE.Value)
	line("## Narrative Summary")
	line("")
	line("CLASSIFICATION: **%s**", d.script.Class)
	switch d.script.Class {
	case kernel.BugCandidate:
		b := d.script.Overall
		line("First threshold breach: layer=%d, pos=%d, op=%s, max_abs_diff=%s", b.Layer, d.step(b.Key), d.inv.Ops[b.Op].Name, kernel.PythonExp(b.MaxAbs, 6))
	case kernel.FloorCandidate:
		line("No op exceeds max_abs_diff > %s at any (layer, pos). nrmse < %s holds for %s per-layer.", d.breachInProse(), limit, op.Name)
	default:
		line("No clean threshold breach but nrmse >= %s at some layer. Drilldown required.", limit)
	}
	line("")
	line("Kernel bound (nrmse<%s for %s per-layer): %s", limit, op.Name, holds(d.script.BoundHolds))
	line("")
	first := d.firstLayers()
	line("### pos=%d excerpt (layers 0-%d, %s columns)", d.inv.Positions[d.inv.Progression].Step, first-1, op.Name)
	line("")
	line.header("Layer", op.Label+"_max", op.Label+"_nrmse")
	for layer, ops := range d.script.Progression[:first] {
		max, nrmse := "MISSING", "MISSING"
		if p := ops[d.inv.BoundOp]; p != nil {
			max, nrmse = kernel.PythonExp(p.MaxAbs, 6), kernel.PythonExp(p.NRMSE, 6)
		}
		line("| %2d | %s | %s |", layer, max, nrmse)
	}
	line("")
}

// breachInProse is the threshold as the script's sentence has it, which is not
// how Python writes it.
func (d *diffReport) breachInProse() string {
	if d.t.Breach.Value == 1e-3 {
		return "1e-3"
	}
	return kernel.PythonFloat(d.t.Breach.Value)
}

// firstLayers is how many layers the excerpts show.
func (d *diffReport) firstLayers() int { return min(10, len(d.inv.Layers)) }

// step is a tensor's decode step, which the script calls pos.
func (d *diffReport) step(k kernel.Key) int { return d.inv.Positions[k.Position].Step }
