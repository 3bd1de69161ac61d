//go:build unix

package reference_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
)

// BenchmarkExperts gives the CPU time per token over the number of experts, of
// which six are chosen: what isn't chosen costs a row of the router. Both sides of a
// batch are there, one token at a time and 64 at once, and the whole step, where an
// expert that isn't chosen costs a branch that isn't taken. Dense is a model
// without routers and with a feed-forward as wide as the chosen experts together.
func BenchmarkExperts(b *testing.B) {
	const width, chosen, tokens = 64, 6, 64
	for _, count := range []int{0, 8, 64, 256} {
		a := engine.Arch{Family: "deepseek_v2", Layers: 4, Hidden: 256, Intermediate: width * chosen, Heads: 4, KVHeads: 4, HeadDim: 48, Vocab: 64,
			FinalNormEps: 1e-6, Latent: engine.Latent{KVRank: 32, RopeDim: 16, ValueDim: 32}}
		for range a.Layers {
			l := engine.LayerParams{RopeTheta: 1e4, NormEps: 1e-6}
			if count > 0 {
				l.Experts = engine.Experts{Count: count, PerToken: chosen, Intermediate: width, Gate: engine.Gate{Scoring: engine.ScoringSoftmax, Scale: 1}}
			}
			a.PerLayer = append(a.PerLayer, l)
		}
		e := mustNew(b, latentWeights(a, 1))
		name := fmt.Sprintf("%d", count)
		if count == 0 {
			name = "dense"
		}
		ids := prompt(tokens, a.Vocab)
		for _, m := range []string{"Capture", "CaptureBatched", "CaptureWholeStep"} {
			run := runs(e)[m]
			b.Run(m+"/"+name, func(b *testing.B) {
				require.NoError(b, run(context.Background(), ids)) // compiles
				start := reference.CPUSeconds()
				for b.Loop() {
					if err := run(context.Background(), ids); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric((reference.CPUSeconds()-start)*1e3/float64(b.N*tokens), "cpu-ms/token")
			})
		}
	}
}
