package engine

import (
	"fmt"
	"maps"
	"slices"
)

// ProbeSource yields places in the model at every position of a run: its first
// row is position 0, and the positions go over the prompt's ids and then, as far
// as they go, over the output's.
type ProbeSource interface {
	// Probes lists what there is, in name order. Nobody has checked the names:
	// [Probe.Width] does.
	Probes() []Probe
	// Shape returns the positions and the width of one of them.
	Shape(p Probe) (positions, width int)
	// Matrix reads one of them, [positions, width].
	Matrix(p Probe) (Matrix, error)
	Close() error
}

// ProbeValues is a ProbeSource in memory. A matrix must not be written after it
// was handed out.
type ProbeValues map[Probe]Matrix

// Probes lists the probes in name order.
func (v ProbeValues) Probes() []Probe { return slices.Sorted(maps.Keys(v)) }

// Shape returns the positions and the width of a probe.
func (v ProbeValues) Shape(p Probe) (positions, width int) { return v[p].Rows, v[p].Width }

// Matrix returns a probe.
func (v ProbeValues) Matrix(p Probe) (Matrix, error) {
	m, ok := v[p]
	if !ok || m.Rows*m.Width != len(m.Data) {
		return Matrix{}, fmt.Errorf("engine: probe %s: got %d values, want %d positions of %d", p, len(m.Data), m.Rows, m.Width)
	}
	return m, nil
}

// Close does nothing.
func (v ProbeValues) Close() error { return nil }

// LayerRun is what one decoder layer makes of residual rows: each part of the
// layer, [positions][width].
type LayerRun map[Part][][]float64
