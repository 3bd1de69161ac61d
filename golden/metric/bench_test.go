package metric_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/plumbline-go/plumbline/dumpfmt"
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

// BenchmarkCompareDumps compares two float layer dumps from disk in one pass:
// bytes of both sides per second, allocations in all.
func BenchmarkCompareDumps(b *testing.B) {
	const rows, width = 64, 1 << 17
	rng := rand.New(rand.NewPCG(1, 2))
	write := func(name string) *dumpfmt.FloatLayers {
		path := filepath.Join(b.TempDir(), name)
		w, err := dumpfmt.CreateFloatLayers(path, dumpfmt.LayerHeader{Rows: rows, Width: width, Mode: dumpfmt.CaptureIncremental}, dumpfmt.WriteOptions{})
		if err != nil {
			b.Fatal(err)
		}
		row := make([]float32, width)
		for range rows {
			for i := range row {
				row[i] = rng.Float32()
			}
			if err := w.WriteRow(row); err != nil {
				b.Fatal(err)
			}
		}
		if err := w.Commit(); err != nil {
			b.Fatal(err)
		}
		d, err := dumpfmt.OpenFloatLayers(path)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = d.Close() })
		return d
	}
	cand, ref := write("cand"), write("ref")
	b.SetBytes(2 * 4 * rows * width)
	b.ReportAllocs()
	for b.Loop() {
		var a metric.Accumulator
		err := dumpfmt.EachPair(context.Background(), cand, ref, func(_ int64, c, r []float32) error {
			a.Add(c, r)
			return nil
		})
		if err != nil || a.Totals().N != rows*width {
			b.Fatal(err, a.Totals().N)
		}
	}
}

// logitRows are a reference's row of the size of a Qwen2 vocabulary and a noisy
// candidate's, float32 values in float64 as a dump gives them.
func logitRows() (cand, ref []float64) {
	const vocab = 151936
	rng := rand.New(rand.NewPCG(1, 2))
	cand, ref = make([]float64, vocab), make([]float64, vocab)
	for i := range ref {
		x := 3 * rng.NormFloat64()
		ref[i], cand[i] = float64(float32(x)), float64(float32(x+0.3*rng.NormFloat64()))
	}
	return cand, ref
}

func BenchmarkLogits(b *testing.B) {
	cand, ref := logitRows()
	codes := make([]float64, len(cand))
	for i, x := range cand {
		codes[i] = float64(int32(4000 * x))
	}
	for _, bm := range []struct {
		name string
		run  func()
	}{
		{"Spearman", func() { metric.Spearman(cand, ref) }},
		{"SpearmanOfCodes", func() { metric.Spearman(codes, ref) }},
		{"KL", func() { metric.KL(ref, cand) }},
		{"KLNear", func() { metric.KL(ref, ref) }},
		{"LogSoftmax", func() { metric.LogSoftmax(nil, ref) }},
		{"ZScores", func() { metric.ZScores(ref) }},
		{"CentredL2", func() { metric.CentredL2(cand, ref) }},
		{"Top2", func() { metric.Top2(ref) }},
		{"Rank", func() { metric.Rank(ref, 77) }},
		{"Classify", func() { metric.Classify(ref) }},
	} {
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				bm.run()
			}
		})
	}
}

func BenchmarkCompareTensors(b *testing.B) {
	for _, n := range []int{1024, 8192, 1 << 20} {
		b.Run(fmt.Sprintf("%d pairs", n), func(b *testing.B) {
			cand, ref := drawPair(n)
			b.SetBytes(int64(8 * n))
			for b.Loop() {
				metric.CompareTensors(cand, ref)
			}
		})
	}
}
