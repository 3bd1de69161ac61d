package gguf_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference/gguf"
	"github.com/plumbline-go/plumbline/engine/reference/internal/ggufbuild"
)

const testFile = "memory.gguf"

func open(data []byte) (*gguf.File, error) {
	return gguf.New(bytes.NewReader(data), int64(len(data)), testFile)
}

// recorded is what gguf-py says of a tensor; []byte is base64 in the file.
type recorded struct {
	Name, Type    string
	Shape         []int
	Offset, Bytes int64
	Raw, Float32  []byte
}

func readJSON(t testing.TB, name string, to any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, to))
}

var numbers = map[string]gguf.Type{
	"F32": gguf.F32, "F16": gguf.F16, "BF16": gguf.BF16, "Q4_0": gguf.Q4_0, "Q4_1": gguf.Q4_1, "Q5_0": gguf.Q5_0, "Q5_1": gguf.Q5_1,
	"Q8_0": gguf.Q8_0, "Q2_K": gguf.Q2_K, "Q3_K": gguf.Q3_K, "Q4_K": gguf.Q4_K, "Q5_K": gguf.Q5_K, "Q6_K": gguf.Q6_K,
}

func requireBits(t *testing.T, got []float32, want []byte) {
	t.Helper()
	require.Len(t, want, 4*len(got))
	for i, v := range got {
		if w := binary.LittleEndian.Uint32(want[4*i:]); math.Float32bits(v) != w {
			t.Fatalf("element %d: got %v, want %v", i, v, math.Float32frombits(w))
		}
	}
}

// TestDequantisesLikeThePythonPackage: bit for bit, every type that is read.
func TestDequantisesLikeThePythonPackage(t *testing.T) {
	var all map[string]recorded
	readJSON(t, "dequantised.json", &all)
	require.Len(t, all, len(numbers))
	for name, kind := range numbers {
		t.Run(name, func(t *testing.T) {
			want := all[name]
			require.True(t, kind.Readable())
			require.Equal(t, name, kind.String())
			n := len(want.Float32) / 4
			file := ggufbuild.File{Tensors: []ggufbuild.Tensor{{Name: "t", Dims: []uint64{uint64(n)}, Type: uint32(kind), Data: want.Raw}}}
			f, err := open(file.Bytes())
			require.NoError(t, err)
			got := make([]float32, n)
			require.NoError(t, f.Float32s("t", got))
			requireBits(t, got, want.Float32)
		})
	}
}

// TestLongTensorsAreReadInParts: what is read at once ends inside of a tensor, and
// not at a multiple of the block.
func TestLongTensorsAreReadInParts(t *testing.T) {
	var all map[string]recorded
	readJSON(t, "dequantised.json", &all)
	for name, kind := range numbers {
		want := all[name]
		times := 600<<10/len(want.Raw) + 1
		n := len(want.Float32) / 4
		file := ggufbuild.File{Tensors: []ggufbuild.Tensor{{Name: "t", Dims: []uint64{uint64(n), uint64(times)}, Type: uint32(kind), Data: bytes.Repeat(want.Raw, times)}}}
		f, err := open(file.Bytes())
		require.NoError(t, err)
		got := make([]float32, n*times)
		require.NoError(t, f.Float32s("t", got))
		for i := range times {
			requireBits(t, got[i*n:(i+1)*n], want.Float32)
		}
	}
}

// TestReadsWhatThePythonPackageWrites: keys of every type, tensors where its
// reader finds them.
func TestReadsWhatThePythonPackageWrites(t *testing.T) {
	f, err := gguf.Open("testdata/everything.gguf")
	require.NoError(t, err)
	defer f.Close()
	require.Equal(t, 3, f.Version())
	require.Equal(t, "testdata/everything.gguf", f.Name())
	want := []struct {
		key   string
		value any
	}{
		{"general.architecture", "made-up"},
		{"general.alignment", uint32(64)},
		{"a.uint8", uint8(250)}, {"a.int8", int8(-3)},
		{"a.uint16", uint16(65000)}, {"a.int16", int16(-30000)},
		{"a.uint32", uint32(4000000000)}, {"a.int32", int32(-2000000000)},
		{"a.float32", float32(0.1)},
		{"a.uint64", uint64(1 << 63)}, {"a.int64", int64(-1 << 62)},
		{"a.float64", 0.1},
		{"a.bool", true},
		{"a.string", "Grüße\n"},
		{"a.strings", []string{"", "x", "Grüße", strings.Repeat("long ", 20)}},
		{"a.int32s", []int32{1, -2, 3}},
		{"a.float32s", []float32{0.5, -0.25}},
		{"a.bools", []bool{true, false, true}},
	}
	var keys []string
	for _, w := range want {
		got, ok := f.Value(w.key)
		require.True(t, ok, w.key)
		require.Equal(t, w.value, got, w.key)
		keys = append(keys, w.key)
	}
	require.ElementsMatch(t, keys, f.Keys())
	_, ok := f.Value("a.none")
	require.False(t, ok)

	var tensors []recorded
	readJSON(t, "everything.json", &tensors)
	require.Len(t, f.Tensors(), len(tensors))
	for i, w := range tensors {
		got, ok := f.Tensor(w.Name)
		require.True(t, ok)
		require.Equal(t, gguf.Tensor{Name: w.Name, Shape: w.Shape, Type: numbers[w.Type], Offset: w.Offset, Bytes: w.Bytes}, got)
		require.Equal(t, got, f.Tensors()[i])
		values := make([]float32, got.Elements())
		require.NoError(t, f.Float32s(w.Name, values))
		requireBits(t, values, w.Float32)
	}
}

// TestNumberArrays: every element type of an array.
func TestNumberArrays(t *testing.T) {
	array := func(element uint32, count uint64, data ...byte) []byte {
		b := binary.LittleEndian.AppendUint32(nil, element)
		return append(binary.LittleEndian.AppendUint64(b, count), data...)
	}
	for element, c := range map[uint32]struct {
		bytes []byte
		want  any
	}{
		0:  {[]byte{1, 255}, []uint8{1, 255}},
		1:  {[]byte{1, 255}, []int8{1, -1}},
		2:  {[]byte{1, 2, 255, 255}, []uint16{0x201, 65535}},
		3:  {[]byte{1, 2, 255, 255}, []int16{0x201, -1}},
		4:  {[]byte{1, 0, 0, 0, 255, 255, 255, 255}, []uint32{1, math.MaxUint32}},
		5:  {[]byte{1, 0, 0, 0, 255, 255, 255, 255}, []int32{1, -1}},
		6:  {[]byte{0, 0, 128, 63, 0, 0, 0, 191}, []float32{1, -0.5}},
		10: {[]byte{1, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255}, []uint64{1, math.MaxUint64}},
		11: {[]byte{1, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255}, []int64{1, -1}},
		12: {[]byte{0, 0, 0, 0, 0, 0, 240, 63, 0, 0, 0, 0, 0, 0, 224, 191}, []float64{1, -0.5}},
	} {
		f, err := open(withKey(9, array(element, 2, c.bytes...)))
		require.NoError(t, err)
		got, ok := f.Value("k")
		require.True(t, ok)
		require.Equal(t, c.want, got)
	}
}

// withKey is a file with nothing but a key "k" of a type, and the bytes given.
func withKey(kind uint32, value []byte) []byte {
	b := append([]byte("GGUF"), 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0)
	b = append(b, ggufbuild.Text("k")...)
	b = binary.LittleEndian.AppendUint32(b, kind)
	b = append(b, value...)
	for len(b)%32 != 0 {
		b = append(b, 0)
	}
	return b
}

// TestTextsLongerThanTheBuffer: tokens aren't, templates may be.
func TestTextsLongerThanTheBuffer(t *testing.T) {
	long := strings.Repeat("x", 200<<10)
	list := []string{"a", long, strings.Repeat("y", 64<<10-8), "b", strings.Repeat("z", 64<<10-7)}
	for range 30 {
		list = append(list, strings.Repeat("w", 5000))
	}
	file := ggufbuild.File{Keys: []ggufbuild.Key{{Name: "list", Value: list}, {Name: "text", Value: long}}}
	f, err := open(file.Bytes())
	require.NoError(t, err)
	got, _ := f.Value("list")
	require.Equal(t, list, got)
	got, _ = f.Value("text")
	require.Equal(t, long, got)
}

func TestFloat32sRefuses(t *testing.T) {
	file := ggufbuild.File{Tensors: []ggufbuild.Tensor{
		{Name: "f", Dims: []uint64{4}, Data: make([]byte, 16)},
		{Name: "iq", Dims: []uint64{32}, Type: 20, Data: make([]byte, 18)},
	}}
	path := filepath.Join(t.TempDir(), "m.gguf")
	require.NoError(t, os.WriteFile(path, file.Bytes(), 0o644))
	f, err := gguf.Open(path)
	require.NoError(t, err)
	require.ErrorContains(t, f.Float32s("none", nil), "tensor none: there is none")
	require.ErrorContains(t, f.Float32s("f", make([]float32, 3)), "tensor f: got room for 3 values, want 4")
	var unsupported *engine.UnsupportedError
	err = f.Float32s("iq", make([]float32, 32))
	require.ErrorAs(t, err, &unsupported)
	require.ErrorContains(t, err, "m.gguf: tensor iq: type IQ4_NL not supported: F32, F16, BF16, Q4_0,")
	iq, _ := f.Tensor("iq")
	require.False(t, iq.Type.Readable())
	require.ErrorAs(t, f.Supported(iq), &unsupported)
	plain, _ := f.Tensor("f")
	require.NoError(t, f.Supported(plain))

	require.NoError(t, os.Truncate(path, plain.Offset+8))
	err = f.Float32s("f", make([]float32, 4))
	var broken *gguf.FormatError
	require.ErrorAs(t, err, &broken)
	require.ErrorContains(t, err, "tensor f at byte")
	require.ErrorContains(t, err, "got 8 bytes to the end, want 16")
	require.NoError(t, f.Close())
	require.NoError(t, f.Close())
	require.ErrorIs(t, f.Float32s("f", make([]float32, 4)), fs.ErrClosed)
}

func TestOpenRefusesWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	_, err := gguf.Open(dir)
	var broken *gguf.FormatError
	require.ErrorAs(t, err, &broken)
	require.ErrorContains(t, err, "want a regular file")
	_, err = gguf.Open(filepath.Join(dir, "none.gguf"))
	require.ErrorIs(t, err, fs.ErrNotExist)
}
