package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/tools/internal/selfcheck"
)

// prober captures places in the model over all positions.
type prober interface {
	CaptureProbes(ctx context.Context, ids, output []int, probes []engine.Probe) (map[engine.Probe]engine.Matrix, error)
}

// hiddenProbes are all places of a model but the logits: those are as wide as the
// vocabulary, and have a dump of their own.
func hiddenProbes(arch engine.Arch) []engine.Probe {
	return slices.DeleteFunc(engine.Probes(arch), func(p engine.Probe) bool { return p == engine.ProbeLogits })
}

// parseProbes reads --probes: names, comma separated, "all" for hiddenProbes, and
// blocks.*.PART for the place in every layer that has it, at least one. Each is there
// once, in the order of computation.
func parseProbes(list string, arch engine.Arch) ([]engine.Probe, error) {
	wanted := map[engine.Probe]bool{}
	for _, name := range strings.Split(list, ",") {
		name = strings.TrimSpace(name)
		var add []engine.Probe
		if part, ok := strings.CutPrefix(name, "blocks.*."); ok {
			add = everyLayers(engine.Part(part), arch)
		} else if name == "all" {
			add = hiddenProbes(arch)
		} else {
			add = []engine.Probe{engine.Probe(name)}
		}
		for _, p := range add {
			if _, err := p.Width(arch); err != nil {
				return nil, usageErrorf("--probes: %q: %v; or all, or blocks.*. for every layer", name, err)
			}
			wanted[p] = true
		}
	}
	return slices.DeleteFunc(engine.Probes(arch), func(p engine.Probe) bool { return !wanted[p] }), nil
}

// everyLayers are the places of all layers that have the part; of a part that no
// layer has, the first one's, for its error.
func everyLayers(part engine.Part, arch engine.Arch) (all []engine.Probe) {
	for n := range arch.Layers {
		if p := engine.Block(n, part); slices.Contains(engine.Probes(arch), p) {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		all = append(all, engine.Block(0, part))
	}
	return all
}

// captureProbes captures places over the prompt and the tokens behind it, and
// holds them to the rows of a capture of the same prompt: where both have the
// residual stream at the prompt's last position, they have the same bits. A
// *selfcheck.Error says that they don't, or that a value isn't finite.
func captureProbes(ctx context.Context, ref prober, ids, output []int, wanted []engine.Probe, rows [][]float64) (*probed, error) {
	got, err := ref.CaptureProbes(ctx, ids, output, wanted)
	if err != nil {
		return nil, err
	}
	const check = "probes"
	for _, p := range wanted {
		for i, x := range got[p].Data {
			if y := float64(x); (math.IsNaN(y) || math.IsInf(y, 0)) && !masked(p, y) {
				return nil, &selfcheck.Error{Check: check, Row: rowOfProbe(p, len(rows)-1),
					Why: fmt.Sprintf("%s: position %d, channel %d: got %v, want a finite value", p, i/got[p].Width, i%got[p].Width, x)}
			}
		}
	}
	for i, row := range rows {
		m, ok := got[engine.RowProbe(i)]
		if !ok {
			continue
		}
		for j, x := range m.Row(len(ids) - 1) {
			if x != float32(row[j]) {
				return nil, &selfcheck.Error{Check: check, Row: i, Why: fmt.Sprintf("channel %d of %s at position %d: got %v, the capture has %v",
					j, engine.RowProbe(i), len(ids)-1, x, float32(row[j]))}
			}
		}
	}
	return &probed{wanted, got}, nil
}

// rowOfProbe is the row of a capture that a place comes before or is; last for
// what lies behind the layers.
func rowOfProbe(p engine.Probe, last int) int {
	n, _, ok := p.Block()
	switch {
	case ok:
		return n + 1
	case p == engine.ProbeEmbed:
		return 0
	}
	return last
}

// probed are captured places, in the order of computation.
type probed struct {
	names  []engine.Probe
	values map[engine.Probe]engine.Matrix
}

// positions is how many each place has, at least one.
func (p *probed) positions() int { return p.values[p.names[0]].Rows }

// specs lists the tensors of a probe file.
func (p *probed) specs() []dumpfmt.TensorSpec {
	specs := make([]dumpfmt.TensorSpec, len(p.names))
	for i, name := range p.names {
		specs[i] = dumpfmt.TensorSpec{Name: string(name), DType: dumpfmt.F32, Shape: []int{p.values[name].Rows, p.values[name].Width}}
	}
	return specs
}

// write writes the tensors that specs lists, and leaves the commit to the caller.
func (p *probed) write(w *dumpfmt.SafetensorsWriter) error {
	for _, name := range p.names {
		if err := w.WriteFloat32s(string(name), p.values[name].Data); err != nil {
			return err
		}
	}
	return nil
}

// masked reports whether a value is what a router has in the place of the scores
// that are out of its choice.
func masked(p engine.Probe, x float64) bool {
	_, part, _ := p.Block()
	return part == engine.PartRouterScores && math.IsInf(x, -1)
}
