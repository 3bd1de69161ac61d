package conformance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden"
)

// routedBatch are cases that ran together, or one alone.
type routedBatch struct {
	names []string
	cases []golden.TensorCase
}

func (b routedBatch) name() string { return strings.Join(b.names, " and ") }

// batches reads the cases of a model's golden.
func (m *RoutedModel) batches() ([]routedBatch, error) {
	of := map[string]int{}
	var out []routedBatch
	for _, name := range m.Golden.Manifest.Cases {
		c, err := m.Golden.Case(name)
		if err != nil {
			return nil, err
		}
		i, known := of[c.Batch]
		if c.Batch == "" || !known {
			i = len(out)
			out = append(out, routedBatch{})
			of[c.Batch] = i
		}
		out[i].names, out[i].cases = append(out[i].names, name), append(out[i].cases, c)
	}
	if m.Cases == nil {
		return out, nil
	}
	return slices.DeleteFunc(out, func(b routedBatch) bool {
		return !slices.ContainsFunc(b.names, func(n string) bool { return slices.Contains(m.Cases, n) })
	}), nil
}

// tensors are the places that are recorded of any of the cases.
func (b routedBatch) tensors() []engine.Probe {
	seen := map[engine.Probe]bool{}
	for _, c := range b.cases {
		for name := range c.Tensors {
			seen[engine.Probe(name)] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// prompts are the ids of the cases.
func (b routedBatch) prompts() [][]int {
	var out [][]int
	for _, c := range b.cases {
		out = append(out, c.TokenIDs)
	}
	return out
}

// places runs a model on a batch and gives the places of each case by its own
// positions: those that were asked for, of one sequence alone; of a batch, of them
// what a trace has.
func (m *RoutedModel) places(ctx context.Context, model engine.Routed, b routedBatch, probes []engine.Probe) ([]map[engine.Probe]engine.Matrix, error) {
	if len(b.cases) == 1 && b.cases[0].Start == 0 {
		c := b.cases[0]
		got, err := model.CaptureProbes(ctx, c.TokenIDs, c.ForcedIDs, probes)
		return []map[engine.Probe]engine.Matrix{got}, err
	}
	longest := 0
	for _, c := range b.cases {
		longest = max(longest, len(c.TokenIDs))
	}
	out := make([]map[engine.Probe]engine.Matrix, len(b.cases))
	for i, c := range b.cases {
		if c.Start != longest-len(c.TokenIDs) || len(c.ForcedIDs) > 1 {
			return nil, fmt.Errorf("golden: case %s: got start %d and %d forced tokens, want %d and at most 1: that of a batch padded to its longest prompt",
				b.names[i], c.Start, len(c.ForcedIDs), longest-len(c.TokenIDs))
		}
		out[i] = map[engine.Probe]engine.Matrix{}
	}
	keep := func(i int, p engine.Probe, at engine.Matrix) {
		if slices.Contains(probes, p) {
			out[i][p] = at
		}
	}
	last := engine.RowProbe(m.Arch.Layers)
	err := model.TraceBatch(ctx, b.prompts(), m.Pad, func(s engine.Stage) error {
		for i, c := range b.cases {
			from, to := i*longest+c.Start, (i+1)*longest
			rows := engine.Matrix{Rows: to - from, Width: s.Rows.Width, Data: s.Rows.Data[from*s.Rows.Width : to*s.Rows.Width]}
			keep(i, s.Probe, rows)
			if s.Probe == last && slices.Contains(probes, engine.ProbeLogits) {
				logits, err := model.Logits(ctx, wide(rows.Row(rows.Rows-1)))
				if err != nil {
					return err
				}
				keep(i, engine.ProbeLogits, matrixOf([][]float64{logits}))
			}
			layer, _, ok := s.Probe.Block()
			if s.Routing == nil || !ok {
				continue
			}
			keep(i, engine.Block(layer, engine.PartRouterLogits), matrixOf(s.Routing.Logits[from:to]))
			keep(i, engine.Block(layer, engine.PartRouterScores), matrixOf(s.Routing.Scores[from:to]))
			keep(i, engine.Block(layer, engine.PartRouteWeights), matrixOf(s.Routing.Weights[from:to]))
			keep(i, engine.Block(layer, engine.PartRouteIDs), matrixOf(floats(s.Routing.IDs[from:to])))
		}
		return nil
	})
	return out, err
}

// matrixOf are rows of one width as float32.
func matrixOf(rows [][]float64) engine.Matrix {
	m := engine.Matrix{Rows: len(rows), Width: len(rows[0])}
	for _, row := range rows {
		for _, v := range row {
			m.Data = append(m.Data, float32(v))
		}
	}
	return m
}

func floats(ids [][]int) [][]float64 {
	out := make([][]float64, len(ids))
	for i, row := range ids {
		for _, id := range row {
			out[i] = append(out[i], float64(id))
		}
	}
	return out
}

// at is the row of a run's places that belongs to row i of a recorded tensor, and its
// position; ok is false where the run hasn't got it.
func (r *RoutedRun) at(got map[engine.Probe]engine.Matrix, p engine.Probe, i int) (row []float32, position int, ok bool) {
	m, have := got[p]
	_, part, inBlock := p.Block()
	switch {
	case p == engine.ProbeLogits:
		position = len(r.Golden.TokenIDs) - 1 + i
		if m.Rows == 1 { // of the last position alone
			return m.Row(0), position, have && i == 0
		}
	case inBlock && part.Routed():
		position = i
	default:
		position = r.Golden.Positions[i]
	}
	if !have || position >= m.Rows {
		return nil, position, false
	}
	return m.Row(position), position, true
}
