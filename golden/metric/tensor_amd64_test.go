package metric

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The assembly against plain Go, bit for bit.
func TestSumLanesAVX2EqualsGeneric(t *testing.T) {
	if !haveAVX2 {
		t.Skip("no AVX2 here")
	}
	rng := rand.New(rand.NewPCG(1, 2))
	values := []func() float32{
		func() float32 { return float32(rng.NormFloat64()) },
		func() float32 { return math.Float32frombits(rng.Uint32()) }, // NaN, infinities, subnormals
		func() float32 { return 0 },
	}
	for trial := range 3000 {
		n, draw := 8*(1+rng.IntN(pairwiseBlock/8)), values[trial%len(values)]
		cand, ref := make([]float32, n), make([]float32, n)
		for i := range cand {
			cand[i], ref[i] = draw(), draw()
		}
		var asm, plain pairSums
		sumLanesAVX2(&cand[0], &ref[0], n, &asm)
		sumLanesGeneric(cand, ref, &plain)
		a, p := flat(asm), flat(plain)
		for i := range a {
			if math.Float64bits(a[i]) != math.Float64bits(p[i]) && !(math.IsNaN(a[i]) && math.IsNaN(p[i])) {
				t.Fatalf("trial %d, %d pairs, sum %d: assembly has %v, Go %v", trial, n, i, a[i], p[i])
			}
		}
	}
}

func flat(s pairSums) []float64 {
	return []float64{float64(s.absDiff), float64(s.sqDiff), float64(s.absRef), float64(s.absCand),
		s.sqDiff64, s.sqRef64, s.sqCand64, s.dot, float64(s.maxDiff), float64(s.maxIn)}
}

func BenchmarkSumLanes(b *testing.B) {
	cand, ref := make([]float32, pairwiseBlock), make([]float32, pairwiseBlock)
	for i := range cand {
		cand[i], ref[i] = float32(i), float32(i)+0.5
	}
	for name, f := range map[string]func([]float32, []float32, *pairSums){"machine": sumLanes, "generic": sumLanesGeneric} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(8 * pairwiseBlock)
			var s pairSums
			for b.Loop() {
				f(cand, ref, &s)
			}
		})
	}
}
