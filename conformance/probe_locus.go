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
	s := probeSearch{p: p, b: b, faults: p.faults(b), onDisk: map[int]bool{}, layers: map[int]bool{}, loc: Locus{Row: -1}}
	s.input()
	s.dumpFaults()
	s.everywhere()
	s.sources()
	s.date()
	slices.SortStableFunc(s.loc.Sources, func(a, b engine.Probe) int { return depthOfProbe(a) - depthOfProbe(b) })
	return s.loc
}

// probeSearch is a locus in the making.
type probeSearch struct {
	p      *ProbeProfile
	b      Budgets
	faults []probeFault
	// onDisk are layers whose rows are wrong in the dump alone, layers those that
	// are at fault themselves.
	onDisk, layers map[int]bool
	// common are the places that are out of budget in most layers.
	common map[engine.Part]bool
	loc    Locus
}

func (s *probeSearch) note(format string, args ...any) {
	s.loc.Notes = append(s.loc.Notes, fmt.Sprintf(format, args...))
}

// name makes a row the first bad one, if none before it is.
func (s *probeSearch) name(row int, k Kind) {
	if s.loc.Row < 0 || row < s.loc.Row {
		s.loc.Row, s.loc.Kind = row, k
	}
}

func (s *probeSearch) input() {
	at := slices.IndexFunc(s.p.Embed, func(m Measure) bool { return over(m.Ratio(), s.p.Factors.Single.Value) })
	if at < 0 {
		return
	}
	if slices.ContainsFunc(s.faults, func(f probeFault) bool { return f.layer == 0 && f.m.At[min(at, len(f.m.At)-1)].Ratio() > suspicious }) {
		s.onDisk[0] = true
		s.name(0, KindDump)
		s.loc.position = &at
		s.note("the embedding of position %d is not that of its token, and layer 0 ran on another: it is wrong in the dump alone", at)
		return
	}
	s.name(0, KindInput)
	s.loc.Sources, s.loc.position = []engine.Probe{engine.ProbeEmbed}, &at
	s.note("the embedding of position %d is not that of its token: the input is wrong, not a layer", at)
}

// dumpFaults finds what is wrong in the dump while the engine went on from what is
// right: a row between two layers that are right together, and a resid_mid in a
// layer that is right as a whole.
func (s *probeSearch) dumpFaults() {
	inside := map[int]map[engine.Part]bool{}
	for _, f := range s.faults {
		if inside[f.layer] == nil {
			inside[f.layer] = map[engine.Part]bool{}
		}
		inside[f.layer][f.part] = true
	}
	bounds := s.p.boundsOf(s.p.column(wholeLayer), s.b)
	for n, l := range s.p.Layers {
		bad := inside[n]
		whole := l.Local.measured() && !over(l.Local.All.Ratio(), bounds.pooled.Value) && l.Local.first(bounds.single.Value) < 0
		if whole && bad[engine.PartResidMid] && (bad[engine.PartResidPost] || bad[engine.PartMLPOut]) {
			s.onDisk[n] = true
			s.name(n+1, KindDump)
			s.note("%s is wrong in the dump alone: layer %d as a whole maps its input row to its output row as it should", engine.ResidMid(n), n)
		}
		// A row that is wrong in the dump alone has nothing wrong before it in its layer.
		others := len(bad) > 1 || len(bad) == 1 && !bad[engine.PartResidPost]
		if n == len(s.p.Layers)-1 || s.onDisk[n] || others || !s.p.heals(n, s.b) {
			continue
		}
		s.onDisk[n], s.onDisk[n+1] = true, true
		note := healNote(n, 2)
		if s.loc.Row < 0 {
			s.loc.healed, s.loc.healing = 2, note
		}
		s.name(n+1, KindDump)
		s.note("%s", note)
	}
}

// everywhere tells a fault of all layers.
func (s *probeSearch) everywhere() {
	count := map[engine.Part]int{}
	for _, f := range s.faults {
		if s.onDisk[f.layer] {
			continue
		}
		s.layers[f.layer] = true
		if f.source {
			count[f.part]++
		}
	}
	measurable := 0
	for _, l := range s.p.Layers {
		if len(l.Parts) > 0 {
			measurable++
		}
	}
	most := max(4, s.b.AllLayers.Value*float64(measurable))
	s.common = map[engine.Part]bool{}
	for part, n := range count {
		s.common[part] = float64(n) > most
	}
	if float64(len(s.layers)) > most {
		s.note("%d of %d layers are out of budget on the candidate's own rows: a fault of all layers", len(s.layers), measurable)
		if s.loc.Row < 0 {
			s.loc.Kind = KindAllLayers
		}
	}
}

// sources lists what is at fault. Of a fault of all layers the first is enough.
func (s *probeSearch) sources() {
	all := s.loc.Kind == KindAllLayers
	first := map[engine.Part]bool{}
	add := func(layer int, part engine.Part) {
		s.name(layer+1, KindLayer)
		if probe := engine.Block(layer, part); !slices.Contains(s.loc.Sources, probe) {
			s.loc.Sources = append(s.loc.Sources, probe)
		}
	}
	for _, f := range s.faults {
		if !f.source || s.onDisk[f.layer] || s.common[f.part] && first[f.part] {
			continue
		}
		// Where most layers are at fault in one way or another, those of the first say it.
		if all && !s.common[f.part] && !anyOf(s.common) && s.loc.Row > 0 && f.layer+1 > s.loc.Row {
			continue
		}
		first[f.part] = true
		add(f.layer, f.part)
		if f.heads != nil {
			s.note("%s: %s", engine.Block(f.layer, f.part), headsNote(f.heads))
		}
	}
	for _, f := range s.p.gainFaults(s.b) {
		if !s.onDisk[f.layer] && !s.layers[f.layer] {
			add(f.layer, f.part)
		}
	}
	if all && s.loc.Row > 0 && s.loc.Kind == KindLayer {
		s.loc.Kind = KindAllLayers
	}
}

func anyOf(set map[engine.Part]bool) bool {
	for _, in := range set {
		if in {
			return true
		}
	}
	return false
}

// date says from which position on the first source is wrong. Where the positions
// before it are not as right as the layers that are, there is no date: the fault is
// everywhere, and there it left the noise.
func (s *probeSearch) date() {
	if s.loc.Row < 1 || s.loc.Kind == KindDump {
		return
	}
	for _, f := range s.faults {
		if !f.source || f.layer+1 != s.loc.Row || f.first < 0 || (s.loc.position != nil && *s.loc.position <= f.first) {
			continue
		}
		right := true
		for _, m := range f.m.At[min(1, f.first):f.first] {
			right = right && !over(m.Ratio(), suspicious*f.bound.level)
		}
		if right {
			s.loc.position = &f.first
		}
	}
	if s.loc.position != nil && *s.loc.position > 1 {
		s.note("position %d is the first that is wrong, and those before it are right: a fault of the cache, a window or a position", *s.loc.position)
	}
}

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
