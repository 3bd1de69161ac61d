package mutant

import (
	"fmt"
	"slices"

	"github.com/plumbline-go/plumbline/engine"
)

// Place says what the index that a mutant is planted at means.
type Place int

const (
	// Nowhere: the fault has no place, the index is ignored.
	Nowhere Place = iota
	// Layer: the index is a decoder layer, counted from 0.
	Layer
	// LayerOrAll: a layer, or every layer when the index is negative.
	LayerOrAll
	// Row: the index is a row of the residual capture.
	Row
	// OutputRow: the index is a row of the logits; the last one where it is
	// negative or the output is shorter.
	OutputRow
)

// Mutant is one fault.
type Mutant struct {
	// Name identifies the mutant.
	Name string
	// Bug is what goes wrong in a real engine.
	Bug string
	// Source is a public report of a bug of this kind, or empty.
	Source string
	// Place says what it is planted at.
	Place Place
	// Named says where a harness must name it.
	Named string

	weights weightFault
	// decode is true for a fault that only the token-by-token run has.
	decode bool
	rows   rowFault
	output outputFault
	answer answerFault
	probes probeFault
	// referenceRows and candidateRows say whose captures rows can spoil.
	referenceRows, candidateRows bool
}

// InWeights is true when Weights can plant the fault.
func (m Mutant) InWeights() bool { return m.weights != nil }

// InReference is true when Reference can plant the fault.
func (m Mutant) InReference() bool { return m.weights != nil || m.referenceRows || m.output != nil }

// InCandidate is true when Candidate can plant the fault.
func (m Mutant) InCandidate() bool {
	return m.weights != nil || m.candidateRows || m.output != nil || m.answer != nil || m.probes != nil
}

// All returns every mutant: faults of the engine first, then of the capture, of
// the decode, of the answer as a whole, and of its probes.
func All() []Mutant {
	return slices.Concat(engineFaults(), cacheFaults(), hybridFaults(), routeFaults(), captureFaults(), outputFaults(), answerFaults(), probeFaults())
}

// Lookup returns the mutant with the name.
func Lookup(name string) (Mutant, error) {
	for _, m := range All() {
		if m.Name == name {
			return m, nil
		}
	}
	return Mutant{}, fmt.Errorf("mutant: %q: got an unknown name", name)
}

// checkPlace refuses an index that the mutant can't be planted at in a model of
// so many layers.
func (m Mutant) checkPlace(at, layers int) error {
	high := layers - 1
	switch {
	case m.Place == Nowhere, m.Place == OutputRow, m.Place == LayerOrAll && at < 0:
		return nil
	case m.Place == Row:
		high = layers
	}
	if at < 0 || at > high {
		return m.errorf("got index %d, want 0 to %d", at, high)
	}
	return nil
}

func (m Mutant) errorf(format string, args ...any) error {
	return fmt.Errorf("mutant: %s: "+format, append([]any{m.Name}, args...)...)
}

func (m Mutant) unsupported(where string) error {
	return &engine.UnsupportedError{What: fmt.Sprintf("mutant %s in %s", m.Name, where), Why: "it is a fault of something else"}
}
