package mutant

import (
	"fmt"

	"github.com/plumbline-go/plumbline/engine"
)

// probeFault spoils the probes of an answer: it replaces a matrix, and never
// writes one. An answer without the probe that it acts on stays as it is.
type probeFault func(layer int, v engine.ProbeValues)

const (
	ofProbe  = "attn_out of layer L, or where the answer hasn't got it, the layer's first probe by name"
	ofAbsent = "; no power where the answer hasn't got both"
)

// probeFaults spoil what is dumped of a healthy run's inside.
func probeFaults() []Mutant {
	return []Mutant{
		{
			Name: "probe-k-v-exchanged", Place: Layer, Named: "k_rope and v of layer L, as faults of the dump" + ofAbsent,
			Bug: "keys and values of a fused projection are dumped under each other's name; the run is right",
			probes: func(layer int, v engine.ProbeValues) {
				key, value := engine.Block(layer, engine.PartKRope), engine.Block(layer, engine.PartV)
				k, hasK := v[key]
				if w, hasV := v[value]; hasK && hasV {
					v[key], v[value] = w, k
				}
			},
		},
		{
			Name: "probe-positions-shifted", Place: Layer, Named: ofProbe + ", from position 1 on; no power on one position",
			Bug: "a probe is written one position too late: position t holds the row of t-1, the first one twice",
			probes: func(layer int, v engine.ProbeValues) {
				if p, ok := probeOf(layer, v); ok && v[p].Rows > 1 {
					m := v[p]
					last := len(m.Data) - m.Width
					m.Data = append(append(make([]float32, 0, len(m.Data)), m.Data[:m.Width]...), m.Data[:last]...)
					v[p] = m
				}
			},
		},
		{
			Name: "probe-short", Place: Layer, Named: ofProbe + ", by its positions",
			Bug: "a probe lacks its last position: the file is written before the last step has run",
			probes: func(layer int, v engine.ProbeValues) {
				if p, ok := probeOf(layer, v); ok {
					v[p] = cutMatrix(v[p], v[p].Rows-1)
				}
			},
		},
		{
			Name: "probe-unknown-name", Place: Layer, Named: "the name model.layers.L.hook, which no model has; before it, " + ofProbe,
			Bug: "a probe is dumped under the name of the engine's own module",
			probes: func(layer int, v engine.ProbeValues) {
				if p, ok := probeOf(layer, v); ok {
					v[engine.Probe(fmt.Sprintf("model.layers.%d.hook", layer))] = v[p]
					delete(v, p)
				}
			},
		},
	}
}

// probeOf is the probe of a layer that a fault of one probe acts on.
func probeOf(layer int, v engine.ProbeValues) (engine.Probe, bool) {
	p := engine.Block(layer, engine.PartAttnOut)
	if _, ok := v[p]; ok {
		return p, true
	}
	for _, p := range v.Probes() {
		if n, _, ok := p.Block(); ok && n == layer {
			return p, true
		}
	}
	return "", false
}

// cutMatrix is the first positions of a matrix, all of them where it has fewer.
func cutMatrix(m engine.Matrix, positions int) engine.Matrix {
	m.Rows = max(0, min(m.Rows, positions))
	m.Data = m.Data[:m.Rows*m.Width]
	return m
}
