package mutant

import (
	"fmt"
	"strings"
	"sync"

	"github.com/plumbline-go/plumbline/engine"
)

// weightFault plants a fault in o at a layer; negative means every layer.
type weightFault func(o *overlay, layer int) error

// Weights returns w with the fault planted at a layer (see Place). Tensors that
// the fault leaves alone are w's memory; changed ones are made on first use and
// kept.
func (m Mutant) Weights(w engine.Weights, layer int) (engine.Weights, error) {
	if m.weights == nil {
		return nil, m.unsupported("weights")
	}
	o := &overlay{base: w, arch: w.Arch().Clone(), alias: map[string]string{}, made: map[string]func() (engine.Tensor, error){}}
	if err := m.checkPlace(layer, o.arch.Layers); err != nil {
		return nil, err
	}
	if err := m.weights(o, layer); err != nil {
		return nil, m.errorf("%w", err)
	}
	return o, nil
}

// overlay is a checkpoint with some tensors renamed or replaced.
type overlay struct {
	base  engine.Weights
	arch  engine.Arch
	alias map[string]string
	made  map[string]func() (engine.Tensor, error)
	// swapped are two layer prefixes that stand for each other; empty if none.
	swapped [2]string
}

func (o *overlay) Arch() engine.Arch { return o.arch.Clone() }

func (o *overlay) Tensor(name string) (engine.Tensor, error) {
	if f, ok := o.made[name]; ok {
		return f()
	}
	if other, ok := o.alias[name]; ok {
		name = other
	}
	for i, p := range o.swapped {
		if rest, ok := strings.CutPrefix(name, p); ok && p != "" {
			return o.base.Tensor(o.swapped[1-i] + rest)
		}
	}
	return o.base.Tensor(name)
}

// replace makes a tensor from the base's by fill, which gets a fresh slice to
// write and the original to read.
func (o *overlay) replace(name string, fill func(dst, src []float32, shape []int)) {
	o.replaceBy(name, name, fill)
}

// replaceBy is replace from another tensor of the base's.
func (o *overlay) replaceBy(name, from string, fill func(dst, src []float32, shape []int)) {
	o.made[name] = sync.OnceValues(func() (engine.Tensor, error) {
		t, err := o.base.Tensor(from)
		if err != nil {
			return engine.Tensor{}, err
		}
		data := make([]float32, len(t.Data))
		fill(data, t.Data, t.Shape)
		return engine.Tensor{Shape: t.Shape, Data: data}, nil
	})
}

// layers calls f for the layer, or for every layer when it is negative.
func (o *overlay) layers(layer int, f func(n int, prefix string) error) error {
	for n := range o.arch.Layers {
		if layer < 0 || n == layer {
			if err := f(n, layerPrefix(n)); err != nil {
				return err
			}
		}
	}
	return nil
}

func layerPrefix(n int) string { return fmt.Sprintf("model.layers.%d.", n) }

func zeros(dst, _ []float32, _ []int) { clear(dst) }

func ones(dst, _ []float32, _ []int) {
	for i := range dst {
		dst[i] = 1
	}
}

// scaledBy multiplies every value.
func scaledBy(x float32) func(dst, src []float32, shape []int) {
	return func(dst, src []float32, _ []int) {
		for i, v := range src {
			dst[i] = x * v
		}
	}
}

// firstRowZero drops the first output channel of a matrix.
func firstRowZero(dst, src []float32, shape []int) {
	copy(dst[shape[1]:], src[shape[1]:])
}

// rotateBlocks moves each of n equal blocks of rows one place up, the first to
// the end.
func rotateBlocks(n int) func(dst, src []float32, shape []int) {
	return func(dst, src []float32, _ []int) {
		block := len(src) / n
		copy(dst[copy(dst, src[block:]):], src[:block])
	}
}
