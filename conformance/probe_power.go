package conformance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// positionsPower is what the places at every position can show, and what was
// offered and not judged.
func positionsPower(evs []*Evidence, cases, positions int) []string {
	var parts, unjudged []string
	prefixes, noEmbed, highest := 0, 0, 0.0
	var low, high float64
	unheldNorm := false
	for _, ev := range evs {
		p := ev.ProbeProfile
		if p == nil || !p.anyMeasured() {
			continue
		}
		prefixes = max(prefixes, ev.Places.Prefixes)
		for _, part := range engine.Parts() {
			if !slices.Contains(parts, string(part)) && slices.ContainsFunc(p.Layers, func(l LayerProbes) bool { _, ok := l.Parts[part]; return ok }) {
				parts = append(parts, string(part))
			}
		}
		unheldNorm = unheldNorm || p.FinalNorm != nil && !p.normsInFloat()
		if p.Embed == nil {
			noEmbed++
		}
		for _, name := range notMeasured(ev) {
			if !slices.Contains(unjudged, name) {
				unjudged = append(unjudged, name)
			}
		}
		if p.SchemeUnknown != "" {
			highest = max(highest, metric.Quantile(0.25, measured(p.column(wholeLayer))))
		}
		bound := p.boundsOf(p.column(wholeLayer), ev.Budgets).pooled.Value
		for _, l := range p.Layers {
			if x := bound * l.Local.All.Yard; l.Local.measured() {
				if low == 0 || x < low {
					low = x
				}
				high = max(high, x)
			}
		}
	}
	from := "from probes"
	if prefixes > 0 {
		from = fmt.Sprintf("put together from the dumps of %d prefixes", prefixes)
	}
	out := []string{fmt.Sprintf("%d of %d prompts judged at every position, %d positions in all, %s: each layer on the candidate's own rows; places: %s",
		cases, len(evs), positions, from, strings.Join(parts, ", "))}
	if high > 0 {
		out = append(out, fmt.Sprintf("over all positions a fault in one layer is seen if it is %s to %s of what that layer adds", percent(low), percent(high)))
	}
	if highest > 0 {
		line := fmt.Sprintf("the declared arithmetic is not emulated: layers are compared with each other alone, and their common level is %.3g times the emulation's error", highest)
		if highest > 2 {
			line += ": a fault of all layers would look the same"
		}
		out = append(out, line)
	}
	if unheldNorm {
		out = append(out, "not judged: final_norm, whose rounding the declared arithmetic doesn't tell")
	}
	if noEmbed > 0 {
		out = append(out, fmt.Sprintf("not seen: a wrong input in %d of %d prompts, whose probes lack embed", noEmbed, cases))
	}
	if len(unjudged) > 0 {
		shown := unjudged
		if len(shown) > 4 {
			shown = append(slices.Clone(shown[:4]), fmt.Sprintf("and %d more", len(unjudged)-4))
		}
		out = append(out, "offered and not judged, since the layer's input row is not dumped: "+strings.Join(shown, ", "))
	}
	if !slices.Contains(parts, string(engine.PartResidMid)) {
		out = append(out, "not told apart: the attention half of a layer and its MLP half: dump blocks.N.resid_mid as well")
	}
	return out
}

// notMeasured are the places that were offered and could not be judged, in depth
// order. The logits of a prompt's positions are none of them: they choose nothing.
func notMeasured(ev *Evidence) []string {
	var out []string
	for _, probe := range engine.Probes(ev.Arch) {
		if _, offered := ev.Places.Rows[probe]; !offered {
			continue
		}
		n, part, inside := probe.Block()
		switch {
		case inside:
			if m, ok := ev.ProbeProfile.Layers[n].Parts[part]; !ok || !m.measured() {
				out = append(out, string(probe))
			}
		case probe == engine.ProbeFinalNorm && ev.ProbeProfile.normsInFloat() && ev.ProbeProfile.FinalNorm == nil:
			out = append(out, string(probe))
		}
	}
	return out
}
