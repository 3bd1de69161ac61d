//go:build unix

package reference_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/fixtures"
)

// BenchmarkCapture gives the CPU time per token, all threads, of every method
// that runs the model, over a prompt of 32 tokens: on the embedded checkpoint,
// and on random weights with a wider MLP and a smaller vocabulary. Both have 28
// layers of width 64.
func BenchmarkCapture(b *testing.B) {
	a := engine.Arch{Family: "qwen2", Layers: 28, Hidden: 64, Intermediate: 176, Heads: 4, KVHeads: 2, HeadDim: 16,
		Vocab: 64, TiedHead: true, FinalNormEps: 1e-6}
	for range a.Layers {
		a.PerLayer = append(a.PerLayer, engine.LayerParams{RopeTheta: 1e6, NormEps: 1e-6})
	}
	embedded, err := reference.LoadFS(fixtures.SeededModel(), ".")
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, embedded.Close()) })
	for _, m := range []struct {
		name    string
		weights engine.Weights
	}{{"fixture", embedded}, {"random", randomWeights(a, 1)}} {
		methods := runs(mustNew(b, m.weights))
		ids := prompt(32, m.weights.Arch().Vocab)
		for _, name := range slices.Sorted(maps.Keys(methods)) {
			b.Run(m.name+"/"+name, func(b *testing.B) {
				require.NoError(b, methods[name](bg, ids)) // compiles
				start := reference.CPUSeconds()
				for b.Loop() {
					if err := methods[name](bg, ids); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric((reference.CPUSeconds()-start)*1e3/float64(b.N*len(ids)), "cpu-ms/token")
			})
		}
	}
}
