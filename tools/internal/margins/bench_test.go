//go:build unix

package margins

import (
	"context"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// BenchmarkCompare compares dumps with the vocabulary of Qwen2.5 and reports the
// CPU time of one position, reading included: at most 10 ms are allowed.
func BenchmarkCompare(b *testing.B) {
	const vocab, positions = 151936, 8
	rng := rand.New(rand.NewPCG(1, 2))
	var ref, cand [][]float32
	var codes [][]int32
	for range positions {
		r, c, k := make([]float32, vocab), make([]float32, vocab), make([]int32, vocab)
		for i := range r {
			r[i] = float32(2.5 * rng.NormFloat64())
			c[i] = r[i] + float32(0.3*rng.NormFloat64())
			k[i] = int32(4200 * c[i])
		}
		ref, cand, codes = append(ref, r), append(cand, c), append(codes, k)
	}
	refDir, candDir, codesDir := b.TempDir(), b.TempDir(), b.TempDir()
	writeFloat(b, refDir, "a", dumpfmt.CaseFile{}, ref)
	writeFloat(b, candDir, "a", dumpfmt.CaseFile{}, cand)
	writeInt(b, codesDir, "a", dumpfmt.CaseFile{}, codes)
	for _, bm := range []struct{ name, dir string }{{"float32", candDir}, {"int32", codesDir}} {
		b.Run(bm.name, func(b *testing.B) {
			start := cpuTime(b)
			for b.Loop() {
				res, err := Compare(context.Background(), open(b, bm.dir), open(b, refDir), 50, nil)
				if err != nil || len(res.Cases[0].Positions) != positions {
					b.Fatal(err, res.Cases[0].Err)
				}
			}
			b.ReportMetric(float64((cpuTime(b)-start).Microseconds())/1000/float64(b.N*positions), "cpu-ms/position")
		})
	}
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
