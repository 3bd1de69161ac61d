package conformance

import (
	"errors"
	"fmt"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// Places are what a candidate offers of a case at every position.
type Places struct {
	// Positions is the number of positions, from 0 on; all places have as many.
	Positions int
	// Rows has [positions][width] values per place.
	Rows map[engine.Probe][][]float64
	// File is where they came from; empty when it was not a file.
	File string
	// Prefixes is how many dumps of prefixes the places were put together from,
	// 0 when they came as probes.
	Prefixes int
}

// readPlaces reads probes of a model. What is wrong with them is the candidate's
// fault. A place that has another width than the model's, or another number of
// positions than its neighbours, belongs to another model or another run.
func readPlaces(src engine.ProbeSource, a engine.Arch, prompt, limit int, file string) (*Places, error) {
	names := src.Probes()
	if len(names) == 0 {
		return nil, errors.New("got no probe, want at least 1")
	}
	p := &Places{Rows: map[engine.Probe][][]float64{}, File: file}
	for _, name := range names { // before anything is read
		width, err := name.Width(a)
		if err != nil {
			return nil, err
		}
		positions, got := src.Shape(name)
		switch {
		case got != width:
			return nil, fmt.Errorf("%s: width: got %d, want %d", name, got, width)
		case positions < prompt || positions > limit:
			return nil, fmt.Errorf("%s: got %d positions, want %d (the prompt's token_ids) to %d (with its output_ids)", name, positions, prompt, limit)
		case p.Positions != 0 && positions != p.Positions:
			return nil, fmt.Errorf("%s: got %d positions, want %d as probe %s has", name, positions, p.Positions, names[0])
		}
		p.Positions = positions
	}
	for _, name := range names {
		if name == engine.ProbeLogits {
			continue // the logits of a prompt's positions choose nothing
		}
		m, err := src.Matrix(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		p.Rows[name] = widened(m)
	}
	return p, nil
}

func widened(m engine.Matrix) [][]float64 {
	out := make([][]float64, m.Rows)
	for i := range out {
		out[i] = make([]float64, m.Width)
		for j, v := range m.Row(i) {
			out[i][j] = float64(v)
		}
	}
	return out
}

// stream is the residual stream at every position, with the row of the layer's
// input for each layer n at index n; nil where a row is not offered.
func (p *Places) stream(layers int) [][][]float64 {
	out := make([][][]float64, layers+1)
	for i := range out {
		out[i] = p.Rows[engine.RowProbe(i)]
	}
	return out
}

// lastRows are the rows of one position, nil unless all of them are offered.
func (p *Places) lastRows(layers, position int) [][]float64 {
	if position >= p.Positions {
		return nil
	}
	out := make([][]float64, 0, layers+1)
	for _, rows := range p.stream(layers) {
		if rows == nil {
			return nil
		}
		out = append(out, rows[position])
	}
	return out
}

// unusable is the first position of a place whose values say nothing, the channel
// and what is wrong; -1 when there is none. A place inside a layer may well be
// zero.
func unusable(p engine.Probe, rows [][]float64) (position, channel int, what string) {
	_, part, inside := p.Block()
	// An embedding may be zero, as a padding token's: it is judged by value.
	residual := inside && (part == engine.PartResidMid || part == engine.PartResidPost)
	for i, row := range rows {
		c := metric.Classify(row)
		if ch := beyondFloat32(row); c.Kind != metric.NonFinite && ch >= 0 {
			return i, ch, "beyond what a float32 layer can take"
		}
		if c.Kind == metric.NonFinite || (residual && c.Degenerate()) {
			return i, c.Index, c.Kind.String()
		}
	}
	return -1, -1, ""
}

// fromPrefixes puts all-position places together from dumps of the prefixes of
// one prompt: rows are causal, so the last row of a prefix is the row at its
// position in the whole. nil unless each prefix is among the cases.
func fromPrefixes(ev *Evidence, byIDs map[string]*Evidence) *Places {
	ids := ev.Case.TokenIDs
	p := &Places{Positions: len(ids), Rows: map[engine.Probe][][]float64{}, Prefixes: len(ids)}
	if len(ids) < 2 {
		return nil
	}
	for t := range ids {
		of := byIDs[fmt.Sprint(ids[:t+1])]
		if of == nil || of.Candidate == nil {
			return nil
		}
		for i, row := range of.Candidate.Rows {
			p.Rows[engine.RowProbe(i)] = append(p.Rows[engine.RowProbe(i)], row)
		}
	}
	return p
}
