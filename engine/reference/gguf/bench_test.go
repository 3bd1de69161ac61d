package gguf_test

import (
	"bytes"
	"testing"

	"github.com/plumbline-go/plumbline/engine/reference/internal/ggufbuild"
)

// BenchmarkFloat32s dequantises a million values of each type; the rate is that of
// the float32 bytes.
func BenchmarkFloat32s(b *testing.B) {
	var all map[string]recorded
	readJSON(b, "dequantised.json", &all)
	for name, kind := range numbers {
		b.Run(name, func(b *testing.B) {
			raw, n := all[name].Raw, len(all[name].Float32)/4
			times := 1<<20/n + 1
			file := ggufbuild.File{Tensors: []ggufbuild.Tensor{{Name: "t", Dims: []uint64{uint64(n), uint64(times)}, Type: uint32(kind), Data: bytes.Repeat(raw, times)}}}
			f, err := open(file.Bytes())
			if err != nil {
				b.Fatal(err)
			}
			dst := make([]float32, n*times)
			b.SetBytes(int64(4 * len(dst)))
			for b.Loop() {
				if err := f.Float32s("t", dst); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
