package mutant

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
)

// shaped are the weights of a model without any, for faults of its constants.
type shaped struct{ arch engine.Arch }

func (w shaped) Arch() engine.Arch { return w.arch.Clone() }

func (w shaped) Tensor(string) (engine.Tensor, error) { return engine.Tensor{}, nil }

// TestScalesOfAnotherLayer: of two local layers, a global one, a local and a global
// one each takes those of the one before it that has its shape.
func TestScalesOfAnotherLayer(t *testing.T) {
	a := engine.Arch{Layers: 5, KVHeads: 2, HeadDim: 8, PerLayer: make([]engine.LayerParams, 5)}
	for _, n := range []int{2, 4} {
		a.PerLayer[n].KVHeads, a.PerLayer[n].HeadDim = 1, 16
	}
	m, err := Lookup("kv-scale-wrong-layer")
	require.NoError(t, err)
	shifts := func(at int) []int {
		w, err := m.Weights(shaped{a}, at)
		require.NoError(t, err)
		var out []int
		for _, l := range w.Arch().PerLayer {
			out = append(out, l.ScaleShift)
		}
		return out
	}
	assert.Equal(t, []int{0, 1, 0, 2, 2}, shifts(-1))
	assert.Equal(t, []int{0, 0, 0, 2, 0}, shifts(3))
	for _, n := range []int{0, 2} {
		_, err := m.Weights(shaped{a}, n)
		var unsupported *engine.UnsupportedError
		require.ErrorAs(t, err, &unsupported, n)
	}
}

func TestFourBitsFewer(t *testing.T) {
	m, err := Lookup("kv-four-bits-fewer")
	require.NoError(t, err)
	w, err := m.Weights(shaped{engine.Arch{}}, 0)
	require.NoError(t, err)
	assert.Equal(t, engine.Fault{CacheBitsLost: 4}, w.Arch().Fault)
}
