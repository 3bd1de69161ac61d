package engine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/plumbline-go/plumbline/engine"
)

func TestParseKVCache(t *testing.T) {
	f32, f16, q8 := engine.KVFloat, engine.KVFloat16, engine.KVQ8_0
	for s, want := range map[string]engine.KVCache{
		"": {}, "f32": {}, "float32": {}, "f16": {K: f16, V: f16}, "Float16": {K: f16, V: f16}, "q8_0": {K: q8, V: q8},
		"q8_0 K": {K: q8, V: f16}, "Q8_0 v": {K: f16, V: q8}, "f32 K": {K: f32, V: f16}, "f16 K": {K: f16, V: f16},
	} {
		got, ok := engine.ParseKVCache(s)
		assert.True(t, ok, "%q", s)
		assert.Equal(t, want, got, "%q", s)
	}
	for _, s := range []string{"q4_0", "int8", "q8_0 K V", "q8_0 X", "K q8_0", "bf16", "q8_0,f16"} {
		got, ok := engine.ParseKVCache(s)
		assert.False(t, ok, "%q: got %+v", s, got)
	}
}

func TestKVCacheString(t *testing.T) {
	for c, want := range map[engine.KVCache]string{
		{}: "f32", {K: engine.KVQ8_0, V: engine.KVFloat16}: "q8_0 K", {K: engine.KVFloat16, V: engine.KVQ8_0}: "q8_0 V",
		{K: engine.KVQ8_0, V: engine.KVQ8_0}: "q8_0", {K: engine.KVFloat16, V: engine.KVFloat16}: "f16", {V: engine.KVFloat16}: "f32 K",
	} {
		assert.Equal(t, want, c.String())
		back, ok := engine.ParseKVCache(c.String())
		assert.True(t, ok && back == c, "%q is read as %+v", want, back)
	}
	mixed := engine.KVCache{K: engine.KVQ8_0}
	assert.Equal(t, "q8_0 K, f32 V", mixed.String())
	_, ok := engine.ParseKVCache(mixed.String())
	assert.False(t, ok)
}
