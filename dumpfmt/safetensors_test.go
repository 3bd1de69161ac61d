package dumpfmt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// safetensorsHex was written by the Python package safetensors 0.8.0:
// {"w": float32 [[1.5, -2, 0.25]], "ids": int64 [7, -1]}, metadata format: np.
const safetensorsHex = "98000000000000007b225f5f6d657461646174615f5f223a7b22666f726d6174223a226e70227d2c" +
	"22696473223a7b226474797065223a22493634222c227368617065223a5b325d2c22646174615f6f666673657473223a" +
	"5b302c31365d7d2c2277223a7b226474797065223a22463332222c227368617065223a5b312c335d2c22646174615f6f" +
	"666673657473223a5b31362c32385d7d7d202020202020200700000000000000ffffffffffffffff0000c03f000000c0" +
	"0000803e"

// st builds a file from a JSON header and n bytes of data.
func st(header string, n int) []byte {
	p := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(p, header...), make([]byte, n)...)
}

func TestSafetensorsRead(t *testing.T) {
	data := unhex(t, safetensorsHex)
	d, err := NewSafetensors(bytes.NewReader(data), int64(len(data)), testFile)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"format": "np"}, d.Metadata())
	require.Equal(t, []TensorInfo{
		{TensorSpec{"ids", I64, []int{2}}, 160, 16},
		{TensorSpec{"w", F32, []int{1, 3}}, 176, 12},
	}, d.Tensors())

	w, err := d.Float32s("w")
	require.NoError(t, err)
	require.EqualValues(t, 3, w.Len())
	got := make([]float32, 4)
	n, err := w.ReadValues(got, 1)
	if n != 2 || err != nil || got[0] != -2 || got[1] != 0.25 {
		t.Errorf("from value 1: got %v, %d, %v, want [-2 0.25]", got, n, err)
	}
	p := make([]byte, 8)
	require.NoError(t, d.ReadBytes("ids", 8, p))
	require.Equal(t, int64(-1), int64(binary.LittleEndian.Uint64(p)))

	_, err = d.Float32s("ids")
	var un *UnsupportedError
	require.ErrorAs(t, err, &un)
	_, err = d.Float32s("none")
	wantUsage(t, err)
	wantUsage(t, d.ReadBytes("none", 0, p))
	for _, off := range []int64{-1, 9, 17, math.MaxInt64} {
		wantUsage(t, d.ReadBytes("ids", off, p))
	}
}

func TestSafetensorsAccepted(t *testing.T) {
	for name, data := range map[string][]byte{
		"no tensor":                 st(`{}`, 0),
		"scalar":                    st(`{"a":{"dtype":"F64","shape":[],"data_offsets":[0,8]}}`, 8),
		"empty tensors anywhere":    st(`{"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"c":{"dtype":"F32","shape":[2,0],"data_offsets":[4,4]}}`, 4),
		"header not in data order":  st(`{"b":{"dtype":"U8","shape":[2],"data_offsets":[3,5]},"a":{"dtype":"I8","shape":[3],"data_offsets":[0,3]}}`, 5),
		"padding":                   st("{\"a\":{\"dtype\":\"BOOL\",\"shape\":[1],\"data_offsets\":[0,1]}}  \n ", 1),
		"metadata anywhere, escape": st(`{"\u0061":{"data_offsets":[0,2],"shape":[1],"dtype":"BF16"},"__metadata__":{"k":"\ud83d\ude00"}}`, 2),
	} {
		if err := openSafetensorsBytes(data); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSafetensorsRefused(t *testing.T) {
	const a = `"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}`
	tests := []struct {
		name string
		data []byte
		want string
	}{
		{"header of 2^64-1 bytes", patched(st("{}", 0), 0, math.MaxUint64), "2 of 18446744073709551615 bytes after byte 0x8 (JSON header)"},
		{"header one byte longer than the file", patched(st("{}", 0), 0, 3), "2 of 3 bytes after byte 0x8"},
		{"header of no bytes", st("", 4), "header at byte 0x8: got the end, want '{'"},
		{"header that starts with a space", st(" {}", 0), "header at byte 0x8: got ' ', want '{'"},
		{"a list", st("[]", 0), "header at byte 0x8: got '[', want '{'"},
		{"text after the header", st("{}x", 0), "after the JSON value at byte 0xA: got 'x', want the end"},
		{"a tensor twice", st("{"+a+","+a+"}", 8), `key "a" twice`},
		{"a tensor twice, by an escape", st("{"+a+`,"\u0061":{"dtype":"F32","shape":[0],"data_offsets":[8,8]}}`, 8), `key "a" twice`},
		{"dtype twice", st(`{"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 8), `key "dtype" twice`},
		{"metadata twice", st(`{"__metadata__":{},"__metadata__":{},`+a+"}", 8), `key "__metadata__" twice`},
		{"metadata key twice", st(`{"__metadata__":{"k":"1","k":"2"},`+a+"}", 8), `key "k" twice`},
		{"metadata that is no text", st(`{"__metadata__":{"k":1},`+a+"}", 8), `__metadata__ "k" at byte 0x1D: got '1', want '"'`},
		{"metadata that is no object", st(`{"__metadata__":null,`+a+"}", 8), `__metadata__ at byte`},
		{"an unknown key", st(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}}`, 8), `got key "x"`},
		{"no dtype", st(`{"a":{"shape":[2],"data_offsets":[0,8]}}`, 8), "got no dtype"},
		{"no shape", st(`{"a":{"dtype":"F32","data_offsets":[0,8]}}`, 8), "got no shape"},
		{"no offsets", st(`{"a":{"dtype":"F32","shape":[2]}}`, 8), "got no data_offsets"},
		{"negative dimension", st(`{"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}}`, 8), "shape[0] of tensor \"a\" at byte 0x25: got -2, want an integer in [0, "},
		{"negative dimensions whose product fits", st(`{"a":{"dtype":"F32","shape":[-2,-1],"data_offsets":[0,8]}}`, 8), "got -2"},
		{"fractional dimension", st(`{"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}}`, 8), "got 2.0"},
		{"dimension above 2^63", st(`{"a":{"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,8]}}`, 8), "got 9223372036854775808"},
		{"a product that wraps to 8", st(`{"a":{"dtype":"F32","shape":[2147483648,4294967296,2],"data_offsets":[0,8]}}`, 8), "want a product below 2^63 bytes"},
		{"an overflow behind a zero", st(`{"a":{"dtype":"F32","shape":[0,4611686018427387904,4611686018427387904],"data_offsets":[0,0]}}`, 0), "want a product below 2^63 bytes"},
		{"negative offset", st(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[-8,0]}}`, 8), "data_offsets[0] of tensor \"a\" at byte 0x38: got -8"},
		{"offsets reversed", st(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}}`, 8), "got [8 0], want [begin, end]"},
		{"one offset", st(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}}`, 8), "got [0], want [begin, end]"},
		{"three offsets", st(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,8]}}`, 8), "got a third offset"},
		{"end past the data", st("{"+a+"}", 7), "data_offsets[1] of tensor \"a\" at byte 0x3A: got 8, want an integer in [0, 7]"},
		{"size against shape", st(`{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}`, 8), "got 8 bytes, want 12 for F32 [3]"},
		{"size against dtype", st(`{"a":{"dtype":"F16","shape":[2],"data_offsets":[0,8]}}`, 8), "got 8 bytes, want 4 for F16 [2]"},
		{"overlap", st("{"+a+`,"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}`, 12), `overlap at tensor "b" at byte 0x3E: got data_offsets begin 4, want 8, where "a" ends`},
		{"the same range twice", st("{"+a+`,"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 8), `overlap at tensor "b"`},
		{"hole", st("{"+a+`,"b":{"dtype":"F32","shape":[1],"data_offsets":[12,16]}}`, 16), `hole before tensor "b"`},
		{"hole at the start", st(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}`, 12), `hole before tensor "a"`},
		{"an empty tensor inside another", st("{"+a+`,"b":{"dtype":"F32","shape":[0],"data_offsets":[4,4]}}`, 8), `overlap at tensor "b"`},
		{"data that no tensor holds", st("{"+a+"}", 9), "got 1 bytes that no tensor holds, want none"},
		{"data without a tensor", st("{}", 1), "got 1 bytes that no tensor holds"},
		{"bad UTF-8", st("{\"a\xff\":{}}", 0), "got byte 0xFF, want UTF-8"},
		{"deep nesting", st(`{"a":`+strings.Repeat("[", 1000), 0), "tensor \"a\""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if e := brokenAt(t, openSafetensorsBytes(tt.data), len(tt.data)); !strings.Contains(e.Error(), tt.want) {
				t.Errorf("got %v, want %q", e, tt.want)
			}
		})
	}
}

func TestSafetensorsUnknownTypeIsUnsupported(t *testing.T) {
	err := openSafetensorsBytes(st(`{"a":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}}`, 1))
	var un *UnsupportedError
	var broken *FormatError
	if !errors.As(err, &un) || errors.As(err, &broken) {
		t.Fatalf("got %v, want an *UnsupportedError", err)
	}
	if want := `dumpfmt: safetensors x.bin: dtype of tensor "a" at byte 0x16: "F4" is not supported, only `; !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s…", err, want)
	}
}

func TestSafetensorsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.safetensors")
	specs := []TensorSpec{{"blocks.0.v", F32, []int{2, 2}}, {"none", F32, []int{0, 5}}, {`"<é>`, I64, nil}, {"last", U8, []int{0}}}
	w, err := CreateSafetensors(path, specs, map[string]string{"k": "<v>"}, WriteOptions{})
	require.NoError(t, err)
	require.NoError(t, w.WriteFloat32s("blocks.0.v", []float32{1, 2, 3}))
	wantUsage(t, w.WriteFloat32s("blocks.0.v", []float32{4, 5})) // too much
	wantUsage(t, w.WriteBytes(`"<é>`, make([]byte, 8)))          // out of turn
	require.NoError(t, w.WriteFloat32s("blocks.0.v", []float32{4}))
	require.NoError(t, w.WriteFloat32s("none", nil))
	wantUsage(t, w.WriteFloat32s(`"<é>`, []float32{1, 2})) // another type
	require.NoError(t, w.WriteBytes(`"<é>`, []byte{1, 0, 0, 0, 0, 0, 0, 0}))
	wantUsage(t, w.WriteBytes("blocks.0.v", []byte{1})) // all are written
	require.NoError(t, w.Commit())

	infos, err := CheckSafetensors(path)
	require.NoError(t, err)
	require.Len(t, infos, 4)
	require.Zero(t, infos[0].Offset%8, "the data is aligned")
	d, err := OpenSafetensors(path)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"k": "<v>"}, d.Metadata())
	v, err := d.Float32s("blocks.0.v")
	require.NoError(t, err)
	got := make([]float32, 4)
	_, err = v.ReadValues(got, 0)
	require.NoError(t, err)
	if !sameBits(got, []float32{1, 2, 3, 4}) {
		t.Errorf("got %v, want [1 2 3 4]", got)
	}
	require.NoError(t, d.Close())
}

func TestSafetensorsWriterRefuses(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.safetensors")
	for name, specs := range map[string][]TensorSpec{
		"a name twice":       {{"a", F32, []int{1}}, {"a", F32, []int{1}}},
		"the metadata's key": {{"__metadata__", F32, []int{1}}},
		"a name of no text":  {{"\xff", F32, []int{1}}},
		"an unknown type":    {{"a", "F4", []int{2}}},
		"a negative size":    {{"a", F32, []int{-1}}},
		"an overflow":        {{"a", F32, []int{math.MaxInt, 2}}},
		"an overflowing sum": {{"a", U8, []int{math.MaxInt}}, {"b", U8, []int{math.MaxInt}}},
	} {
		_, err := CreateSafetensors(path, specs, nil, WriteOptions{})
		t.Log(name)
		wantUsage(t, err)
	}
	_, err := CreateSafetensors(path, nil, map[string]string{"k": "\xff"}, WriteOptions{})
	wantUsage(t, err)
	w, err := CreateSafetensors(path, []TensorSpec{{"a", F32, []int{2}}}, nil, WriteOptions{})
	require.NoError(t, err)
	require.NoError(t, w.WriteFloat32s("a", []float32{1}))
	wantUsage(t, w.Commit()) // four bytes missing
	wantEmpty(t, dir)
}
