//go:build unix

package reference

import (
	"context"
	"fmt"
	"testing"

	"github.com/plumbline-go/plumbline/engine"
)

// BenchmarkRecurrentStep is the CPU time of one token behind so many others: with
// linear layers alone, where it doesn't depend on them, and in a hybrid, whose every
// fourth layer attends to all of them and has a cache with room for them.
func BenchmarkRecurrentStep(b *testing.B) {
	for _, every := range []int{0, 4} {
		a := engine.Arch{Family: "qwen3_5", Layers: 4, Hidden: 64, Intermediate: 176, Heads: 4, KVHeads: 2, HeadDim: 16, Vocab: 256, TiedHead: true,
			FinalNormEps: 1e-6, DeltaNet: engine.DeltaNet{KeyHeads: 2, ValueHeads: 4, KeyDim: 16, ValueDim: 16, Kernel: 4}}
		name := "linear"
		for n := range a.Layers {
			l := engine.LayerParams{RopeTheta: 1e7, NormEps: 1e-6, Linear: every == 0 || (n+1)%every != 0}
			if !l.Linear {
				name, l.RotaryDim = "hybrid", 4
			}
			a.PerLayer = append(a.PerLayer, l)
		}
		e, err := New(uniformWeights{a})
		if err != nil {
			b.Fatal(err)
		}
		for _, before := range []int{16, 64, 256, 1024, 4096} {
			b.Run(fmt.Sprintf("%s/%d", name, before), func(b *testing.B) {
				p := &progress{ctx: context.Background()}
				ids := make([]int, before)
				for i := range ids {
					ids[i] = 7 * i % a.Vocab
				}
				cache, err := e.newKVCache(e.capacity(before + 1))
				if err != nil {
					b.Fatal(err)
				}
				r, s := run{e: e, cache: cache}, schedule{arch: a, ids: ids}
				if _, err := r.start(p, s, engine.DecodeOptions{}); err != nil {
					b.Fatal(err)
				}
				step := func() {
					x, err := r.token(p, s, before, 3, watch{})
					if err == nil {
						err = x.FinalizeAll()
					}
					if err != nil {
						b.Fatal(err)
					}
				}
				step() // compiles
				start := cpuSeconds()
				for b.Loop() {
					step()
				}
				b.ReportMetric((cpuSeconds()-start)*1e6/float64(b.N), "cpu-us/token")
			})
		}
	}
}
