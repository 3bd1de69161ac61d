package trace

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Shape is what of a model is traced.
type Shape struct {
	// Layers is the number of decoder layers, Gates the layers with a router, in
	// ascending order.
	Layers int
	Gates  []int
	// Hidden is the width of a row, Experts the number of routed experts, TopK how
	// many of them each token gets.
	Hidden, Experts, TopK int
}

// Validate checks that the numbers fit together.
func (s Shape) Validate() error {
	bad := func(what string, got, want any) error {
		return &UsageError{"shape", what, fmt.Sprint(got), fmt.Sprint(want)}
	}
	switch {
	case s.Layers < 1 || s.Layers > 10_000:
		return bad("layers", s.Layers, "1 to 10000")
	case s.Hidden < 1:
		return bad("hidden size", s.Hidden, "at least 1")
	case len(s.Gates) == 0:
		return bad("gates", 0, "at least one")
	case s.Experts < 2:
		return bad("experts", s.Experts, "at least 2")
	case s.TopK < 1 || s.TopK > s.Experts:
		return bad("top_k", s.TopK, fmt.Sprintf("1 to %d", s.Experts))
	}
	for i, g := range s.Gates {
		if g < 0 || g >= s.Layers || i > 0 && g <= s.Gates[i-1] {
			return bad(fmt.Sprintf("gates[%d]", i), g, fmt.Sprintf("a layer below %d, in ascending order", s.Layers))
		}
	}
	return nil
}

const (
	embedding = "embedding"
	finalNorm = "final_norm"
)

// LayerName is the name of a layer in a document.
func LayerName(layer int) string { return fmt.Sprintf("layer_%02d", layer) }

// Stages is how many places have hidden rows: the embedding, the output of each
// layer, and the final norm.
func (s Shape) Stages() int { return s.Layers + 2 }

// StageName is the name of a stage in a document: embedding, layer_00, …,
// final_norm.
func (s Shape) StageName(stage int) string {
	switch stage {
	case 0:
		return embedding
	case s.Layers + 1:
		return finalNorm
	}
	return LayerName(stage - 1)
}

// Probe is the probe behind a stage: embed, blocks.N.resid_post, final_norm.
func (s Shape) Probe(stage int) string {
	switch stage {
	case 0:
		return "embed"
	case s.Layers + 1:
		return finalNorm
	}
	return fmt.Sprintf("blocks.%d.resid_post", stage-1)
}

// StageOfProbe is the stage of a probe; ok is false for a probe that isn't traced.
func (s Shape) StageOfProbe(probe string) (stage int, ok bool) {
	switch probe {
	case "embed":
		return 0, true
	case finalNorm:
		return s.Layers + 1, true
	}
	n, found := strings.CutPrefix(probe, "blocks.")
	n, post := strings.CutSuffix(n, ".resid_post")
	layer, err := strconv.Atoi(n)
	if !found || !post || err != nil || layer < 0 || layer >= s.Layers || n != strconv.Itoa(layer) {
		return 0, false
	}
	return layer + 1, true
}

// StageNames are the names of all stages, in order.
func (s Shape) StageNames() []string {
	names := make([]string, s.Stages())
	for i := range names {
		names[i] = s.StageName(i)
	}
	return names
}

// GateNames are the names of the layers with a router, in order.
func (s Shape) GateNames() []string {
	names := make([]string, len(s.Gates))
	for i, g := range s.Gates {
		names[i] = LayerName(g)
	}
	return names
}

// gate is the index of a layer among the gates, -1 for one that has none.
func (s Shape) gate(layer int) int { return slices.Index(s.Gates, layer) }
