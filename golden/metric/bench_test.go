package metric_test

import (
	"math/rand/v2"
	"testing"

	"github.com/plumbline-go/plumbline/golden/metric"
)

// BenchmarkAccumulator reports bytes of both sides per second on one core.
func BenchmarkAccumulator(b *testing.B) {
	const n = 1 << 20
	rng := rand.New(rand.NewPCG(1, 2))
	cand, ref := make([]float32, n), make([]float32, n)
	for i := range ref {
		ref[i] = float32(rng.NormFloat64())
		cand[i] = ref[i] + 1e-3*float32(rng.NormFloat64())
	}
	b.SetBytes(2 * 4 * n)
	b.ReportAllocs()
	for b.Loop() {
		var a metric.Accumulator
		a.Add(cand, ref)
		if a.Totals().N != n {
			b.Fatal("not all pairs were counted")
		}
	}
}

func BenchmarkSpearman(b *testing.B) {
	const n = 1536
	rng := rand.New(rand.NewPCG(1, 2))
	cand, ref := make([]float64, n), make([]float64, n)
	for i := range ref {
		ref[i], cand[i] = rng.NormFloat64(), rng.NormFloat64()
	}
	for b.Loop() {
		metric.Spearman(cand, ref)
	}
}
