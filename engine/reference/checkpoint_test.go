package reference_test

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
)

// files is a model folder: contents by slash-separated name.
type files map[string][]byte

// onDisk writes the folder and returns its path.
func (f files) onDisk(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range f {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, data, 0o644))
	}
	return dir
}

// inMemory is the folder as a file system.
func (f files) inMemory() fstest.MapFS {
	m := fstest.MapFS{}
	for name, data := range f {
		m[name] = &fstest.MapFile{Data: data}
	}
	return m
}

type entry struct {
	DType   string `json:"dtype"`
	Shape   []int  `json:"shape"`
	Offsets [2]int `json:"data_offsets"`
}

// packing encodes a float32 in a dtype; the tests use values that it holds exactly.
var packing = map[string]func([]byte, float32) []byte{
	"F32": func(b []byte, v float32) []byte { return binary.LittleEndian.AppendUint32(b, math.Float32bits(v)) },
	"BF16": func(b []byte, v float32) []byte {
		return binary.LittleEndian.AppendUint16(b, uint16(math.Float32bits(v)>>16))
	},
	// Normal numbers only: rebias the exponent, drop 13 fraction bits.
	"F16": func(b []byte, v float32) []byte {
		u := math.Float32bits(v)
		if u<<1 == 0 {
			return binary.LittleEndian.AppendUint16(b, uint16(u>>16))
		}
		return binary.LittleEndian.AppendUint16(b, uint16(u>>31<<15|(u>>23&0xff-112)<<10|u>>13&0x3ff))
	},
}

// safetensorsFile writes tensors in name order.
func safetensorsFile(t testing.TB, dtype string, tensors map[string]engine.Tensor) []byte {
	t.Helper()
	header := map[string]entry{}
	var data []byte
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		start := len(data)
		for _, v := range tensors[name].Data {
			data = packing[dtype](data, v)
		}
		header[name] = entry{dtype, tensors[name].Shape, [2]int{start, len(data)}}
	}
	return rawSafetensors(t, header, data)
}

func rawSafetensors(t testing.TB, header map[string]entry, data []byte) []byte {
	t.Helper()
	js, err := json.Marshal(header)
	require.NoError(t, err)
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(js))), js...), data...)
}

// configNew is smallArch as transformers 5 writes it, configOld as 4 did. The
// file has one rope_theta and one eps for all layers.
const (
	configNew = `{"model_type":"qwen2","architectures":["Qwen2ForCausalLM"],"hidden_size":24,"intermediate_size":40,
"num_hidden_layers":3,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":8,"vocab_size":50,
"max_position_embeddings":128,"rms_norm_eps":1e-05,"tie_word_embeddings":true,"hidden_act":"silu",
"layer_types":["full_attention","full_attention","full_attention"],"use_sliding_window":false,"sliding_window":null,
"rope_parameters":{"rope_theta":20000.0,"rope_type":"default"},"dtype":"bfloat16","transformers_version":"5.13.1"}`
	configOld = `{"model_type":"qwen2","architectures":["Qwen2ForCausalLM"],"hidden_size":24,"intermediate_size":40,
"num_hidden_layers":3,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":8,"vocab_size":50,
"max_position_embeddings":128,"rms_norm_eps":1e-05,"tie_word_embeddings":true,"hidden_act":"silu",
"use_sliding_window":false,"sliding_window":4096,"max_window_layers":21,"attention_dropout":0.0,
"rope_theta":20000,"rope_scaling":null,"torch_dtype":"bfloat16","transformers_version":"4.37.0","use_cache":true}`
)

// modelWeights are random weights that bfloat16 and float16 hold exactly, with
// the tied head left out.
func modelWeights() map[string]engine.Tensor {
	w := randomWeights(smallArch(), 1)
	delete(w.tensors, "lm_head.weight")
	for _, t := range w.tensors {
		for i, v := range t.Data {
			t.Data[i] = float32(math.Round(float64(v)*16)) / 16
		}
	}
	return w.tensors
}

func goodModel(t testing.TB) files {
	return files{"config.json": []byte(configNew), "model.safetensors": safetensorsFile(t, "BF16", modelWeights())}
}
