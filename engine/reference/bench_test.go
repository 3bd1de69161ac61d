package reference_test

import (
	"testing"

	"github.com/plumbline-go/plumbline/engine"
)

// BenchmarkCapture gives the cost per token of 28 layers of width 64, the shape
// of the tiny fixtures, over a prompt of 32 tokens.
func BenchmarkCapture(b *testing.B) {
	a := engine.Arch{Family: "qwen2", Layers: 28, Hidden: 64, Intermediate: 176, Heads: 4, KVHeads: 2, HeadDim: 16,
		Vocab: 64, TiedHead: true, FinalNormEps: 1e-6}
	for range a.Layers {
		a.PerLayer = append(a.PerLayer, engine.LayerParams{RopeTheta: 1e6, NormEps: 1e-6})
	}
	e := mustNew(b, randomWeights(a, 1))
	ids := prompt(32, a.Vocab)
	for name, run := range runs(e) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := run(bg, ids); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(ids)), "ns/token")
		})
	}
}
