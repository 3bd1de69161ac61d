package tinyllm

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Fault is a bug on demand, in one layer. The zero value is none.
type Fault struct {
	// Kind is skip-layer, rope-base or kv-heads; empty for none.
	Kind  string
	Layer int
}

// FaultFromEnv reads ENGINE_FAULT: KIND:LAYER, e.g. skip-layer:9.
func FaultFromEnv() (Fault, error) {
	text := os.Getenv("ENGINE_FAULT")
	if text == "" {
		return Fault{}, nil
	}
	kind, number, _ := strings.Cut(text, ":")
	layer, err := strconv.Atoi(number)
	switch {
	case err != nil || layer < 0:
	case kind == "skip-layer", kind == "rope-base", kind == "kv-heads":
		return Fault{kind, layer}, nil
	}
	return Fault{}, fmt.Errorf("tinyllm: ENGINE_FAULT: got %q, want skip-layer:N, rope-base:N or kv-heads:N", text)
}

func (f Fault) in(kind string, layer int) bool { return f.Kind == kind && f.Layer == layer }

// skips leaves a layer out.
func (f Fault) skips(layer int) bool { return f.in("skip-layer", layer) }

// theta is the rotary base, another one in the broken layer.
func (f Fault) theta(layer int, theta float64) float64 {
	if f.in("rope-base", layer) {
		return 10000
	}
	return theta
}

// kvHead reads the wrong head of the cache in the broken layer.
func (f Fault) kvHead(layer, head, heads int) int {
	if f.in("kv-heads", layer) {
		return (head + 1) % heads
	}
	return head
}
