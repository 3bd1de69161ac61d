package dumpfmt

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Written by numpy 2.4.6: np.save, np.savez and np.savez_compressed of
// float32 [[1, -2.5, 0.25], [3, NaN, -0]] (in the archives as w) and, stored as v, [0, 1].
const (
	npyHex = "934e554d5059010076007b276465736372273a20273c6634272c2027666f727472616e5f6f72646572273a2046616c7365" +
		"2c20277368617065273a2028322c2033292c207d20202020202020202020202020202020202020202020202020202020" +
		"2020202020202020202020202020202020202020202020202020202020200a0000803f000020c00000803e0000404000" +
		"00c07f00000080"
	npzHex = "504b03042d000000000000002100d1bc68c4ffffffffffffffff05001400772e6e7079010010009800000000000000980000000000" +
		"0000" + npyHex + "504b03042d000000000000002100f3055321ffffffffffffffff05001400762e6e70790100100088000000" +
		"000000008800000000000000934e554d5059010076007b276465736372273a20273c6634272c2027666f727472616e5f6f7264" +
		"6572273a2046616c73652c20277368617065273a2028322c292c207d2020202020202020202020202020202020202020202020" +
		"202020202020202020202020202020202020202020202020202020202020202020202020200a000000000000803f504b01022d03" +
		"2d000000000000002100d1bc68c49800000098000000050000000000000000000000800100000000772e6e7079504b01022d032d" +
		"000000000000002100f305532188000000880000000500000000000000000000008001cf000000762e6e7079504b050600000000" +
		"02000200660000008e0100000000"
	npzDeflatedHex = "504b03042d000000080000002100d1bc68c4ffffffffffffffff05001400772e6e70790100100098000000000000005c" +
		"000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9366a2aea3a09e965f54529498179f5f94920a12774bcc" +
		"294e058a17672416a402f91a463a0ac69a3a0ab50a64032e0686067b0606850340da8e81c1c18181e1403d03900300504b01022d" +
		"032d000000080000002100d1bc68c45c00000098000000050000000000000000000000800100000000772e6e7079504b05060000" +
		"00000100010033000000930000000000"
)

func openNPYBytes(p []byte) error {
	_, err := NewNPY(bytes.NewReader(p), int64(len(p)), testFile)
	return err
}

func wantTensor(t *testing.T, r Float32Reader) {
	t.Helper()
	got := make([]float32, 10)
	n, err := r.ReadValues(got, 1)
	require.NoError(t, err)
	if want := []float32{-2.5, 0.25, 3, float32(math.NaN()), float32(math.Copysign(0, -1))}; !sameBits(got[:n], want) || r.Len() != 6 {
		t.Errorf("got %v of %d, want %v of 6", got[:n], r.Len(), want)
	}
	_, err = r.ReadValues(got, 6)
	require.ErrorIs(t, err, io.EOF)
	_, err = r.ReadValues(got, 7)
	wantUsage(t, err)
}

func TestNPYRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), testFile)
	require.NoError(t, os.WriteFile(path, unhex(t, npyHex), 0o600))
	d, err := OpenNPY(path)
	require.NoError(t, err)
	defer d.Close()
	require.Equal(t, []int{2, 3}, d.Shape())
	require.Equal(t, path, d.File())
	wantTensor(t, d)
}

// npy builds a file of a version from a header and n bytes of data.
func npy(version byte, header string, n int) []byte {
	head := append([]byte(npyMagic), version, 0, byte(len(header)), byte(len(header)>>8))
	if version > 1 {
		head = append(head, 0, 0)
	}
	return append(append(head, header...), make([]byte, n)...)
}

func TestNPYAccepted(t *testing.T) {
	for name, data := range map[string][]byte{
		"scalar":                npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (), }\n", 4),
		"a vector":              npy(2, "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }\n", 12),
		"empty":                 npy(3, "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 7), }   \n", 0),
		"tight, another order":  npy(1, "{\"shape\":(2,1),'fortran_order':False,\"descr\":\"<f4\"}\n", 8),
		"commas everywhere":     npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1,),}\n", 4),
		"no dimension but one":  npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}\n", 4),
		"tabs between the keys": npy(1, "{'descr':\t'<f4',\t'fortran_order': False, 'shape': (1,)}\n", 4),
	} {
		assert.NoError(t, openNPYBytes(data), name)
	}
}

func TestNPYRefused(t *testing.T) {
	head := func(s string) []byte { return npy(1, s, 4) }
	const d, f, s = "'descr': '<f4'", "'fortran_order': False", "'shape': (1,)"
	for _, tc := range []struct {
		name string
		data []byte
		want string
	}{
		{"another magic", append([]byte("\x93NUMPZ"), make([]byte, 9)...), "magic at byte 0x0: got 93 4E 55 4D 50 5A, want 93 4E 55 4D 50 59"},
		{"a header of 65535 bytes", func() []byte { p := head("{}"); p[8], p[9] = 255, 255; return p }(), "6 of 65535 bytes after byte 0xA (header)"},
		{"a header of 4 GiB", func() []byte { p := npy(2, "{}", 0); copy(p[8:], "\xff\xff\xff\xff"); return p }(), "2 of 4294967295 bytes after byte 0xC"},
		{"a long header", func() []byte {
			p := append(npy(2, "", 0), make([]byte, 1<<16)...)
			p[10] = 1
			return p
		}(), "header length at byte 0x8: got 65536, want at most 65535"},
		{"no dict", head("[]\n"), "header at byte 0xA: got '[', want '{'"},
		{"a key twice", head("{" + d + "," + d + "," + f + "," + s + "}\n"), `key "descr" twice at byte 0x1A`},
		{"an unknown key", head("{" + d + "," + f + "," + s + ",'x': 1}\n"), `key "x" at byte`},
		{"no shape", head("{" + d + "," + f + "}\n"), "header without shape"},
		{"no colon", head("{'descr' '<f4'}\n"), "after key \"descr\" at byte 0x13"},
		{"a negative size", head("{" + d + "," + f + ",'shape': (-1,)}\n"), "shape[0] at byte"},
		{"a number for a tuple", head("{" + d + "," + f + ",'shape': (1)}\n"), "after shape[0] at byte"},
		{"a size beyond int64", head("{" + d + "," + f + ",'shape': (9223372036854775808,)}\n"), "shape[0] at byte"},
		{"an overflowing product", head("{" + d + "," + f + ",'shape': (4294967296, 4294967296)}\n"), "want a product below 2^63 bytes"},
		{"an overflow beside a zero", head("{" + d + "," + f + ",'shape': (0, 4294967296, 4294967296)}\n"), "want a product below 2^63 bytes"},
		{"a value too few", npy(1, "{"+d+","+f+",'shape': (2,)}\n", 7), "7 of 8 bytes after byte 0x40 (float32 [2])"},
		{"a byte too many", npy(1, "{"+d+","+f+",'shape': (2,)}\n", 9), "end of file at byte 0x48: got 1 trailing bytes, want none"},
		{"no line feed", head("{" + d + "," + f + "," + s + "}"), "after the header at byte"},
		{"text after the dict", head("{" + d + "," + f + "," + s + "} x\n"), "after the header at byte"},
		{"an escape", head("{'d\\x65scr': '<f4'}\n"), "key at byte 0xD"},
		{"an open string", head("{'descr"), "key at byte 0x11: got the end, want a closing quote"},
		{"an order that is none", head("{" + d + ",'fortran_order': 0}\n"), "fortran_order at byte"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if e := brokenAt(t, openNPYBytes(tc.data), len(tc.data)); !strings.Contains(e.Error(), tc.want) {
				t.Errorf("got %v, want %q", e, tc.want)
			}
		})
	}
	for name, data := range map[string][]byte{
		"big endian":       head("{'descr': '>f4', " + f + ", " + s + "}\n"),
		"float64":          head("{'descr': '<f8', " + f + ", " + s + "}\n"),
		"a structure":      head("{'descr': [('a', '<f4')], " + f + ", " + s + "}\n"),
		"columns first":    head("{" + d + ", 'fortran_order': True, " + s + "}\n"),
		"a future version": npy(4, "{}", 0),
	} {
		var un *UnsupportedError
		assert.ErrorAs(t, openNPYBytes(data), &un, name)
	}
}

func TestNPZRead(t *testing.T) {
	for name, data := range map[string][]byte{"stored": unhex(t, npzHex), "deflated": unhex(t, npzDeflatedHex)} {
		path := filepath.Join(t.TempDir(), testFile)
		require.NoError(t, os.WriteFile(path, data, 0o600))
		d, err := OpenNPZ(path)
		require.NoError(t, err, name)
		w, err := d.Float32s("w")
		require.NoError(t, err, name)
		require.Equal(t, []int{2, 3}, w.Shape())
		require.Equal(t, path+"#w", w.File())
		wantTensor(t, w)
		require.True(t, d.Has("w"))
		require.False(t, d.Has("w.npy"))
		_, err = d.Float32s("nothing")
		wantUsage(t, err)
		require.NoError(t, d.Close())
	}
	d, err := NewNPZ(bytes.NewReader(unhex(t, npzHex)), int64(len(npzHex)/2), testFile)
	require.NoError(t, err)
	require.Equal(t, []string{"w", "v"}, d.Names())
}

// Every byte of an archive that matters is covered by a check: a changed one is
// refused, or changes nothing that was read.
func TestNPZWithOneByteChanged(t *testing.T) {
	for name, good := range map[string][]byte{"stored": unhex(t, npzHex), "deflated": unhex(t, npzDeflatedHex)} {
		refusals := 0
		for at := range good {
			data := bytes.Clone(good)
			data[at] ^= 0x55
			d, err := NewNPZ(bytes.NewReader(data), int64(len(data)), testFile)
			if err != nil {
				refusals++
				continue
			}
			w, err := d.Float32s("w")
			var usage *UsageError
			if err != nil && (errors.As(err, &usage) || strings.Contains(err.Error(), testFile)) {
				refusals++
				continue
			}
			require.NoError(t, err)
			wantTensor(t, w)
		}
		require.Greater(t, refusals, 140, name)
	}
}

func TestNPZRefused(t *testing.T) {
	archive := func(build func(w *zip.Writer)) []byte {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		build(w)
		require.NoError(t, w.Close())
		return b.Bytes()
	}
	open := func(data []byte, name string) error {
		d, err := NewNPZ(bytes.NewReader(data), int64(len(data)), testFile)
		if err != nil {
			return err
		}
		_, err = d.Float32s(name)
		return err
	}
	for _, tc := range []struct {
		name string
		data []byte
		want string
	}{
		{"no archive", []byte("PK nothing of the kind, but as long as an end record"), "archive"},
		{"a member of another kind", archive(func(w *zip.Writer) { _, _ = w.Create("w.txt") }), `member: got "w.txt", want names that end in .npy`},
		{"a name twice", archive(func(w *zip.Writer) { _, _ = w.Create("w.npy"); _, _ = w.Create("w.npy") }), `"w.npy" twice`},
		{"a member that is no array", archive(func(w *zip.Writer) { f, _ := w.Create("w.npy"); _, _ = f.Write([]byte("nothing")) }), testFile + "#w: 7 of 10 bytes after byte 0x0"},
		{"a bomb's declaration", archive(func(w *zip.Writer) {
			_, _ = w.CreateRaw(&zip.FileHeader{Name: "w.npy", Method: zip.Deflate, CompressedSize64: 0, UncompressedSize64: 1 << 40})
		}), "1099511627776 bytes as 0"},
		{"a stored member beyond the end", archive(func(w *zip.Writer) {
			_, _ = w.CreateRaw(&zip.FileHeader{Name: "w.npy", Method: zip.Store, CompressedSize64: 1 << 40, UncompressedSize64: 1 << 40})
		}), "1099511627776 bytes as 1099511627776"},
		{"a stored member of two sizes", archive(func(w *zip.Writer) {
			_, _ = w.CreateRaw(&zip.FileHeader{Name: "w.npy", Method: zip.Store, CompressedSize64: 0, UncompressedSize64: 4})
		}), "4 bytes as 0"},
	} {
		err := open(tc.data, "w")
		var e *FormatError
		if assert.ErrorAs(t, err, &e, tc.name) {
			assert.Contains(t, err.Error(), tc.want, tc.name)
		}
	}
	var un *UnsupportedError
	assert.ErrorAs(t, open(archive(func(w *zip.Writer) { _, _ = w.CreateRaw(&zip.FileHeader{Name: "w.npy", Method: 99}) }), "w"), &un)
	assert.ErrorAs(t, open(archive(func(w *zip.Writer) { _, _ = w.CreateRaw(&zip.FileHeader{Name: "w.npy", Flags: 1}) }), "w"), &un)
}

func TestRawSizes(t *testing.T) {
	dir := t.TempDir()
	var buf RawBuffer
	for size, want := range map[int]string{
		0:  "0 of 12 bytes after byte 0x0",
		11: "11 of 12 bytes after byte 0x0",
		12: "",
		13: "end of file at byte 0xC: got 1 trailing bytes, want none",
		16: "end of file at byte 0xC: got 4 trailing bytes, want none",
	} {
		path := filepath.Join(dir, fmt.Sprint(size))
		require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte{0, 0, 0x80, 0x3f}, 4)[:size], 0o600))
		d, err := OpenRaw(path, 3)
		values, err2 := buf.Read(path, 3)
		if want == "" {
			require.NoError(t, err)
			require.NoError(t, err2)
			require.Equal(t, []float32{1, 1, 1}, values)
			got := make([]float32, 5)
			n, err := d.ReadValues(got, 1)
			require.NoError(t, err)
			require.Equal(t, []float32{1, 1}, got[:n])
			require.EqualValues(t, 3, d.Len())
			require.NoError(t, d.Close())
			continue
		}
		for _, err := range []error{err, err2} {
			var s *SizeError
			var f *FormatError
			require.ErrorAs(t, err, &s)
			require.ErrorAs(t, err, &f)
			require.Equal(t, SizeError{File: path, Want: 12, Got: int64(size)}, *s)
			require.EqualError(t, err, "dumpfmt: float32 file "+path+": "+want)
		}
	}
	_, err := OpenRaw(filepath.Join(dir, "12"), -1)
	wantUsage(t, err)
	_, err = buf.Read(filepath.Join(dir, "12"), -1)
	wantUsage(t, err)
	_, err = NewRaw(bytes.NewReader(nil), 0, testFile, math.MaxInt64)
	wantUsage(t, err)
}

// A lying length costs nothing: the size is checked first.
func TestRawBufferAllocatesWhatIsThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), testFile)
	require.NoError(t, os.WriteFile(path, make([]byte, 8), 0o600))
	var buf RawBuffer
	_, err := buf.Read(path, 1<<50)
	var s *SizeError
	require.ErrorAs(t, err, &s)
	_, err = buf.Read(path, 2)
	require.NoError(t, err)
	allocs := testing.AllocsPerRun(10, func() { _, _ = buf.Read(path, 2) })
	require.LessOrEqual(t, allocs, 8.0)
}

func FuzzNPY(f *testing.F) {
	good := unhex(f, npyHex)
	f.Add(good)
	f.Add(good[:130])
	f.Add(npy(2, "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }\n", 4))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := NewNPY(bytes.NewReader(data), int64(len(data)), testFile)
		if err != nil {
			refused(t, err)
			return
		}
		n := 1
		for _, s := range d.Shape() {
			n *= s
		}
		if int64(n) != d.Len() || 4*n > len(data) {
			t.Fatalf("%d values of shape %v in %d bytes", d.Len(), d.Shape(), len(data))
		}
		got := make([]float32, n)
		if k, err := d.ReadValues(got, 0); n > 0 && (err != nil || k != n || !bytes.Equal(bytesOf(got), data[len(data)-4*n:])) {
			t.Fatalf("read %d of %d: %v", k, n, err)
		}
	})
}

func FuzzNPZ(f *testing.F) {
	f.Add(unhex(f, npzHex))
	f.Add(unhex(f, npzDeflatedHex))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := NewNPZ(bytes.NewReader(data), int64(len(data)), testFile)
		if err != nil {
			refused(t, err)
			return
		}
		for _, name := range d.Names() {
			w, err := d.Float32s(name)
			if err != nil {
				if !strings.Contains(err.Error(), testFile) {
					t.Fatalf("%v doesn't name the file", err)
				}
				continue
			}
			if w.Len() > int64(len(data))*deflateFactor {
				t.Fatalf("%d values in %d bytes", w.Len(), len(data))
			}
		}
	})
}

func FuzzRaw(f *testing.F) {
	f.Add([]byte{0, 0, 0x80, 0x3f}, int64(1))
	f.Add([]byte{0}, int64(1))
	f.Add([]byte{}, int64(1)<<62)
	f.Fuzz(func(t *testing.T, data []byte, count int64) {
		d, err := NewRaw(bytes.NewReader(data), int64(len(data)), testFile, count)
		var usage *UsageError
		switch {
		case errors.As(err, &usage):
			if count >= 0 && count <= maxRawCount {
				t.Fatal(err)
			}
		case err != nil:
			refused(t, err)
			if int64(len(data)) == 4*count {
				t.Fatal(err)
			}
		default:
			got := make([]float32, count)
			if _, err := d.ReadValues(got, 0); count > 0 && err != nil || !bytes.Equal(bytesOf(got), data) {
				t.Fatalf("got %v, %v, want % X", got, err, data)
			}
		}
	})
}
