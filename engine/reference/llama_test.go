package reference_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
)

// llamaArch is smallArch as a llama, with one rotary base and one eps, as its
// config has them.
func llamaArch(bias, tied bool) engine.Arch {
	a := smallArch()
	a.Family, a.AttentionBias, a.TiedHead = "llama", bias, tied
	for n := range a.PerLayer {
		a.PerLayer[n] = engine.LayerParams{RopeTheta: 20000, NormEps: 1e-5}
	}
	return a
}

// llamaConfig is the config of llamaArch in the style of transformers 5, or of 4.
func llamaConfig(a engine.Arch, old bool) string {
	rope := `"rope_parameters":{"rope_theta":20000.0,"rope_type":"default"},"dtype":"float32"`
	if old {
		rope = `"rope_theta":20000.0,"rope_scaling":null,"torch_dtype":"float32","rope_interleaved":false,"pretraining_tp":1`
	}
	return fmt.Sprintf(`{"model_type":"llama","architectures":["LlamaForCausalLM"],"hidden_size":24,"intermediate_size":40,
"num_hidden_layers":3,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":8,"vocab_size":50,
"max_position_embeddings":128,"rms_norm_eps":1e-05,"tie_word_embeddings":%t,"hidden_act":"silu",
"attention_bias":%t,"mlp_bias":false,%s}`, a.TiedHead, a.AttentionBias, rope)
}

// TestLlamaCheckpointsMatchNaiveLoops: from the files on disk to the rows and
// logits of every way to run a model.
func TestLlamaCheckpointsMatchNaiveLoops(t *testing.T) {
	for _, bias := range []bool{false, true} {
		for _, tied := range []bool{false, true} {
			t.Run(fmt.Sprintf("bias %t tied %t", bias, tied), func(t *testing.T) {
				a := llamaArch(bias, tied)
				w := randomWeights(a, 5)
				if tied {
					delete(w.tensors, "lm_head.weight")
				}
				dir := files{"config.json": []byte(llamaConfig(a, bias)), "model.safetensors": safetensorsFile(t, "F32", w.tensors)}.onDisk(t)
				c, err := reference.Load(dir)
				require.NoError(t, err)
				defer c.Close()
				require.Equal(t, a, c.Arch())
				require.Empty(t, c.UnusedKeys())
				require.Empty(t, c.UnusedTensors())

				ids, forced := prompt(9, a.Vocab), []int{3, 49, 0}
				m := naive{a: a, w: w}
				want, wantLogits := m.rows(ids), m.forced(ids, forced)
				for _, of := range []struct {
					dtype         reference.DType
					bound, logits float64
				}{{reference.Float64, float64Bound, float64Bound}, {reference.Float32, float32Bound(a), logitBound(a)}} {
					e, bound := mustNew(t, c, reference.WithDType(of.dtype)), of.bound
					requireClose(t, capture(t, e, ids).Rows(), want, bound)
					whole, err := e.CaptureWholeStep(bg, ids)
					require.NoError(t, err)
					requireClose(t, whole, want, bound)
					batched, err := e.CaptureBatched(bg, ids)
					require.NoError(t, err)
					requireClose(t, batched, want, bound)
					for _, chunk := range []int{0, 1, 4} {
						got := decode(t, e, ids, engine.DecodeOptions{Forced: forced, Chunk: chunk})
						requireClose(t, got.Logits, wantLogits, of.logits)
					}
					out, err := e.DecodeBatch(bg, [][]int{ids, ids[:4]}, [][]int{forced, forced})
					require.NoError(t, err)
					requireClose(t, out[0], wantLogits, of.logits)
					requireClose(t, out[1], m.forced(ids[:4], forced), of.logits)
				}
			})
		}
	}
}

// TestLlamaTensorsAreDemanded: a bias that the config names must be there, and
// one that it doesn't is reported.
func TestLlamaTensorsAreDemanded(t *testing.T) {
	a := llamaArch(true, true)
	w := randomWeights(a, 5)
	delete(w.tensors, "lm_head.weight")
	without := llamaArch(false, true)
	f := files{"config.json": []byte(llamaConfig(without, false)), "model.safetensors": safetensorsFile(t, "F32", w.tensors)}
	c, err := reference.LoadFS(f.inMemory(), ".")
	require.NoError(t, err)
	require.Len(t, c.UnusedTensors(), 4*a.Layers)

	delete(w.tensors, "model.layers.2.self_attn.o_proj.bias")
	f = files{"config.json": []byte(llamaConfig(a, false)), "model.safetensors": safetensorsFile(t, "F32", w.tensors)}
	_, err = reference.LoadFS(f.inMemory(), ".")
	requireConfigError(t, err, "tensor model.layers.2.self_attn.o_proj.bias: got nothing, want shape [24]")
}
