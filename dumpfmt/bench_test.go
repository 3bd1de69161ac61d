package dumpfmt

import (
	"math"
	"path/filepath"
	"testing"
)

// benchDump writes a dump of 64 MiB, which stays in the page cache.
func benchDump(b *testing.B, name string) *FloatLayers {
	const rows, width = 4096, 4096
	path := filepath.Join(b.TempDir(), name)
	w, err := CreateFloatLayers(path, LayerHeader{rows, width, 1, CaptureIncremental}, WriteOptions{})
	if err != nil {
		b.Fatal(err)
	}
	row := make([]float32, width)
	for i := range rows {
		for j := range row {
			row[j] = float32(i*j%977) * 0.25
		}
		if err := w.WriteRow(row); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Commit(); err != nil {
		b.Fatal(err)
	}
	d, err := OpenFloatLayers(path)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = d.Close() })
	return d
}

// BenchmarkEachPair reads two dumps and compares them: bits, the largest
// difference and relative L2 in float64. MB/s counts both sides.
func BenchmarkEachPair(b *testing.B) {
	x, y := benchDump(b, "x"), benchDump(b, "y")
	b.SetBytes(8 * x.Len())
	b.ReportAllocs()
	for b.Loop() {
		differ := 0
		var sum, ref, worst float64
		err := EachPair(b.Context(), x, y, func(_ int64, x, y []float32) error {
			y = y[:len(x)]
			for i, v := range x {
				w := y[i]
				if math.Float32bits(v) != math.Float32bits(w) {
					differ++
				}
				d := float64(w) - float64(v)
				sum += d * d
				ref += float64(v) * float64(v)
				if a := math.Abs(d); !(a <= worst) {
					worst = a
				}
			}
			return nil
		})
		if err != nil || differ != 0 || sum != 0 || worst != 0 || ref == 0 {
			b.Fatal(err, differ, sum, ref)
		}
	}
}

// BenchmarkEachPairRead is the reading alone.
func BenchmarkEachPairRead(b *testing.B) {
	x, y := benchDump(b, "x"), benchDump(b, "y")
	b.SetBytes(8 * x.Len())
	b.ReportAllocs()
	for b.Loop() {
		if err := EachPair(b.Context(), x, y, func(int64, []float32, []float32) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFloatLayersRow64(b *testing.B) {
	d := benchDump(b, "x")
	row := make([]float64, d.Header().Width)
	b.SetBytes(4 * int64(len(row)))
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if err := d.Row64(i%d.Header().Rows, row); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

func BenchmarkInt8LayersRow64(b *testing.B) {
	const rows, width = 64, 4096
	path := filepath.Join(b.TempDir(), "x")
	w, err := CreateInt8Layers(path, LayerHeader{rows, width, 1, CaptureIncremental}, WriteOptions{})
	if err != nil {
		b.Fatal(err)
	}
	for range rows {
		if err := w.WriteRow(Scale{1 << 30, -36}, make([]int8, width)); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Commit(); err != nil {
		b.Fatal(err)
	}
	d, err := OpenInt8Layers(path)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	row := make([]float64, width)
	b.SetBytes(scaleBytes + width)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if _, err := d.Row64(i%rows, row); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

func BenchmarkFloatLayersWrite(b *testing.B) {
	const rows, width = 64, 4096
	row := make([]float32, width)
	b.SetBytes(4 * rows * width)
	dir := b.TempDir()
	for b.Loop() {
		w, err := CreateFloatLayers(filepath.Join(dir, "x"), LayerHeader{rows, width, 1, CaptureIncremental}, WriteOptions{Overwrite: true})
		if err != nil {
			b.Fatal(err)
		}
		for range rows {
			if err := w.WriteRow(row); err != nil {
				b.Fatal(err)
			}
		}
		if err := w.Commit(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFingerprint(b *testing.B) {
	text := string(make([]byte, 4096))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if Fingerprint(text) == 0 {
			b.Fatal("0")
		}
	}
}
