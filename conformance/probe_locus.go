package conformance

import (
	"fmt"
	"slices"

	"github.com/plumbline-go/plumbline/engine"
)

// locateProbes names the sources: every place out of budget that no other in its
// layer explains. Layers don't explain each other, since each ran on the
// candidate's own rows.
func locateProbes(p *ProbeProfile, b Budgets) Locus {
	if at := slices.IndexFunc(p.Embed, func(m Measure) bool { return over(m.Ratio(), p.Factors.Single.Value) }); at >= 0 {
		return Locus{Row: 0, Kind: KindInput, Sources: []engine.Probe{engine.ProbeEmbed}, position: &at, Notes: []string{
			fmt.Sprintf("the embedding of position %d is not that of its token: the input is wrong, not a layer", at)}}
	}
	faults, gains := p.faults(b), p.gainFaults(b)
	loc := Locus{Row: -1}
	healed := map[int]bool{}
	layers, inside := map[int]bool{}, map[int]bool{}
	for _, f := range faults {
		inside[f.layer] = inside[f.layer] || f.part != engine.PartResidPost
	}
	for n := range p.Layers[:len(p.Layers)-1] {
		// A row that is wrong in the dump alone has nothing wrong before it.
		if !healed[n] && !inside[n] && p.heals(n, b) {
			healed[n], healed[n+1] = true, true
			note := healNote(n, 2)
			if loc.Row < 0 {
				loc.Row, loc.Kind, loc.healed, loc.healing = n+1, KindDump, 2, note
			}
			loc.Notes = append(loc.Notes, note)
		}
	}
	for _, f := range faults {
		if !healed[f.layer] {
			layers[f.layer] = true
		}
	}
	measurable := len(measured(p.column(wholeLayer)))
	everywhere := float64(len(layers)) > max(4, b.AllLayers.Value*float64(measurable))
	add := func(layer int, part engine.Part) {
		if loc.Row < 0 || layer+1 < loc.Row {
			loc.Row, loc.Kind = layer+1, KindLayer
		}
		probe := engine.Block(layer, part)
		if everywhere && len(loc.Sources) > 0 && !sameLayer(loc.Sources[0], layer) || slices.Contains(loc.Sources, probe) {
			return
		}
		loc.Sources = append(loc.Sources, probe)
	}
	for _, f := range faults {
		if f.source && !healed[f.layer] {
			add(f.layer, f.part)
			if f.heads != nil {
				loc.Notes = append(loc.Notes, fmt.Sprintf("%s: %s", engine.Block(f.layer, f.part), headsNote(f.heads)))
			}
		}
	}
	for _, f := range gains {
		if !healed[f.layer] && !layers[f.layer] {
			add(f.layer, f.part)
		}
	}
	for _, f := range faults { // of the first source; the others have dates of their own
		if f.source && f.layer+1 == loc.Row && loc.Kind != KindDump && f.first >= 0 && (loc.position == nil || f.first < *loc.position) {
			loc.position = &f.first
		}
	}
	if everywhere {
		loc.Kind = KindAllLayers
		loc.Notes = append(loc.Notes, fmt.Sprintf("%d of %d layers are out of budget on the candidate's own rows: a fault of all layers", len(layers), measurable))
	}
	if loc.position != nil && *loc.position > 1 && loc.Row > 0 {
		loc.Notes = append(loc.Notes, fmt.Sprintf("position %d is the first that is wrong, and those before it are right: a fault of the cache, a window or a position", *loc.position))
	}
	slices.SortStableFunc(loc.Sources, func(a, b engine.Probe) int { return depthOfProbe(a) - depthOfProbe(b) })
	return loc
}

func sameLayer(p engine.Probe, layer int) bool { return depthOfProbe(p) == layer }

// depthOfProbe is the probe's layer, -1 before the layers.
func depthOfProbe(p engine.Probe) int {
	if n, _, ok := p.Block(); ok {
		return n
	}
	return -1
}

// heals reports whether layers n and n+1 are each out of budget while both
// together are right: then the row between them is wrong in the dump alone.
func (p *ProbeProfile) heals(n int, b Budgets) bool {
	bound := p.boundsOf(p.column(wholeLayer), b).pooled.Value
	one, two, both := p.Layers[n].Local, p.Layers[n+1].Local, p.Layers[n].Over
	if both.Missing || !one.measured() || !two.measured() {
		return false
	}
	least := min(one.All.Ratio(), two.All.Ratio())
	return over(least, bound) && !over(both.Ratio(), bound) && least >= b.OneLayerShape.Value*both.Ratio()
}
