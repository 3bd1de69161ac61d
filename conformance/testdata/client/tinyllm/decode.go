package tinyllm

import (
	"fmt"
	"slices"
)

// Output is what a prompt came to.
type Output struct {
	// Rows are the last prompt token's: its embedding, and the residual stream
	// after each layer.
	Rows [][]float32
	// IDs are the tokens that were chosen, Logits the row each was chosen from.
	IDs    []int
	Logits [][]float32
}

// Run runs a prompt and decodes greedily: at most steps tokens, or up to one of
// stop, which is then the last.
func (m *Model) Run(prompt []int, steps int, stop []int) (*Output, error) {
	if len(prompt) == 0 {
		return nil, fmt.Errorf("tinyllm: got an empty prompt")
	}
	s := m.NewSession()
	for i, id := range prompt {
		if id < 0 || id >= m.Vocab {
			return nil, fmt.Errorf("tinyllm: token %d: got id %d, want one below %d", i, id, m.Vocab)
		}
		s.Step(id)
	}
	out := &Output{Rows: slices.Clone(s.Rows)}
	for len(out.IDs) < steps {
		if n := len(out.IDs); n > 0 {
			s.Step(out.IDs[n-1])
		}
		logits := s.Logits()
		id := 0
		for j, x := range logits {
			if x > logits[id] {
				id = j
			}
		}
		out.IDs, out.Logits = append(out.IDs, id), append(out.Logits, logits)
		if slices.Contains(stop, id) {
			break
		}
	}
	return out, nil
}
