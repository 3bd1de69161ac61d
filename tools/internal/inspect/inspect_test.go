package inspect_test

import (
	"encoding/binary"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/tools/internal/inspect"
)

// The bytes are put together here, so that the package's readers are held to the
// format and not to its own writers.

func u64(vs ...uint64) []byte {
	var b []byte
	for _, v := range vs {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

func f32(b []byte, vs ...float32) []byte {
	for _, v := range vs {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

func write(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, data, 0o644))
	return path
}

func formats(r *inspect.Report) []string {
	var out []string
	for _, x := range r.Readings {
		out = append(out, x.Format)
	}
	return out
}

func TestReadings(t *testing.T) {
	nan := float32(math.NaN())
	floatDump := f32(u64(2, 8, 0xABCD, 1), 3, 4, 0, 0, 0, 0, 0, 0, 5, 5, 5, 5, 5, 5, 5, 5)
	int8Row := append(u64(1<<30, uint64(0xFFFFFFFFFFFFFFE2)), 1, 2, 3, 4, 5, 6, 7, 0xFF) // e = -30
	int8Dump := append(u64(1, 8, 7, 1), int8Row...)
	logits := f32(u64(2, 3), 1, 2, nan, 0, 0, 0)
	header := `{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`
	st := f32(append(u64(uint64(len(header))), header...), 1, 2)
	tests := []struct {
		name  string
		file  string
		data  []byte
		want  []string
		exact bool
	}{
		// As int8 rows these bytes would leave a trailer, and row 1 has no scale.
		{"float layers by ending", "a.layers.bin", floatDump, []string{inspect.FloatLayers}, true},
		{"float layers without an ending", "dump", floatDump, []string{inspect.FloatLayers}, true},
		{"float layers whose values make scales", "dump", f32(u64(1, 8, 7, 1), 1, 1, 0, 0, 1, 2, 3, 4), []string{inspect.FloatLayers, inspect.Int8Layers}, true},
		{"int8 layers", "a.layers.bin", int8Dump, []string{inspect.Int8Layers}, true},
		{"int8 layers with a trailer", "a.layers.bin", append(int8Dump, 9, 9), []string{inspect.Int8Layers}, false},
		{"logits fit twice", "a.logits.bin", logits, []string{inspect.FloatLogits, inspect.Int32Logits}, true},
		{"logits without rows", "a.logits.bin", u64(0, 0), []string{inspect.FloatLogits, inspect.Int32Logits}, true},
		{"safetensors", "a.safetensors", st, []string{inspect.Safetensors}, true},
		{"safetensors without an ending", "weights", st, []string{inspect.Safetensors}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := inspect.File(write(t, tt.file, tt.data))
			require.NoError(t, err)
			require.Equal(t, tt.want, formats(r))
			require.Equal(t, tt.exact, r.Readings[0].Exact)
			require.Equal(t, int64(len(tt.data)), r.Bytes)
		})
	}
}

func TestWhatAReadingSays(t *testing.T) {
	r, err := inspect.File(write(t, "a.layers.bin", f32(u64(3, 2, 0xABCD, 1), 3, 4, 5, 5, float32(math.Inf(1)), 0)))
	require.NoError(t, err)
	x := r.Readings[0]
	require.Equal(t, []any{3, 2, "0x000000000000ABCD", uint64(1)}, []any{x.Rows, x.Width, x.Fingerprint, x.CaptureMode})
	require.Equal(t, []int{2}, x.Values.NonFiniteRows)
	require.Equal(t, []int{1}, x.Values.ConstantRows)
	if x.Values.MinNorm != 5 || !(math.Abs(x.Values.MaxNorm-math.Sqrt(50)) <= 1e-12) {
		t.Errorf("norms %v to %v, want 5 to sqrt(50)", x.Values.MinNorm, x.Values.MaxNorm)
	}

	r, err = inspect.File(write(t, "a.logits.bin", f32(u64(2, 3), 1, 2, 2, 0, 0, 0)))
	require.NoError(t, err)
	require.Equal(t, []int{1}, r.Readings[0].Values.AllZeroRows)
	if v := r.Readings[0].Values; v.MinNorm != 0 || v.MaxNorm != 3 {
		t.Errorf("norms %v to %v, want 0 to 3", v.MinNorm, v.MaxNorm)
	}
}

// The declaration decides: what fits by size isn't what is meant.
func TestDeclaration(t *testing.T) {
	data := f32(u64(1, 2), 1, 2)
	for side, want := range map[string]string{"f32": inspect.FloatLogits, "i32": inspect.Int32Logits} {
		path := write(t, "a.logits.bin", data)
		require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "engine.json"), []byte(`{"name":"x","logits":"`+side+`"}`), 0o644))
		r, err := inspect.File(path)
		require.NoError(t, err)
		require.Len(t, r.Readings, 2)
		require.Equal(t, want, r.Readings[0].Format)
		require.True(t, r.Readings[0].Declared)
		require.False(t, r.Readings[1].Declared)
	}

	path := write(t, "a.layers.bin", append(u64(1, 8, 7, 1), append(u64(1, 0), 1, 2, 3, 4, 5, 6, 7, 8)...))
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "engine.json"), []byte(`{"name":"x","layers":"f32"}`), 0o644))
	r, err := inspect.File(path)
	var bad *inspect.MalformedError
	require.ErrorAs(t, err, &bad)
	require.Equal(t, inspect.FloatLayers, bad.Declared)
	require.NotNil(t, r)
}

func TestMalformed(t *testing.T) {
	for name, data := range map[string][]byte{
		"empty":            nil,
		"text":             []byte("this is no dump at all, just text in a file"),
		"lying rows":       u64(1<<60, 8, 7, 1),
		"another mode":     f32(u64(1, 1, 7, 2), 1),
		"trailing logits":  f32(u64(1, 1), 1, 2),
		"half a header":    u64(1),
		"vocab of no rows": u64(0, 5),
	} {
		r, err := inspect.File(write(t, "dump", data))
		var bad *inspect.MalformedError
		require.ErrorAs(t, err, &bad, name)
		require.Empty(t, r.Readings, name)
		require.Len(t, r.Refused, 6, name)
		for _, why := range r.Refused {
			require.NotEmpty(t, why.Why)
		}
	}
	_, err := inspect.File(filepath.Join(t.TempDir(), "nothing"))
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// A GGUF file with a text, a list and a Q4_0 tensor of two rows.
func TestGGUF(t *testing.T) {
	text := func(s string) []byte { return append(u64(uint64(len(s))), s...) }
	u32 := func(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }
	data := slices.Concat([]byte("GGUF"), u32(3), u64(1, 2),
		text("general.name"), u32(8), text("tiny"),
		text("a.list"), u32(9), u32(5), u64(3), u32(1), u32(2), u32(3),
		text("w"), u32(2), u64(32, 2), u32(2), u64(0))
	for len(data)%32 != 0 {
		data = append(data, 0)
	}
	data = append(data, make([]byte, 36)...)
	for _, name := range []string{"m.gguf", "unnamed"} {
		r, err := inspect.File(write(t, name, data))
		require.NoError(t, err)
		require.Equal(t, []inspect.Reading{{Format: inspect.GGUF, Declared: name == "m.gguf", Exact: true,
			Keys:    []inspect.Key{{Name: "general.name", Value: "tiny"}, {Name: "a.list", Value: "3 x int32"}},
			Tensors: []inspect.Tensor{{Name: "w", DType: "Q4_0", Shape: []int{2, 32}}}}}, r.Readings)
	}
	r, err := inspect.File(write(t, "m.gguf", data[:len(data)-1]))
	var bad *inspect.MalformedError
	require.ErrorAs(t, err, &bad)
	require.Equal(t, inspect.GGUF, bad.Declared)
	require.ErrorContains(t, err, "tensor w at byte")
	require.Len(t, r.Refused, 1)
}

func TestFolder(t *testing.T) {
	dir := t.TempDir()
	put := func(name string, data []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o644))
	}
	put("engine.json", []byte(`{"name":"x","version":"2","layers":"f32"}`))
	// FNV-1a 64 of "a" is a published test vector.
	put("good.json", []byte(`{"text":"a","token_ids":[1,2,3],"output_ids":[4]}`))
	put("good.layers.bin", f32(u64(1, 1, 0xAF63DC4C8601EC8C, 1), 1))
	put("wrong.json", []byte(`{"text":"b","token_ids":[1]}`))
	put("wrong.layers.bin", f32(u64(1, 1, 0xAF63DC4C8601EC8C, 1), 1))
	r, err := inspect.Folder(dir)
	require.NoError(t, err)
	require.Equal(t, inspect.Side{Name: "x", Version: "2", Layers: "f32"}, r.Side)
	require.Len(t, r.Cases, 2)
	require.Equal(t, inspect.CaseReport{Name: "good", Fingerprint: "0xAF63DC4C8601EC8C", Tokens: 3, Output: 1, Files: []string{"good.layers.bin"}}, r.Cases[0])
	require.Contains(t, r.Cases[1].Error, "wrong.layers.bin")
	require.Equal(t, 1, r.Broken())

	c, err := inspect.CaseFile(filepath.Join(dir, "good.json"))
	require.NoError(t, err)
	require.Equal(t, "good", c.Name)
	s, err := inspect.EngineFile(filepath.Join(dir, "engine.json"))
	require.NoError(t, err)
	require.Equal(t, r.Side, *s)
	_, err = inspect.Folder(t.TempDir())
	require.Error(t, err)
}

func TestModel(t *testing.T) {
	dir := t.TempDir()
	put := func(name string, data []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o644))
	}
	require.False(t, inspect.IsModel(dir))
	put("config.json", []byte(`{"model_type": "qwen2", "num_hidden_layers": 3, "hidden_size": 4, "vocab_size": 5, "tensors": "not ours"}`))
	require.True(t, inspect.IsModel(dir))
	header := `{"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"b":{"dtype":"BF16","shape":[2],"data_offsets":[24,28]}}`
	for len(header)%8 != 0 {
		header += " "
	}
	put("m-2.safetensors", append(append(u64(uint64(len(header))), header...), make([]byte, 28)...))
	header = `{"c":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}`
	for len(header)%8 != 0 {
		header += " "
	}
	put("m-1.safetensors", append(append(u64(uint64(len(header))), header...), make([]byte, 4)...))
	put("tokenizer.json", []byte(`{}`))
	got, err := inspect.Model(dir)
	require.NoError(t, err)
	// 2*3 + 2 + 1 parameters.
	require.Equal(t, &inspect.ModelReport{Folder: dir, ModelConfig: inspect.ModelConfig{Type: "qwen2", Layers: 3, Hidden: 4, Vocab: 5},
		Files: []string{"m-1.safetensors", "m-2.safetensors"}, Tensors: 3, Parameters: 9, DTypes: map[string]int{"F32": 2, "BF16": 1}}, got)

	var bad *inspect.MalformedError
	put("m-3.safetensors", u64(1<<60))
	_, err = inspect.Model(dir)
	require.ErrorAs(t, err, &bad)
	require.Equal(t, filepath.Join(dir, "m-3.safetensors"), bad.File)
	put("config.json", []byte(`{`))
	_, err = inspect.Model(dir)
	require.ErrorAs(t, err, &bad)
	require.Equal(t, filepath.Join(dir, "config.json"), bad.File)

	put("engine.json", []byte(`{"name": "x"}`))
	require.False(t, inspect.IsModel(dir), "a dump folder with a case called config")
}
