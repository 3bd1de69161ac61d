package dumpfmt

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"
)

// The bytes of these files come from numpy (tobytes of '<u8', '<f4', '<i8',
// 'i1' and '<i4' arrays), not from our writers. The fingerprint is that of
// "foobar" in the FNV reference's test vectors.
const (
	// [[1, -2.5, +Inf], [3e-41, NaN, -0]]
	floatLayersHex = "02000000000000000300000000000000e86739f7714194850100000000000000" +
		"0000803f000020c00000807fa15300000000c07f00000080"
	// (2014482168, -38): [127, -128, 1]; (2^30, -36): [0, -1, 64]
	int8LayersHex = "02000000000000000300000000000000e86739f7714194850100000000000000" +
		"f88e127800000000daffffffffffffff7f8001" + "0000004000000000dcffffffffffffff00ff40"
	// [[1, -1], [0.5, 3e38]]
	floatLogitsHex = "020000000000000002000000000000000000803f000080bf0000003fe6b1617f"
	// [[1, -1], [2^31-1, -2^31]]
	int32LogitsHex = "0200000000000000020000000000000001000000ffffffffffffff7f00000080"
	emptyLogitsHex = "00000000000000000000000000000000"

	foobarFingerprint = 0x85944171f73967e8
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// patched returns data with the u64 at off replaced.
func patched(data []byte, off int, v uint64) []byte {
	data = bytes.Clone(data)
	binary.LittleEndian.PutUint64(data[off:], v)
	return data
}

// format is one reader, for the tests that hold for all of them.
type format struct {
	name string
	good []byte
	// open reads the whole of data under the name "x.bin".
	open func(data []byte) error
}

const testFile = "x.bin"

func openFloatLayers(p []byte) error {
	_, err := NewFloatLayers(bytes.NewReader(p), int64(len(p)), testFile)
	return err
}

func openInt8Layers(p []byte) error {
	d, err := NewInt8Layers(bytes.NewReader(p), int64(len(p)), testFile)
	if err != nil {
		return err
	}
	return d.CheckScales()
}

func openFloatLogits(p []byte) error {
	_, err := NewFloatLogits(bytes.NewReader(p), int64(len(p)), testFile)
	return err
}

func openInt32Logits(p []byte) error {
	_, err := NewInt32Logits(bytes.NewReader(p), int64(len(p)), testFile)
	return err
}

func openSafetensorsBytes(p []byte) error {
	_, err := NewSafetensors(bytes.NewReader(p), int64(len(p)), testFile)
	return err
}

func formats(t testing.TB) []format {
	return []format{
		{"float layers", unhex(t, floatLayersHex), openFloatLayers},
		{"int8 layers", unhex(t, int8LayersHex), openInt8Layers},
		{"float logits", unhex(t, floatLogitsHex), openFloatLogits},
		{"float logits, no rows", unhex(t, emptyLogitsHex), openFloatLogits},
		{"int32 logits", unhex(t, int32LogitsHex), openInt32Logits},
		{"int32 logits, no rows", unhex(t, emptyLogitsHex), openInt32Logits},
		{"safetensors", unhex(t, safetensorsHex), openSafetensorsBytes},
		{"npy", unhex(t, npyHex), openNPYBytes},
		{"engine file", []byte(`{"name": "e", "layers": "f32", "version": "1", "x": [true, null, {"y": -1.5e3}]}`), func(p []byte) error {
			_, err := parseEngineFile(testFile, p)
			return err
		}},
		{"case file", []byte(`{"text": "a\u00e9\ud83d\ude00é", "token_ids": [1, 20], "output_ids": [], "z": false}`), func(p []byte) error {
			_, err := parseCaseFile(testFile, p)
			return err
		}},
	}
}

// brokenAt demands a *FormatError that names the file, with an offset in
// [0, size], and returns it.
func brokenAt(t *testing.T, err error, size int) *FormatError {
	t.Helper()
	var e *FormatError
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a *FormatError", err)
	}
	if e.File != testFile || !strings.Contains(err.Error(), testFile) {
		t.Fatalf("%v does not name %s", err, testFile)
	}
	if e.Offset < 0 || e.Offset > int64(size) || !strings.Contains(err.Error(), "byte 0x") {
		t.Fatalf("%v: got offset %d, want one within %d bytes", err, e.Offset, size)
	}
	return e
}

func TestTruncationAtEveryByte(t *testing.T) {
	for _, f := range formats(t) {
		t.Run(f.name, func(t *testing.T) {
			if err := f.open(f.good); err != nil {
				t.Fatalf("the whole file: %v", err)
			}
			for n := range f.good {
				brokenAt(t, f.open(f.good[:n]), n)
			}
		})
	}
}

func TestTruncationOfFilesOnDisk(t *testing.T) {
	dir := t.TempDir()
	for i, f := range formats(t)[:7] {
		path := filepath.Join(dir, string(rune('a'+i))+".bin")
		if err := WriteFile(path, f.good[:len(f.good)-1], WriteOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, open := range []func(string) error{
			func(p string) error { return closing(OpenFloatLayers(p)) },
			func(p string) error { return closing(OpenInt8Layers(p)) },
			func(p string) error { return closing(OpenFloatLogits(p)) },
			func(p string) error { return closing(OpenInt32Logits(p)) },
			func(p string) error { return closing(OpenSafetensors(p)) },
		} {
			var e *FormatError
			if err := open(path); !errors.As(err, &e) || e.File != path {
				t.Errorf("%s cut by a byte: got %v, want a *FormatError of %s", f.name, err, path)
			}
		}
	}
}

func sameBits(a, b []float32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return false
		}
	}
	return true
}

// Where memory is big-endian, values are swapped after they were read.
func TestSwap4(t *testing.T) {
	p := []byte{1, 2, 3, 4, 5, 6, 7, 8, 9}
	swap4(p)
	if want := []byte{4, 3, 2, 1, 8, 7, 6, 5, 9}; !bytes.Equal(p, want) {
		t.Errorf("got %v, want %v", p, want)
	}
}

func TestBytesOfIsMemory(t *testing.T) {
	v := []float32{1, 2}
	p := bytesOf(v)
	p[3] ^= 0x80 // the sign on little-endian machines
	if littleEndian && v[0] != -1 || len(p) != 8 || bytesOf([]int8{}) != nil {
		t.Errorf("got %v and %d bytes, want -1 and 8", v, len(p))
	}
}
