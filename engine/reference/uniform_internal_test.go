package reference

import (
	"hash/fnv"
	"math"
	"strings"

	"github.com/plumbline-go/plumbline/engine"
)

// uniformWeights are random weights of an architecture, made when asked for and
// kept by nobody.
type uniformWeights struct{ arch engine.Arch }

func (w uniformWeights) Arch() engine.Arch { return w.arch.Clone() }

func (w uniformWeights) Tensor(name string) (engine.Tensor, error) {
	slots := []slot{{embedName, []int{w.arch.Vocab, w.arch.Hidden}}, {finalNormName, []int{w.arch.Hidden}}}
	for n := range w.arch.Layers {
		if strings.HasPrefix(name, layerPrefix(n)) {
			slots = append(slots, layerSlots(w.arch, kindOf(w.arch, n))...)
		}
	}
	for _, s := range slots {
		if !strings.HasSuffix(name, s.name) {
			continue
		}
		n := 1
		for _, d := range s.shape {
			n *= d
		}
		t := engine.Tensor{Shape: s.shape, Data: make([]float32, n)}
		h := fnv.New64a()
		h.Write([]byte(name))
		state := h.Sum64()
		scale, shift := float32(math.Sqrt(3/float64(s.shape[len(s.shape)-1]))), float32(-1)
		if strings.Contains(name, "norm") {
			scale, shift = 1e-3, 1e3 // near 1
		}
		for i := range t.Data {
			// Knuth's MMIX generator; its upper bits are good enough for a load.
			state = state*6364136223846793005 + 1442695040888963407
			t.Data[i] = scale * (float32(state>>40)/(1<<23) + shift)
		}
		return t, nil
	}
	return engine.Tensor{}, &engine.ConfigError{File: "memory", What: "tensor " + name, Got: "none", Want: "one"}
}
