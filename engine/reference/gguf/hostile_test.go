package gguf_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference/gguf"
	"github.com/plumbline-go/plumbline/engine/reference/internal/ggufbuild"
)

// small is a sound file of two tensors: a [2 x 4] F32 and a Q4_0 of one block.
func small() *ggufbuild.File {
	return &ggufbuild.File{
		Keys: []ggufbuild.Key{{Name: "general.architecture", Value: "llama"}, {Name: "list", Value: []string{"a", "bc"}}},
		Tensors: []ggufbuild.Tensor{
			{Name: "first", Dims: []uint64{4, 2}, Type: 0, Data: bytes.Repeat([]byte{1, 0, 0, 0x3f}, 8)},
			{Name: "second", Dims: []uint64{32}, Type: 2, Data: bytes.Repeat([]byte{0x21}, 18)},
		},
	}
}

// place is where a text stands in a file.
func place(t testing.TB, data []byte, text string) int {
	t.Helper()
	at := bytes.Index(data, []byte(text))
	require.GreaterOrEqual(t, at, 0)
	return at
}

func put32(data []byte, at int, v uint32) { binary.LittleEndian.PutUint32(data[at:], v) }
func put64(data []byte, at int, v uint64) { binary.LittleEndian.PutUint64(data[at:], v) }

type hostile struct {
	name        string
	change      func(data []byte) []byte
	unsupported bool
	text        string
}

// hostileFiles are changes to small() that make it a file that must be refused.
func hostileFiles(t testing.TB) []hostile {
	good := small().Bytes()
	first, second := place(t, good, "first"), place(t, good, "second")
	list := place(t, good, "list") + len("list")
	// Behind a name: the number of dimensions, they, the type, the offset.
	firstDims, secondDims := first+len("first"), second+len("second")
	set64 := func(at int, v uint64) func([]byte) []byte {
		return func(d []byte) []byte { put64(d, at, v); return d }
	}
	set32 := func(at int, v uint32) func([]byte) []byte {
		return func(d []byte) []byte { put32(d, at, v); return d }
	}
	built := func(change func(*ggufbuild.File)) func([]byte) []byte {
		return func([]byte) []byte {
			f := small()
			change(f)
			return f.Bytes()
		}
	}
	return []hostile{
		{"nothing", func([]byte) []byte { return nil }, false, "the magic at byte 0x0: got 0 bytes to the end, want 4"},
		{"another format", func(d []byte) []byte { return append([]byte("GGML"), d[4:]...) }, false, `the magic at byte 0x0: got "GGML"`},
		{"big-endian magic", func(d []byte) []byte { return append([]byte("FUGG"), d[4:]...) }, false, `the magic`},
		{"version 0", set32(4, 0), false, "the version at byte 0x4: got 0, want 2 or 3"},
		{"version 1", set32(4, 1), true, "version 1 not supported"},
		{"version 4", set32(4, 4), true, "version 4 not supported"},
		{"big-endian", set32(4, 3<<24), true, "big-endian not supported"},
		{"cut in the counts", func(d []byte) []byte { return d[:12] }, false, "the number of tensors at byte 0x8: got 4 bytes to the end, want 8"},
		{"cut in a key", func(d []byte) []byte { return d[:100] }, false, "key list: "},
		{"cut in an info", func(d []byte) []byte { return d[:firstDims+6] }, false, "tensor first: dimensions"},
		{"cut before the data", func(d []byte) []byte { return d[:secondDims+24] }, false, "tensor first at byte"},
		{"cut in a tensor", func(d []byte) []byte { return d[:len(d)-15] }, false, "tensor second at byte"},
		{"one byte short", func(d []byte) []byte { return d[:len(d)-14-1] }, false, "got 17 bytes to the end, want 18"},
		{"bytes behind the end", func(d []byte) []byte { return append(d, 0) }, false, "the end at byte"},
		{"a lying tensor count", set64(8, 1<<40), false, "the number of tensors at byte 0x8: got 1099511627776, want at most"},
		{"a tensor too many", set64(8, 3), false, "tensor 2: name at byte"},
		{"a tensor less", set64(8, 1), false, "the end at byte"},
		{"a lying key count", set64(16, math.MaxUint64), false, "the number of keys at byte 0x10: got 18446744073709551615"},
		{"a lying string length", set64(24, 1<<62), false, "key 0: length at byte 0x18: got 4611686018427387904, want at most"},
		{"a string length of all bits", set64(24, math.MaxUint64), false, "key 0: length at byte 0x18"},
		{"a text longer than the file", set64(56, uint64(len(good))), false, "key general.architecture: length at byte 0x38"},
		{"a string length into the next key", set64(24, 21), false, ""},
		{"an empty key", built(func(f *ggufbuild.File) { f.Keys[0].Name = "" }), false, "key 0 at byte 0x18: got an empty name"},
		{"a key twice", built(func(f *ggufbuild.File) { f.Keys[1].Name = f.Keys[0].Name }), false, "key general.architecture at byte"},
		{"a long key", built(func(f *ggufbuild.File) { f.Keys[0].Name = string(bytes.Repeat([]byte("k"), 1<<16)) }), false, "want at most 65535"},
		{"an unknown value type", set32(list, 13), false, "key list: type at byte"},
		{"an unknown element type", set32(list+4, 13), false, "key list: element type at byte"},
		{"an array of arrays", set32(list+4, 9), true, "key list: an array of arrays not supported"},
		{"a lying array length", set64(list+8, 1<<61), false, "key list: length at byte"},
		{"an array of numbers that is longer than the file", func([]byte) []byte {
			_, v := ggufbuild.Value([]uint32{1, 2})
			put64(v, 4, 1<<62+2) // times 4 it is 8 in 64 bits
			return withKey(9, v)
		}, false, "key k: length at byte"},
		{"a lying element length", set64(list+16, 1<<50), false, "key list: element 0: length at byte"},
		{"a bool of 2", func([]byte) []byte { return withKey(7, []byte{2}) }, false, "key k at byte 0x25: got 2, want 0 or 1"},
		{"a bool of 2 in a list", func([]byte) []byte { _, v := ggufbuild.Value([]bool{true}); v[12] = 2; return withKey(9, v) }, false, "key k: element 0"},
		{"an alignment of 48", built(func(f *ggufbuild.File) { f.Set("general.alignment", uint32(48)) }), false, "key general.alignment at byte"},
		{"an alignment of 0", built(func(f *ggufbuild.File) { f.Set("general.alignment", uint32(0)) }), false, "got 0 (uint32), want a power of two"},
		{"an alignment of 4", built(func(f *ggufbuild.File) { f.Set("general.alignment", uint32(4)) }), false, "got 4 (uint32)"},
		{"an alignment of another type", built(func(f *ggufbuild.File) { f.Set("general.alignment", uint64(32)) }), false, "got 32 (uint64)"},
		{"an alignment that the file doesn't have", built(func(f *ggufbuild.File) { f.Set("general.alignment", uint32(64)) }), false, "tensor second: offset"},
		{"an alignment of 2 GiB", built(func(f *ggufbuild.File) { f.Set("general.alignment", uint32(1<<31)) }), false, "tensor first at byte"},
		{"an empty name", built(func(f *ggufbuild.File) { f.Tensors[0].Name = "" }), false, "tensor 0: name at byte"},
		{"a long name", built(func(f *ggufbuild.File) { f.Tensors[0].Name = string(bytes.Repeat([]byte("n"), 65)) }), false, "want at most 64"},
		{"a name twice", built(func(f *ggufbuild.File) { f.Tensors[1].Name = "first" }), false, "tensor first at byte"},
		{"no dimensions", set32(firstDims, 0), false, "tensor first: number of dimensions at byte"},
		{"five dimensions", set32(firstDims, 5), false, "got 5, want 1 to 4"},
		{"many dimensions", set32(firstDims, math.MaxUint32), false, "got 4294967295, want 1 to 4"},
		{"a dimension of 0", set64(firstDims+4, 0), false, "tensor first: dimensions at byte"},
		{"dimensions that overflow to the right product", func(d []byte) []byte {
			put64(d, firstDims+4, 1<<32+4)
			put64(d, firstDims+12, 1<<32)
			return d
		}, false, "tensor first: dimensions at byte"},
		{"a product of 2^63", set64(firstDims+4, 1<<62), false, "tensor first: dimensions at byte"},
		{"more elements than bytes", set64(firstDims+4, 1<<40), false, "tensor first at byte"},
		{"a broken row", func(d []byte) []byte { put64(d, secondDims+4, 31); return d }, false, "tensor second: row at byte"},
		{"whole blocks that are no whole rows", built(func(f *ggufbuild.File) { f.Tensors[1].Dims = []uint64{16, 2} }), false, "got 16 elements, want whole blocks of 32, as Q4_0 has"},
		{"an unknown type", set32(secondDims+12, 99), true, "tensor second: type number 99 not supported"},
		{"a type that was taken back", set32(secondDims+12, 4), true, "tensor second: type number 4 not supported"},
		{"a negative offset", set64(secondDims+16, math.MaxUint64), false, "tensor second: offset at byte"},
		{"an offset behind the end", set64(secondDims+16, 1<<62), false, "tensor second: offset at byte"},
		{"an offset out of line", set64(secondDims+16, 33), false, "got 33, want 32"},
		{"an overlap", set64(secondDims+16, 0), false, "got 0, want 32"},
		{"a hole", built(func(f *ggufbuild.File) { f.Tensors[0].Data = make([]byte, 64) }), false, "tensor second: offset"},
		{"infos out of order", func(d []byte) []byte {
			infos := slices.Concat(
				ggufbuild.Info("second", []uint64{32}, 2, 32),
				ggufbuild.Info("first", []uint64{4, 2}, 0, 0))
			copy(d[first-8:], infos)
			return d
		}, false, "tensor second: offset at byte"},
		{"another type than the bytes are of", set32(firstDims+20, 28), false, "tensor second: offset"},
	}
}

func TestHostileFilesAreRefused(t *testing.T) {
	for version := range map[uint32]bool{2: true, 3: true} {
		f := small()
		f.Version = version
		_, err := open(f.Bytes())
		require.NoError(t, err, "the file that the others are made from")
	}
	for _, c := range hostileFiles(t) {
		t.Run(c.name, func(t *testing.T) {
			data := c.change(small().Bytes())
			_, err := open(data)
			if c.unsupported {
				var unsupported *engine.UnsupportedError
				require.ErrorAs(t, err, &unsupported)
			} else {
				var broken *gguf.FormatError
				require.ErrorAs(t, err, &broken)
				require.Equal(t, testFile, broken.File)
				require.LessOrEqual(t, broken.Offset, int64(len(data)))
			}
			require.ErrorContains(t, err, testFile)
			require.ErrorContains(t, err, c.text)
		})
	}
}

// TestPaddingOfTheLastTensorMayBeMissing: writers differ.
func TestPaddingOfTheLastTensorMayBeMissing(t *testing.T) {
	good := small().Bytes()
	for cut := range 15 {
		f, err := open(good[:len(good)-cut])
		require.NoError(t, err, "%d bytes less", cut)
		got := make([]float32, 32)
		require.NoError(t, f.Float32s("second", got))
		// 0x2121 as a half is 2^-7 * (1 + 0x121/1024); the nibbles are 1 and 2.
		d := float32(math.Ldexp(1+0x121/1024.0, -7))
		require.Equal(t, d*(1-8), got[0])
		require.Equal(t, d*(2-8), got[31])
	}
}

// TestEveryPrefixIsRefused: no length of a file makes the reader run off its end.
func TestEveryPrefixIsRefused(t *testing.T) {
	good := small().Bytes()
	for n := range len(good) - 14 {
		_, err := open(good[:n])
		var broken *gguf.FormatError
		require.ErrorAs(t, err, &broken, "%d bytes", n)
	}
}
