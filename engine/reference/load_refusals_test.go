package reference_test

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
)

func requireConfigError(t *testing.T, err error, text string) {
	t.Helper()
	var bad *engine.ConfigError
	require.ErrorAs(t, err, &bad)
	require.ErrorContains(t, err, text)
}

// TestLoadRefusesBadWeights: each fault on disk and in memory.
func TestLoadRefusesBadWeights(t *testing.T) {
	weights := func(change func(map[string]engine.Tensor)) []byte {
		w := modelWeights()
		change(w)
		return safetensorsFile(t, "BF16", w)
	}
	one := map[string]entry{"model.norm.weight": {"F32", []int{24}, [2]int{0, 96}}}
	for _, c := range []struct {
		name   string
		change func(files)
		format bool // a *dumpfmt.FormatError, else an *engine.ConfigError
		text   string
	}{
		{"missing tensor", func(f files) {
			f["model.safetensors"] = weights(func(w map[string]engine.Tensor) { delete(w, "model.layers.1.self_attn.k_proj.bias") })
		}, false, "model.safetensors: tensor model.layers.1.self_attn.k_proj.bias: got nothing, want shape [16]"},
		{"wrong shape", func(f files) {
			f["model.safetensors"] = weights(func(w map[string]engine.Tensor) {
				q := w["model.layers.0.self_attn.q_proj.weight"]
				w["model.layers.0.self_attn.q_proj.weight"] = engine.Tensor{Shape: []int{24, 32}, Data: q.Data}
			})
		}, false, "model.safetensors: tensor model.layers.0.self_attn.q_proj.weight: got shape [24 32], want shape [32 24]"},
		{"a layer more than the config has", func(f files) {
			f["config.json"] = []byte(strings.NewReplacer(`"num_hidden_layers":3`, `"num_hidden_layers":2`,
				`["full_attention","full_attention",`, `["full_attention",`).Replace(configNew))
		}, false, "model.safetensors: tensor model.layers.2.input_layernorm.weight: got one of layer 2, want layers below 2, the num_hidden_layers of config.json"},
		{"a config with a key twice", func(f files) {
			f["config.json"] = []byte(strings.Replace(configNew, `"num_hidden_layers":3`, `"num_hidden_layers":3,"num_hidden_layers":2`, 1))
		}, false, `config.json: JSON: the value at byte`},
		{"untied head without one", func(f files) {
			f["config.json"] = []byte(strings.Replace(configNew, `"tie_word_embeddings":true`, `"tie_word_embeddings":false`, 1))
		}, false, "tensor lm_head.weight: got nothing, want shape [50 24]"},
		{"truncated", func(f files) { f["model.safetensors"] = f["model.safetensors"][:2000] }, true, "model.safetensors"},
		{"empty file", func(f files) { f["model.safetensors"] = nil }, true, "0 of 8 bytes"},
		{"negative offset", func(f files) {
			one["model.norm.weight"] = entry{"F32", []int{24}, [2]int{-96, 0}}
			f["model.safetensors"] = rawSafetensors(t, one, nil)
		}, true, "data_offsets"},
		{"offset past the end", func(f files) {
			one["model.norm.weight"] = entry{"F32", []int{24}, [2]int{8, 104}}
			f["model.safetensors"] = rawSafetensors(t, one, make([]byte, 96))
		}, true, "data_offsets"},
		{"overflowing shape", func(f files) {
			one["model.norm.weight"] = entry{"F32", []int{1 << 62, 8}, [2]int{0, 96}}
			f["model.safetensors"] = rawSafetensors(t, one, make([]byte, 96))
		}, true, "shape"},
		{"overlap", func(f files) {
			f["model.safetensors"] = rawSafetensors(t, map[string]entry{
				"a": {"F32", []int{24}, [2]int{0, 96}}, "b": {"F32", []int{24}, [2]int{0, 96}}}, make([]byte, 96))
		}, true, "overlap"},
		{"header longer than the file", func(f files) {
			f["model.safetensors"] = append(binary.LittleEndian.AppendUint64(nil, 1<<40), "{}"...)
		}, true, "model.safetensors"},
		{"no weights", func(f files) { delete(f, "model.safetensors") }, false, "weights: got nothing, want model.safetensors"},
		{"no config", func(f files) { delete(f, "config.json") }, false, "config.json: file: got nothing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := goodModel(t)
			c.change(f)
			_, diskErr := reference.Load(f.onDisk(t))
			_, memErr := reference.LoadFS(f.inMemory(), ".")
			for _, err := range []error{diskErr, memErr} {
				if c.format {
					var broken *dumpfmt.FormatError
					require.ErrorAs(t, err, &broken)
					require.ErrorContains(t, err, c.text)
				} else {
					requireConfigError(t, err, c.text)
				}
			}
		})
	}
}

func TestLoadRefusesBadIndexes(t *testing.T) {
	const indexName, second = "model.safetensors.index.json", "model-00002-of-00002.safetensors"
	for _, c := range []struct {
		name   string
		change func(files)
		text   string
	}{
		{"missing file", func(f files) { delete(f, second) }, "weight_map: file " + second},
		{"path out of the folder", func(f files) { f[indexName] = bytes.ReplaceAll(f[indexName], []byte(second), []byte("../x")) }, `weight_map: got file "../x"`},
		{"tensor in no file", func(f files) {
			f[indexName] = bytes.Replace(f[indexName], []byte(`"model.norm.weight"`), []byte(`"model.nirm.weight"`), 1)
		}, "weight_map: tensor model.nirm.weight: got nothing"},
		{"tensor in the other file", func(f files) {
			f[indexName] = bytes.Replace(f[indexName], []byte(`"model.norm.weight":"model-00001`), []byte(`"model.norm.weight":"model-00002`), 1)
		}, "weight_map: tensor model.norm.weight: got"},
		{"tensor in two files", func(f files) {
			f[second] = safetensorsFile(t, "F32", map[string]engine.Tensor{"model.norm.weight": modelWeights()["model.norm.weight"]})
		}, "tensor model.norm.weight: got a second one"},
		{"a tensor twice", func(f files) {
			f[indexName] = bytes.Replace(f[indexName], []byte(`"weight_map":{`), []byte(`"weight_map":{"model.norm.weight":"`+second+`",`), 1)
		}, `key "model.norm.weight" twice`},
		{"not an index", func(f files) { f[indexName] = []byte("[]") }, indexName + ": JSON"},
		{"nothing in it", func(f files) { f[indexName] = []byte("{}") }, "tensor model.embed_tokens.weight: got nothing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := sharded(t)
			c.change(f)
			_, err := reference.Load(f.onDisk(t))
			requireConfigError(t, err, c.text)
			_, err = reference.LoadFS(f.inMemory(), ".")
			requireConfigError(t, err, c.text)
		})
	}
}

func TestLoadRefusesWeightDTypes(t *testing.T) {
	f := goodModel(t)
	f["model.safetensors"] = bytes.Replace(f["model.safetensors"], []byte(`{"dtype":"BF16","shape":[24],"`), []byte(`{"dtype":"I16" ,"shape":[24],"`), 1)
	var unsupported *engine.UnsupportedError
	_, err := reference.Load(f.onDisk(t))
	require.ErrorAs(t, err, &unsupported)
	require.ErrorContains(t, err, "dtype I16")
}

func TestFileThatShrinksIsAnError(t *testing.T) {
	dir := goodModel(t).onDisk(t)
	c, err := reference.Load(dir)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(filepath.Join(dir, "model.safetensors"), 4000))
	_, err = c.Tensor("model.norm.weight")
	require.ErrorContains(t, err, "tensor model.norm.weight: file size: got 4000")
	require.NoError(t, c.Close())
	require.NoError(t, c.Close())
	_, err = c.Tensor("model.norm.weight")
	require.ErrorIs(t, err, fs.ErrClosed)
}

func TestLoadRefusesPaths(t *testing.T) {
	dir := goodModel(t).onDisk(t)
	_, err := reference.Load(filepath.Join(dir, "config.json"))
	requireConfigError(t, err, "got a file, want a folder")
	_, err = reference.LoadFS(goodModel(t).inMemory(), "../x")
	require.ErrorIs(t, err, fs.ErrInvalid)
	_, err = reference.LoadFS(goodModel(t).inMemory(), "elsewhere")
	requireConfigError(t, err, "elsewhere/config.json: file: got nothing")
}

// TestNewRefusesNonFiniteWeights: whatever is in the weights, every tensor and
// every place in it is looked at.
func TestNewRefusesNonFiniteWeights(t *testing.T) {
	for _, c := range []struct {
		tensor string
		at     int
		value  float64
		want   string
	}{
		{"model.norm.weight", 23, math.NaN(), "tensor model.norm.weight: element 23: got NaN, want a finite value"},
		{"model.embed_tokens.weight", 0, math.Inf(1), "tensor model.embed_tokens.weight: element 0: got +Inf"},
		{"model.layers.2.mlp.down_proj.weight", 959, math.Inf(-1), "tensor model.layers.2.mlp.down_proj.weight: element 959: got -Inf"},
		{"model.layers.1.self_attn.q_proj.bias", 5, math.NaN(), "tensor model.layers.1.self_attn.q_proj.bias: element 5: got NaN"},
	} {
		w := modelWeights()
		w[c.tensor].Data[c.at] = float32(c.value)
		f := files{"config.json": []byte(configNew), "model.safetensors": safetensorsFile(t, "BF16", w)}
		_, err := reference.Open(f.onDisk(t))
		requireConfigError(t, err, c.want)
	}
}
