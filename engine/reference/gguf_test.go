package reference_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/engine/reference/gguf"
	"github.com/plumbline-go/plumbline/engine/reference/internal/ggufbuild"
)

// ggufTensors are a layer's tensors in the order in which llama.cpp's conversion
// writes them, with their Hugging Face names.
var ggufTensors = [][2]string{
	{"attn_norm.weight", "input_layernorm.weight"},
	{"ffn_down.weight", "mlp.down_proj.weight"}, {"ffn_gate.weight", "mlp.gate_proj.weight"}, {"ffn_up.weight", "mlp.up_proj.weight"},
	{"ffn_norm.weight", "post_attention_layernorm.weight"},
	{"attn_k.weight", "self_attn.k_proj.weight"}, {"attn_k.bias", "self_attn.k_proj.bias"},
	{"attn_output.weight", "self_attn.o_proj.weight"}, {"attn_output.bias", "self_attn.o_proj.bias"},
	{"attn_q.weight", "self_attn.q_proj.weight"}, {"attn_q.bias", "self_attn.q_proj.bias"},
	{"attn_v.weight", "self_attn.v_proj.weight"}, {"attn_v.bias", "self_attn.v_proj.bias"},
}

// ggufModel is a model as llama.cpp's conversion writes it, in F32.
func ggufModel(w *memWeights) *ggufbuild.File {
	a := w.arch
	f := &ggufbuild.File{Keys: []ggufbuild.Key{
		{Name: "general.architecture", Value: a.Family},
		{Name: "general.type", Value: "model"},
		{Name: a.Family + ".block_count", Value: uint32(a.Layers)},
		{Name: a.Family + ".context_length", Value: uint32(a.MaxPositions)},
		{Name: a.Family + ".embedding_length", Value: uint32(a.Hidden)},
		{Name: a.Family + ".feed_forward_length", Value: uint32(a.Intermediate)},
		{Name: a.Family + ".attention.head_count", Value: uint32(a.Heads)},
		{Name: a.Family + ".attention.head_count_kv", Value: uint32(a.KVHeads)},
		{Name: a.Family + ".attention.key_length", Value: uint32(a.HeadDim)},
		{Name: a.Family + ".attention.value_length", Value: uint32(a.HeadDim)},
		{Name: a.Family + ".rope.dimension_count", Value: uint32(a.HeadDim)},
		{Name: a.Family + ".rope.freq_base", Value: float32(a.PerLayer[0].RopeTheta)},
		{Name: a.Family + ".attention.layer_norm_rms_epsilon", Value: float32(a.FinalNormEps)},
		{Name: a.Family + ".vocab_size", Value: uint32(a.Vocab)},
		{Name: "general.file_type", Value: uint32(0)},
	}}
	add := func(name, hf string, heads int) {
		t, ok := w.tensors[hf]
		if !ok {
			return
		}
		data := t.Data
		if heads > 0 && a.Family == "llama" {
			data = permuted(data, t.Shape[0], heads)
		}
		out := ggufbuild.Tensor{Name: name}
		for _, d := range t.Shape {
			out.Dims = append([]uint64{uint64(d)}, out.Dims...)
		}
		for _, v := range data {
			out.Data = binary.LittleEndian.AppendUint32(out.Data, math.Float32bits(v))
		}
		f.Tensors = append(f.Tensors, out)
	}
	add("token_embd.weight", "model.embed_tokens.weight", 0)
	for n := range a.Layers {
		for _, t := range ggufTensors {
			heads := map[string]int{"attn_q": a.Heads, "attn_k": a.KVHeads}[strings.Split(t[0], ".")[0]]
			add(fmt.Sprintf("blk.%d.%s", n, t[0]), fmt.Sprintf("model.layers.%d.%s", n, t[1]), heads)
		}
	}
	add("output_norm.weight", "model.norm.weight", 0)
	add("output.weight", "lm_head.weight", 0)
	return f
}

// permuted is what the conversion does to the rows of q and k, there written as
// reshape(heads, 2, d/2, ...).swapaxes(1, 2).
func permuted(data []float32, rows, heads int) []float32 {
	width, d := len(data)/rows, rows/heads
	var out []float32
	for h := range heads {
		for i := range d / 2 {
			for j := range 2 {
				row := h*d + j*(d/2) + i
				out = append(out, data[row*width:(row+1)*width]...)
			}
		}
	}
	return out
}

// ggufWeights are seeded weights of a family, with the head left out where it is
// tied.
func ggufWeights(family string, bias, tied bool) *memWeights {
	a := llamaArch(bias, tied)
	a.Family = family
	w := randomWeights(a, 6)
	if tied {
		delete(w.tensors, "lm_head.weight")
	}
	return w
}

// loadGGUF loads a file from disk and from memory.
func loadGGUF(t *testing.T, f *ggufbuild.File) []*reference.Checkpoint {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	require.NoError(t, os.WriteFile(path, f.Bytes(), 0o644))
	disk, err := reference.Load(path)
	require.NoError(t, err)
	mem, err := reference.LoadFS(fstest.MapFS{"models/tiny.gguf": {Data: f.Bytes()}}, "models/tiny.gguf")
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, disk.Close())
		require.NoError(t, mem.Close())
	})
	return []*reference.Checkpoint{disk, mem}
}

// TestGGUFIsTheModelItWasMadeFrom: the architecture of its config.json, every
// weight in its bits and Hugging Face's order, and so the rows.
func TestGGUFIsTheModelItWasMadeFrom(t *testing.T) {
	for _, c := range []struct {
		family     string
		bias, tied bool
	}{{"llama", false, true}, {"llama", false, false}, {"llama", true, true}, {"qwen2", false, true}, {"qwen2", false, false}} {
		t.Run(fmt.Sprintf("%s bias %t tied %t", c.family, c.bias, c.tied), func(t *testing.T) {
			w := ggufWeights(c.family, c.bias, c.tied)
			ids := prompt(9, w.arch.Vocab)
			for _, got := range loadGGUF(t, ggufModel(w)) {
				require.Equal(t, w.arch, got.Arch())
				require.Equal(t, "tiny.gguf", got.Name())
				require.Empty(t, got.UnusedKeys())
				require.Empty(t, got.UnusedTensors())
				requireTensors(t, got, w.tensors)
				_, err := got.Tensor("model.layers.3.mlp.up_proj.weight")
				requireConfigError(t, err, "tiny.gguf: tensor model.layers.3.mlp.up_proj.weight: got nothing")

				e := mustNew(t, got, reference.WithDType(reference.Float64))
				requireClose(t, capture(t, e, ids).Rows(), naive{a: w.arch, w: w}.rows(ids), float64Bound)
			}
		})
	}
}

// TestGGUFRowsAreTransformers: a file that gguf-py wrote and quantised, most types
// in it, gives the rows and tokens that transformers computes with the values that
// gguf-py makes of it. See testdata/record_gguf_model.py.
func TestGGUFRowsAreTransformers(t *testing.T) {
	var want struct {
		IDs       []int
		Rows      [][]float64
		Logits    []float64
		OutputIDs []int `json:"output_ids"`
	}
	data, err := os.ReadFile("testdata/tiny.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &want))
	c, err := reference.Load("testdata/tiny.gguf")
	require.NoError(t, err)
	defer c.Close()
	require.Empty(t, c.UnusedKeys())
	require.Empty(t, c.UnusedTensors())
	a := c.Arch()
	require.Equal(t, engine.Arch{Family: "llama", Layers: 2, Hidden: 32, Intermediate: 64, Heads: 4, KVHeads: 2, HeadDim: 8, Vocab: 64,
		TiedHead: true, MaxPositions: 128, FinalNormEps: 1e-5,
		PerLayer: []engine.LayerParams{{RopeTheta: 5000, NormEps: 1e-5}, {RopeTheta: 5000, NormEps: 1e-5}}}, a)
	e := mustNew(t, c)
	got := decode(t, e, want.IDs, engine.DecodeOptions{MaxNew: len(want.OutputIDs)})
	require.Equal(t, want.OutputIDs, got.OutputIDs)
	// Both round in float32.
	requireClose(t, got.Logits[:1], [][]float64{want.Logits}, 2*logitBound(a))
	requireClose(t, capture(t, e, want.IDs).Rows(), want.Rows, 2*float32Bound(a))
}

// TestGGUFKeysWithTheSameMeaning: what is said in another way, or says what is so
// anyway.
func TestGGUFKeysWithTheSameMeaning(t *testing.T) {
	w := ggufWeights("llama", false, true)
	w.arch.HeadDim, w.arch.Heads = 6, 4 // so that 24 / 4 is the length of a head
	w = randomWeights(w.arch, 7)
	delete(w.tensors, "lm_head.weight")
	for name, change := range map[string]func(*ggufbuild.File){
		"no head length":     func(f *ggufbuild.File) { f.Drop("llama.attention.key_length"); f.Drop("llama.attention.value_length") },
		"no rotary length":   func(f *ggufbuild.File) { f.Drop("llama.rope.dimension_count") },
		"no vocabulary size": func(f *ggufbuild.File) { f.Drop("llama.vocab_size") },
		"tokens":             func(f *ggufbuild.File) { f.Set("tokenizer.ggml.tokens", make([]string, 50)) },
		"other types":        func(f *ggufbuild.File) { f.Set("llama.block_count", int64(3)); f.Set("llama.rope.freq_base", 20000.0) },
		"a number per layer": func(f *ggufbuild.File) { f.Set("llama.attention.head_count_kv", []int32{2, 2, 2}) },
		"no scaling":         func(f *ggufbuild.File) { f.Set("llama.rope.scaling.type", "none") },
		"linear scaling by 1": func(f *ggufbuild.File) {
			f.Set("llama.rope.scaling.type", "linear")
			f.Set("llama.rope.scaling.factor", float32(1))
		},
		"no experts":             func(f *ggufbuild.File) { f.Set("llama.expert_count", uint32(0)) },
		"the original's layout":  func(f *ggufbuild.File) { f.Set("llama.tensor_data_layout", "Meta AI original pth") },
		"quantisation version 2": func(f *ggufbuild.File) { f.Set("general.quantization_version", uint32(2)) },
		"a split into 1":         func(f *ggufbuild.File) { f.Set("split.count", uint16(1)) },
		"no type":                func(f *ggufbuild.File) { f.Drop("general.type") },
		"factors of 1": func(f *ggufbuild.File) {
			f.Tensors = append(f.Tensors, ggufbuild.Tensor{Name: "rope_freqs.weight", Dims: []uint64{3}, Data: []byte{0, 0, 128, 63, 0, 0, 128, 63, 0, 0, 128, 63}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := ggufModel(w)
			change(f)
			for _, c := range loadGGUF(t, f) {
				require.Equal(t, w.arch, c.Arch())
				require.Empty(t, c.UnusedKeys())
				require.Empty(t, c.UnusedTensors())
			}
		})
	}
	f := ggufModel(w)
	f.Set("llama.attention.a_new_key", uint32(1))
	f.Set("another.key", uint32(1))
	for _, c := range loadGGUF(t, f) {
		require.Equal(t, []string{"llama.attention.a_new_key"}, c.UnusedKeys())
	}
	f = ggufModel(w)
	f.Drop("llama.attention.head_count_kv")
	_, err := reference.LoadFS(fstest.MapFS{"m.gguf": {Data: f.Bytes()}}, "m.gguf")
	requireConfigError(t, err, "tensor blk.0.attn_k.weight: got shape [12 24], want shape [24 24]") // all heads then
}

func TestGGUFRefusals(t *testing.T) {
	set := func(key string, value any) func(*ggufbuild.File) {
		return func(f *ggufbuild.File) { f.Set(key, value) }
	}
	drop := func(key string) func(*ggufbuild.File) { return func(f *ggufbuild.File) { f.Drop(key) } }
	extra := func(name string, dims ...uint64) func(*ggufbuild.File) {
		return func(f *ggufbuild.File) {
			n := uint64(1)
			for _, d := range dims {
				n *= d
			}
			f.Tensors = append(f.Tensors, ggufbuild.Tensor{Name: name, Dims: dims, Data: make([]byte, 4*n)})
		}
	}
	for _, c := range []struct {
		name        string
		change      func(*ggufbuild.File)
		unsupported bool // else an *engine.ConfigError
		text        string
	}{
		{"another architecture", set("general.architecture", "gemma3"), true, `general.architecture "gemma3" not supported: of GGUF files the reference engine reads qwen2 and llama only`},
		{"no architecture", drop("general.architecture"), false, "key general.architecture: got nothing"},
		{"an architecture that is no text", set("general.architecture", uint32(1)), false, "key general.architecture: got 1, want a string"},
		{"an adapter", set("general.type", "adapter"), true, `general.type "adapter" not supported`},
		{"a part of a model", set("split.count", uint16(3)), true, "split.count 3 not supported"},
		{"old blocks", set("general.quantization_version", uint32(1)), true, "general.quantization_version 1 not supported"},
		{"no layers", drop("llama.block_count"), false, "key llama.block_count: got nothing, want a whole number of at least 1"},
		{"no hidden size", drop("llama.embedding_length"), false, "key llama.embedding_length: got nothing"},
		{"no feed-forward", drop("llama.feed_forward_length"), false, "key llama.feed_forward_length: got nothing"},
		{"no heads", drop("llama.attention.head_count"), false, "key llama.attention.head_count: got nothing"},
		{"0 heads", set("llama.attention.head_count", uint32(0)), false, "key llama.attention.head_count: got 0"},
		{"heads in a text", set("llama.attention.head_count", "4"), false, `key llama.attention.head_count: got "4"`},
		{"heads of all bits", set("llama.attention.head_count", uint64(math.MaxUint64)), false, "key llama.attention.head_count: got 18446744073709551615"},
		{"heads that differ", set("llama.attention.head_count_kv", []int32{2, 4, 2}), true, "key llama.attention.head_count_kv [2 4 2] not supported: all layers are alike"},
		{"no heads in a list", set("llama.attention.head_count_kv", []int32{}), true, "key llama.attention.head_count_kv [] not supported"},
		{"indivisible heads", func(f *ggufbuild.File) {
			f.Drop("llama.attention.key_length")
			f.Set("llama.attention.head_count", uint32(5))
		}, false, "key llama.attention.key_length: got nothing, and 24 / 5 heads is not whole"},
		{"indivisible groups", set("llama.attention.head_count_kv", uint32(3)), false, "attention heads: got 4, want a multiple of the 3"},
		{"values of another length", set("llama.attention.value_length", uint32(4)), true, "key llama.attention.value_length 4 not supported: it must be the attention.key_length of 8"},
		{"partial rotation", set("llama.rope.dimension_count", uint32(4)), true, "key llama.rope.dimension_count 4 not supported: it must be 8"},
		{"no eps", drop("llama.attention.layer_norm_rms_epsilon"), false, "key llama.attention.layer_norm_rms_epsilon: got nothing"},
		{"eps of 0", set("llama.attention.layer_norm_rms_epsilon", float32(0)), false, "layer_norm_rms_epsilon: got 0"},
		{"eps that is NaN", set("llama.attention.layer_norm_rms_epsilon", float32(math.NaN())), false, "layer_norm_rms_epsilon: got NaN"},
		{"a layer norm", set("llama.attention.layer_norm_epsilon", float32(1e-5)), true, "key llama.attention.layer_norm_epsilon 1e-05 not supported: it must not be there"},
		{"no rotary base", drop("llama.rope.freq_base"), false, "key llama.rope.freq_base: got nothing, want a rotary base"},
		{"an infinite rotary base", set("llama.rope.freq_base", float32(math.Inf(1))), false, "key llama.rope.freq_base: got +Inf"},
		{"linear scaling", set("llama.rope.scaling.factor", float32(4)), true, "key llama.rope.scaling.factor 4 not supported: it must be 1"},
		{"old linear scaling", set("llama.rope.scale_linear", float32(4)), true, "key llama.rope.scale_linear 4 not supported"},
		{"yarn", set("llama.rope.scaling.type", "yarn"), true, `key llama.rope.scaling.type "yarn" not supported`},
		{"scaled attention", set("llama.rope.scaling.attn_factor", float32(1.2)), true, "key llama.rope.scaling.attn_factor 1.2 not supported: it must be 1"},
		{"experts", set("llama.expert_count", uint32(8)), true, "key llama.expert_count 8 not supported: it must be 0"},
		{"a list where a number must be 0", set("llama.expert_count", []int32{0}), true, "key llama.expert_count [0] not supported"},
		{"another layout", set("llama.tensor_data_layout", "reference"), true, `key llama.tensor_data_layout "reference" not supported`},
		{"sliding window", set("llama.attention.sliding_window", uint32(4096)), true, "key llama.attention.sliding_window 4096 not supported"},
		{"vocabularies that differ", func(f *ggufbuild.File) {
			f.Set("tokenizer.ggml.tokens", make([]string, 49))
		}, false, "key llama.vocab_size: got 50, want 49, the length of tokenizer.ggml.tokens"},
		{"more tokens than rows", func(f *ggufbuild.File) {
			f.Drop("llama.vocab_size")
			f.Set("tokenizer.ggml.tokens", make([]string, 51))
		}, false, "tensor token_embd.weight: got shape [50 24], want shape [51 24]"},
		{"Llama 3's frequencies", func(f *ggufbuild.File) {
			f.Tensors = append(f.Tensors, ggufbuild.Tensor{Name: "rope_freqs.weight", Dims: []uint64{2}, Data: []byte{0, 0, 128, 63, 0, 0, 0, 66}})
		}, true, "tensor rope_freqs.weight: element 1: 32 not supported"},
		{"frequencies that are NaN", func(f *ggufbuild.File) {
			f.Tensors = append(f.Tensors, ggufbuild.Tensor{Name: "rope_freqs.weight", Dims: []uint64{1}, Data: []byte{0, 0, 192, 127}})
		}, true, "tensor rope_freqs.weight: element 0: NaN not supported"},
		{"norms of heads", extra("blk.0.attn_q_norm.weight", 8), true, "tensor blk.0.attn_q_norm.weight not supported: a llama has none"},
		{"a bias of the feed-forward", extra("blk.0.ffn_up.bias", 40), true, "tensor blk.0.ffn_up.bias not supported"},
		{"a layer by two names", extra("blk.01.attn_norm.weight", 24), true, "tensor blk.01.attn_norm.weight not supported"},
		{"one bias", extra("blk.1.attn_k.bias", 16), false, "tensor model.layers.0.self_attn.q_proj.bias: got nothing"},
		{"a layer more than the keys say", extra("blk.3.attn_norm.weight", 24), false, "tensor model.layers.3.input_layernorm.weight: got one of layer 3, want layers below 3, the llama.block_count"},
		{"a missing tensor", func(f *ggufbuild.File) { f.DropTensor("blk.2.ffn_gate.weight") }, false, "tensor model.layers.2.mlp.gate_proj.weight: got nothing, want shape [40 24]"},
		{"a missing layer", func(f *ggufbuild.File) { f.Set("llama.block_count", uint32(4)) }, false, "tensor model.layers.3.input_layernorm.weight: got nothing"},
		{"layers without end", func(f *ggufbuild.File) { f.Set("llama.block_count", uint32(1<<31-1)) }, false, "layer parameters: got 65536"},
		{"another shape", func(f *ggufbuild.File) { f.Tensor("blk.0.attn_q.weight").Dims = []uint64{32, 24} }, false, "tensor blk.0.attn_q.weight: got shape [24 32], want shape [32 24]"},
		{"a type that isn't read", func(f *ggufbuild.File) {
			t := f.Tensor("blk.1.ffn_up.weight")
			t.Type, t.Data = 24, t.Data[:40*24] // I8
		}, true, "tensor blk.1.ffn_up.weight: type I8 not supported: F32, F16, BF16, Q4_0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := ggufModel(ggufWeights("llama", false, true))
			c.change(f)
			path := filepath.Join(t.TempDir(), "bad.gguf")
			require.NoError(t, os.WriteFile(path, f.Bytes(), 0o644))
			_, diskErr := reference.Load(path)
			_, memErr := reference.LoadFS(fstest.MapFS{"bad.gguf": {Data: f.Bytes()}}, "bad.gguf")
			for _, err := range []error{diskErr, memErr} {
				if c.unsupported {
					var unsupported *engine.UnsupportedError
					require.ErrorAs(t, err, &unsupported)
				} else {
					var bad *engine.ConfigError
					require.ErrorAs(t, err, &bad)
				}
				require.ErrorContains(t, err, c.text)
			}
		})
	}
}

// TestGGUFOfQwen2HasNoOutputBias: what a llama may have.
func TestGGUFOfQwen2HasNoOutputBias(t *testing.T) {
	f := ggufModel(ggufWeights("qwen2", false, true))
	f.Tensors = append(f.Tensors, ggufbuild.Tensor{Name: "blk.0.attn_output.bias", Dims: []uint64{24}, Data: make([]byte, 96)})
	_, err := reference.LoadFS(fstest.MapFS{"m.gguf": {Data: f.Bytes()}}, "m.gguf")
	var unsupported *engine.UnsupportedError
	require.ErrorAs(t, err, &unsupported)
	require.ErrorContains(t, err, "tensor blk.0.attn_output.bias not supported: a qwen2 has none")
}

func TestBrokenGGUFFiles(t *testing.T) {
	dir := t.TempDir()
	good := ggufModel(ggufWeights("llama", false, true)).Bytes()
	path := filepath.Join(dir, "m.gguf")
	var broken *gguf.FormatError
	require.NoError(t, os.WriteFile(path, good[:len(good)-10], 0o644))
	_, err := reference.Load(path)
	require.ErrorAs(t, err, &broken)
	require.ErrorContains(t, err, "reference: gguf: "+path+": tensor output_norm.weight at byte")

	require.NoError(t, os.WriteFile(path, []byte("no model"), 0o644))
	_, err = reference.Load(path)
	require.ErrorAs(t, err, &broken)
	_, err = reference.Open(path)
	require.ErrorAs(t, err, &broken)
	_, err = reference.Load(filepath.Join(dir, "none.gguf"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = reference.LoadFS(os.DirFS(dir), "none.gguf")
	require.Error(t, err)
	other := filepath.Join(dir, "m.bin")
	require.NoError(t, os.WriteFile(other, good, 0o644))
	_, err = reference.Load(other)
	requireConfigError(t, err, "m.bin: model: got a file, want a folder with config.json, or a file named *.gguf")
	_, err = reference.LoadFS(os.DirFS(dir), "m.bin")
	requireConfigError(t, err, "m.bin: model: got a file, want a folder")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder.gguf"), 0o755))
	_, err = reference.Load(filepath.Join(dir, "folder.gguf"))
	requireConfigError(t, err, "config.json: file: got nothing")

	// One that shrinks behind its header, and one that is closed.
	require.NoError(t, os.WriteFile(path, good, 0o644))
	c, err := reference.Load(path)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(path, int64(len(good)-96)))
	_, err = c.Tensor("model.norm.weight")
	require.ErrorAs(t, err, &broken)
	require.NoError(t, c.Close())
	require.NoError(t, c.Close())
	_, err = c.Tensor("model.norm.weight")
	require.ErrorIs(t, err, fs.ErrClosed)
	got, err := reference.Resolve(path)
	require.NoError(t, err)
	require.Equal(t, path, got)
}

// TestGGUFWeightsMustBeFinite: the halves of a block may be anything.
func TestGGUFWeightsMustBeFinite(t *testing.T) {
	f := ggufModel(ggufWeights("llama", false, true))
	binary.LittleEndian.PutUint32(f.Tensor("blk.0.attn_q.weight").Data[4*24:], math.Float32bits(float32(math.Inf(1))))
	c, err := reference.LoadFS(fstest.MapFS{"m.gguf": {Data: f.Bytes()}}, "m.gguf")
	require.NoError(t, err)
	_, err = reference.New(c)
	// Row 1 of the file is row 4 of the model: see permuted.
	requireConfigError(t, err, "tensor model.layers.0.self_attn.q_proj.weight: element 96: got +Inf, want a finite value")
}

// FuzzGGUFCheckpoint: whatever a file says, loading it ends, and what is accepted
// can be computed as it stands.
func FuzzGGUFCheckpoint(f *testing.F) {
	// Small, for what is of interest is cut down byte by byte.
	a := llamaArch(false, true)
	a.Layers, a.PerLayer, a.Hidden, a.Intermediate, a.Heads, a.KVHeads, a.HeadDim = 1, a.PerLayer[:1], 2, 2, 1, 1, 2
	for _, family := range []string{"llama", "qwen2"} {
		a.Family = family
		f.Add(ggufModel(randomWeights(a, 1)).Bytes())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := reference.LoadFS(fstest.MapFS{"m.gguf": {Data: data}}, "m.gguf")
		if err != nil {
			return
		}
		a := c.Arch()
		if len(a.PerLayer) != a.Layers || a.Heads%a.KVHeads != 0 || a.HeadDim%2 != 0 {
			t.Fatalf("accepted %+v", a)
		}
		for _, name := range []string{"model.embed_tokens.weight", "model.layers.0.self_attn.q_proj.weight"} {
			if _, err := c.Tensor(name); err != nil {
				t.Fatal(err)
			}
		}
	})
}
