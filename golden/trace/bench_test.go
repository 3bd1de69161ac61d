package trace

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// BenchmarkSource is what one source of 57 and 68 tokens costs beside the engine,
// for a small model and for one as wide as DeepSeek-V2-Lite: 27 layers, 26 gates,
// eight conditions.
func BenchmarkSource(b *testing.B) {
	for _, s := range []Shape{{Hidden: 64, Experts: 16}, {Hidden: 64, Experts: 256}, {Hidden: 2048, Experts: 64}} {
		s.Layers, s.TopK = 27, 6
		for g := 1; g < s.Layers; g++ {
			s.Gates = append(s.Gates, g)
		}
		b.Run(fmt.Sprintf("hidden=%d/experts=%d", s.Hidden, s.Experts), func(b *testing.B) {
			var variants []Variant
			for _, c := range Standard().Conditions {
				v := Variant{TokenIDs: slices.Repeat([]int{3}, 57)}
				if c.System {
					v.TokenIDs = slices.Repeat([]int{3}, 68)
				}
				v.TokenIDs[0] = smallBoundary[c.Boundary]
				for i := range 46 {
					v.ContentPositions = append(v.ContentPositions, len(v.TokenIDs)-50+i)
				}
				variants = append(variants, v)
			}
			rows, routes := make([][]float32, 68), Routes{DType: Float32}
			for t := range rows {
				rows[t] = make([]float32, s.Hidden)
				for i := range rows[t] {
					rows[t][i] = float32(int(draw(t, i)%255)-127) / 32
				}
				ids, weights := make([]int, s.TopK), make([]float32, s.TopK)
				for k := range ids {
					ids[k], weights[k] = (t+7*k)%s.Experts, 0.125
				}
				routes.IDs, routes.Weights = append(routes.IDs, ids), append(routes.Weights, weights)
			}
			a, err := NewAccumulator(Standard(), s, BFloat16)
			if err != nil {
				b.Fatal(err)
			}
			w, err := NewWriter(filepath.Join(b.TempDir(), "t.json"), Standard(), s, BFloat16, dumpfmt.WriteOptions{})
			if err != nil {
				b.Fatal(err)
			}
			defer w.Abort()
			b.ReportAllocs()
			for b.Loop() {
				err := a.Start(Source{ID: "b/1", Domain: "b", Text: "x"}, variants, nil)
				for stage := range s.Stages() {
					for c, v := range variants {
						if err == nil {
							err = a.Hidden(stage, c, rows[:len(v.TokenIDs)])
						}
					}
				}
				for _, g := range s.Gates {
					for c, v := range variants {
						n := len(v.TokenIDs)
						if err == nil {
							err = a.Routes(g, c, Routes{routes.IDs[:n], routes.Weights[:n], Float32})
						}
					}
				}
				st, finish := a.Finish(0, nil)
				if err != nil || finish != nil {
					b.Fatal(err, finish)
				}
				if err := w.Add(st); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
