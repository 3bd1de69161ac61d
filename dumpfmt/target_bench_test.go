package dumpfmt

import (
	"os"
	"path/filepath"
	"testing"
)

// benchSpec is 64 rows of Qwen3.5's vocabulary, 60 MiB.
var benchSpec = TargetSpec{Vocab: 248_320, Prefixes: make([][32]byte, 64)}

func writeBenchTarget(b *testing.B, path string) {
	row := make([]float32, benchSpec.Vocab)
	for i := range row {
		row[i] = float32(i*7919%977) * 0.25
	}
	w, err := CreateTarget(path, benchSpec)
	if err != nil {
		b.Fatal(err)
	}
	for i := range benchSpec.Prefixes {
		if err := w.WriteRow(i, row); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := w.Commit(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkTargetWrite checks, hashes, writes and syncs; PLUMBLINE_BENCH_DIR names a
// folder in memory, to leave the disk out.
func BenchmarkTargetWrite(b *testing.B) {
	dir := os.Getenv("PLUMBLINE_BENCH_DIR")
	if dir == "" {
		dir = b.TempDir()
	}
	path := filepath.Join(dir, "plumbline-bench-target.bin")
	b.SetBytes(benchSpec.Size())
	b.ReportAllocs()
	for b.Loop() {
		writeBenchTarget(b, path)
		if err := os.Remove(path); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTargetVerify reads from the page cache, checks and hashes.
func BenchmarkTargetVerify(b *testing.B) {
	path := filepath.Join(b.TempDir(), "target.bin")
	writeBenchTarget(b, path)
	b.SetBytes(benchSpec.Size())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := VerifyTarget(b.Context(), path, benchSpec, nil); err != nil {
			b.Fatal(err)
		}
	}
}
