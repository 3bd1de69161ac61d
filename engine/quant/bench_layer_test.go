package quant

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/internal/seeded"
)

// ggmlScheme is what a Q8_0, Q4_0 or Q5_0 file has on ggml's CPU kernels.
var ggmlScheme = engine.Scheme{FloatWeights: true, ActivationBlock: 32, KVCache: engine.KVCache{K: engine.KVFloat16, V: engine.KVFloat16}}

// benchSchemes are an int8 engine's and that of ggml.
var benchSchemes = []struct {
	name   string
	scheme engine.Scheme
}{{"int8", engine.Scheme{RowsInt8: true}}, {"ggml", ggmlScheme}}

// smol is a llama of the shape of a SmolLM2 135M with random weights, of which
// the layers share the first one's, and with a small vocabulary.
func smol(layers int) *seeded.Memory {
	rng := rand.New(rand.NewPCG(1, 2))
	a := engine.Arch{Family: "llama", Layers: layers, Hidden: 576, Intermediate: 1536, Heads: 9, KVHeads: 3, HeadDim: 64, Vocab: 512, TiedHead: true, FinalNormEps: 1e-5}
	w := &seeded.Memory{Architecture: a, Tensors: map[string]engine.Tensor{}}
	draw := func(std float64, shape ...int) engine.Tensor {
		size := 1
		for _, d := range shape {
			size *= d
		}
		t := engine.Tensor{Shape: shape, Data: make([]float32, size)}
		for i := range t.Data {
			t.Data[i] = float32(std * rng.NormFloat64())
		}
		return t
	}
	w.Tensors["model.embed_tokens.weight"] = draw(1, a.Vocab, a.Hidden)
	w.Tensors["model.norm.weight"] = draw(1, a.Hidden)
	one := map[string]engine.Tensor{
		"input_layernorm.weight": draw(1, a.Hidden), "post_attention_layernorm.weight": draw(1, a.Hidden),
		"self_attn.q_proj.weight": draw(0.04, 576, a.Hidden), "self_attn.k_proj.weight": draw(0.04, 192, a.Hidden),
		"self_attn.v_proj.weight": draw(0.04, 192, a.Hidden), "self_attn.o_proj.weight": draw(0.04, a.Hidden, 576),
		"mlp.gate_proj.weight": draw(0.04, a.Intermediate, a.Hidden), "mlp.up_proj.weight": draw(0.04, a.Intermediate, a.Hidden),
		"mlp.down_proj.weight": draw(0.02, a.Hidden, a.Intermediate),
	}
	for n := range layers {
		w.Architecture.PerLayer = append(w.Architecture.PerLayer, engine.LayerParams{RopeTheta: 1e5, NormEps: 1e-5})
		for name, t := range one {
			w.Tensors[fmt.Sprintf("model.layers.%d.%s", n, name)] = t
		}
	}
	return w
}

func benchIDs(n, vocab int) []int {
	ids := make([]int, n)
	for i := range ids {
		ids[i] = i * 37 % vocab
	}
	return ids
}

// BenchmarkEmulateLayer reports the time of one layer of a SmolLM2 135M over all
// positions, weights prepared.
func BenchmarkEmulateLayer(b *testing.B) {
	e := FromWeights(smol(1))
	for _, s := range benchSchemes {
		for _, positions := range []int{16, 64, 256} {
			b.Run(fmt.Sprintf("%s/%d", s.name, positions), func(b *testing.B) {
				in, err := e.EmulateEmbedding(b.Context(), s.scheme, benchIDs(positions, 512))
				require.NoError(b, err)
				_, err = e.EmulateLayer(b.Context(), s.scheme, 0, in, nil)
				require.NoError(b, err)
				b.ReportAllocs()
				for b.Loop() {
					if _, err := e.EmulateLayer(b.Context(), s.scheme, 0, in, nil); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*positions), "us/position")
			})
		}
	}
}

// BenchmarkEmulateSmol reports the time of a whole prompt through the 30 layers of
// that shape.
func BenchmarkEmulateSmol(b *testing.B) {
	e := FromWeights(smol(30))
	for _, s := range benchSchemes {
		b.Run(s.name, func(b *testing.B) {
			ids := benchIDs(64, 512)
			_, err := e.Emulate(b.Context(), s.scheme, ids)
			require.NoError(b, err)
			for b.Loop() {
				if _, err := e.Emulate(b.Context(), s.scheme, ids); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(ids)), "us/token")
		})
	}
}
