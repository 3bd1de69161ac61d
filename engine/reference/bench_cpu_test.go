//go:build unix

package reference

import (
	"slices"
	"syscall"
	"testing"

	"github.com/plumbline-go/plumbline/engine"
)

// cpuSeconds is the CPU time of this process, all threads and the system's part.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}

func median(x []float64) float64 {
	s := slices.Sorted(slices.Values(x))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// BenchmarkSharedPrefix is nine prompts of 40 tokens that have 28 in common, at
// the shape of the tiny fixtures: what CaptureMany spends of the CPU time of nine
// runs of their own, in the same process, as x-separate. With the oracle both
// sides run the second composition too.
func BenchmarkSharedPrefix(b *testing.B) {
	a := engine.Arch{Family: "qwen2", Layers: 28, Hidden: 64, Intermediate: 176, Heads: 4, KVHeads: 2, HeadDim: 16,
		Vocab: 256, TiedHead: true, FinalNormEps: 1e-6}
	for range a.Layers {
		a.PerLayer = append(a.PerLayer, engine.LayerParams{RopeTheta: 1e6, NormEps: 1e-6})
	}
	e, err := New(uniformWeights{a})
	if err != nil {
		b.Fatal(err)
	}
	var prompts [][]int
	for i := range 9 {
		ids := make([]int, 40)
		for pos := range ids {
			ids[pos] = 7 * pos % a.Vocab
			if pos >= 28 {
				ids[pos] = (11*pos + 29*i) % a.Vocab
			}
		}
		prompts = append(prompts, ids)
	}
	for _, oracle := range []bool{false, true} {
		name := "rows"
		if oracle {
			name = "with oracle"
		}
		b.Run(name, func(b *testing.B) {
			spent := func(run func() error) float64 {
				start := cpuSeconds()
				if err := run(); err != nil {
					b.Fatal(err)
				}
				return cpuSeconds() - start
			}
			together := func() error {
				return e.CaptureMany(b.Context(), prompts, ManyOptions{Oracle: oracle}, func(Captured) error { return nil })
			}
			alone := func() (err error) {
				for _, ids := range prompts {
					if _, err = e.Capture(b.Context(), ids); err == nil && oracle {
						_, err = e.CaptureWholeStep(b.Context(), ids)
					}
					if err != nil {
						return err
					}
				}
				return nil
			}
			spent(together) // compiles
			var shared, separate []float64
			for b.Loop() {
				shared, separate = append(shared, spent(together)), append(separate, spent(alone))
			}
			b.ReportMetric(median(separate)*1e3, "separate-cpu-ms")
			b.ReportMetric(median(shared)*1e3, "shared-cpu-ms")
			b.ReportMetric(median(shared)/median(separate), "x-separate")
		})
	}
}
