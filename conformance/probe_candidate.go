package conformance

import (
	"fmt"
	"slices"

	"github.com/plumbline-go/plumbline/engine"
)

// StandardProbes are the places by which a fault is named: the residual stream
// between the halves of each layer, and what the KV cache is given.
func StandardProbes(a engine.Arch) []engine.Probe {
	out := []engine.Probe{engine.ProbeEmbed}
	for n := range a.Layers {
		for _, part := range []engine.Part{engine.PartKRope, engine.PartV, engine.PartResidMid, engine.PartResidPost} {
			out = append(out, engine.Block(n, part))
		}
	}
	return out
}

// probeCandidate holds every place that the candidate offers to what the
// reference makes of the candidate's own rows.
func probeCandidate() *Check {
	return &Check{
		ID: "ProbeCandidate",
		Rule: "every place that the candidate offers at all positions (q, k, v, attention, resid_mid, resid_post, the embedding) is what the " +
			"reference makes of the candidate's own rows there, within a multiple of the yardstick's error on the same rows",
		Catches: []string{
			"KV heads in the wrong order: k and v are named", "gate and up swapped: the MLP half is named",
			"a cache row that was dropped or never written: the first wrong position is named",
			"a scaled, dead or flipped channel, and a gain of a few per cent, below what the error's size shows",
			"a second fault behind a first",
		},
		Level:  Extended,
		Sides:  []Side{SideCandidate},
		Needs:  NeedRows | NeedProfile | NeedProbes,
		Bounds: []string{"OwnRowsKnown", "OwnRowsScaled", "OwnRowsInt8", "OwnRowsUnknown", "OwnRowsFloat", "Level", "Gain", "GainKnown", "GainChannel", "ChannelSlope"},
		Basis:  "exact: places agree with the layer dump of the same run, up to half a code",
		Controls: []Control{
			{Mutant: "kv-heads-swapped", Side: SideCandidate, Layer: 9, Part: engine.PartKRope, Floor: 2},
			{Mutant: "kv-heads-swapped", Side: SideCandidate, Layer: 4, Part: engine.PartV, Floor: 2},
			{Mutant: "gate-up-swapped", Side: SideCandidate, Layer: 7, Part: engine.PartResidPost, Floor: 2},
			{Mutant: "q-position-off-by-one", Side: SideCandidate, Layer: 9, Part: engine.PartResidMid, Floor: 2},
			{Mutant: "stale-cache-row", Side: SideCandidate, Layer: 9, Part: engine.PartResidMid, Floor: 2},
			{Mutant: "layers-swapped", Side: SideCandidate, Layer: 11, Part: engine.PartResidPost, Floor: 2},
			{Mutant: "norm-gain-ones", Side: SideCandidate, Layer: 5, Part: engine.PartKRope, Floor: 2},
			{Mutant: "mlp-gain", Side: SideCandidate, Layer: 6, Part: engine.PartResidPost, Floor: 2},
			{Mutant: "channel-dead", Side: SideCandidate, Layer: 12, Part: engine.PartResidPost, Floor: 2},
			{Mutant: "probe-k-v-exchanged", Side: SideCandidate, Layer: 3, Part: engine.PartV, Floor: 2},
			{Mutant: "probe-positions-shifted", Side: SideCandidate, Layer: 8, Part: engine.PartKRope, Floor: 2},
		},
		Judge: judgeProbes,
	}
}

func judgeProbes(ev *Evidence, _ Side) Outcome {
	switch {
	case ev.CandidateErr != nil:
		return answerError(ev.CandidateErr)
	case ev.Places == nil:
		return unsupported("no probes in this case")
	case ev.ProbeProfile == nil:
		return skip("not judged by value: " + ev.NoProfile)
	}
	if fs := placesOfForm(ev); len(fs) > 0 {
		return fail(KindDump, fs...)
	}
	p, file := ev.ProbeProfile, ev.Places.File
	var out []Finding
	for t, m := range p.Embed {
		if bound := p.Factors.Single; over(m.Ratio(), bound.Value) {
			out = append(out, Finding{Probe: engine.ProbeEmbed, Metric: "embedding, relative L2", Got: Number(m.Got),
				Limit: Limit{Number(bound.Value * m.Yard), bound.Describe()}, At: atPosition(0, t, file),
				Detail: fmt.Sprintf("not the embedding of token %d", ev.placesIDs[t])})
		}
	}
	for _, f := range p.faults(ev.Budgets) {
		out = append(out, f.finding(file, p.Layers[f.layer].Split))
	}
	if t := p.wrongNorm(); t >= 0 {
		m, bound := p.FinalNorm[t], p.floatFactors.Single
		out = append(out, Finding{Probe: engine.ProbeFinalNorm, Metric: "final norm of the candidate's own last row, relative L2", Got: Number(m.Got),
			Limit: Limit{Number(bound.Value * m.Yard), fmt.Sprintf("%.3g roundings of float32", bound.Value)}, At: atPosition(-1, t, file)})
	}
	for _, f := range p.gainFaults(ev.Budgets) {
		out = append(out, f.finding(file))
	}
	if len(out) > 0 {
		// Sources first: what they spoil inside their layer follows from them.
		slices.SortStableFunc(out, func(a, b Finding) int { return boolOrder(a.follows) - boolOrder(b.follows) })
		return fail("", out...)
	}
	if !p.anyMeasured() {
		return skip("no layer has both its input rows and a place to judge")
	}
	return pass()
}

// wrongNorm is the first position whose final_norm is not that of the candidate's
// own last row, -1 when there is none.
func (p *ProbeProfile) wrongNorm() int {
	if !p.normsInFloat() {
		return -1 // how such an engine rounds it, nobody knows
	}
	return slices.IndexFunc(p.FinalNorm, func(m Measure) bool { return over(m.Ratio(), p.floatFactors.Single.Value) })
}

func (p *ProbeProfile) anyMeasured() bool {
	return len(p.Embed) > 0 || slices.ContainsFunc(p.Layers, func(l LayerProbes) bool { return len(l.Parts) > 0 })
}

func boolOrder(b bool) int {
	if b {
		return 1
	}
	return 0
}

// placesOfForm are the places that can't be a run's: values that are none, and a
// last position that isn't the layer dump's row.
func placesOfForm(ev *Evidence) []Finding {
	var out []Finding
	for _, probe := range engine.Probes(ev.Arch) {
		rows, ok := ev.Places.Rows[probe]
		if !ok {
			continue
		}
		if t, channel, what := unusable(probe, rows); t >= 0 {
			at := atPosition(rowOf(probe), t, ev.Places.File)
			at.Channel = channel
			out = append(out, Finding{Probe: probe, Metric: "degenerate", Got: Number(rows[t][max(channel, 0)]),
				Limit: Limit{0, "values must be finite and carry information"}, At: at,
				Detail: fmt.Sprintf("%s at position %d is %s", probe, t, what)})
		}
	}
	if len(out) > 0 || !ev.Offered || ev.Candidate == nil || ev.Places.Prefixes > 0 {
		return out
	}
	last := len(ev.Case.TokenIDs) - 1
	for i, rows := range ev.Places.stream(ev.Arch.Layers) {
		if rows == nil || last >= ev.Places.Positions {
			continue
		}
		row := ev.Candidate.Rows[i]
		for ch, x := range rows[last] {
			tolerance := max(ev.Candidate.Steps[i]/2, abs(row[ch])*roundingOf("float32")) * (1 + 1e-9)
			if d := abs(x - row[ch]); over(d, tolerance) {
				out = append(out, Finding{Probe: engine.RowProbe(i), Metric: "the layer dump's row against the probe at the last prompt position",
					Got: Number(d), Limit: Limit{Number(tolerance), "both are the same run's: half a code, or a rounding of float32"},
					At: At{Row: i, Channel: ch, Position: &last, File: ev.Places.File}})
				break
			}
		}
	}
	return out
}

// what says what is wrong with a place, for a note.
func (f Finding) what() string {
	if f.Detail != "" {
		return f.Detail
	}
	return fmt.Sprintf("%s: %s differs by %.4g", f.Probe, f.Metric, float64(f.Got))
}

func rowOf(p engine.Probe) int {
	if n, _, ok := p.Block(); ok {
		return n + 1
	}
	if p == engine.ProbeEmbed {
		return 0
	}
	return -1
}

func atPosition(row, position int, file string) At {
	return At{Row: row, Channel: -1, Position: &position, File: file}
}

func (f probeFault) finding(file string, split bool) Finding {
	ratio, m, bound := f.ratio()
	at := At{Row: f.layer + 1, Channel: -1, File: file}
	detail := fmt.Sprintf("%.2f times the yardstick's error on the same rows", ratio)
	if worst, r := f.m.worst(); worst >= 0 && len(f.m.At) > 1 {
		detail += fmt.Sprintf(", at most %.2f times at position %d", r, worst)
	}
	if f.first >= 0 {
		at.Position = &f.first
		detail += fmt.Sprintf("; first wrong at position %d", f.first)
	}
	if f.heads != nil {
		detail += "; " + headsNote(f.heads)
	}
	switch {
	case !f.source:
		detail += "; it follows from the places before it in the layer"
	case f.part == engine.PartResidMid:
		detail += "; the attention half"
	case split && (f.part == engine.PartResidPost || f.part == engine.PartMLPOut):
		detail += "; the MLP half: attention, by the resid_mid before it, is not at fault"
	}
	return Finding{Probe: engine.Block(f.layer, f.part), Metric: "error on the candidate's own rows", Got: Number(m.Got),
		Limit: Limit{Number(bound.Value * m.Yard), bound.Describe()}, At: at, Detail: detail, follows: !f.source}
}

func (f gainFault) finding(file string) Finding {
	half := "the MLP"
	if f.part == engine.PartResidMid {
		half = "attention"
	}
	out := Finding{Probe: engine.Block(f.layer, f.part), At: At{Row: f.layer + 1, Channel: -1, File: file}}
	if f.whole {
		out.Metric, out.Got, out.Limit = "gain of "+half+"'s update, beyond the yardstick's", Number(abs(f.g.Got-f.g.Yard)),
			Limit{Number(f.bound), f.source.Describe()}
		out.Detail = fmt.Sprintf("the update of %s comes out %+.1f %%", half, 100*f.g.Got)
		return out
	}
	out.At.Channel = f.g.Channel
	out.Metric, out.Got, out.Limit = "t-value of one channel's error on its update", Number(abs(f.g.T)), Limit{Number(f.bound), f.source.Describe()}
	out.Detail = fmt.Sprintf("the error of channel %d is %+.2f times what %s adds there", f.g.Channel, f.g.Slope, half)
	switch {
	case abs(f.g.Slope+1) < 0.25:
		out.Detail += ": the channel is dead"
	case abs(f.g.Slope+2) < 0.25:
		out.Detail += ": the channel has the wrong sign"
	}
	return out
}
