package dumpfmt

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Two rows of three values, [1.5, -2, 1.5] and [-0, 0, -max], with prefix hashes 00 01
// … 1f and ff fe … e0, as Python's struct and hashlib give them.
const (
	targetHex = "686632712d65786163742d746561636865722d746172676574732d763100" +
		"524f573100000000000000000300000000000000000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f0c00000000000000" +
		"0000c03f000000c00000c03f" +
		"524f573101000000000000000300000000000000fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0efeeedecebeae9e8e7e6e5e4e3e2e1e00c00000000000000" +
		"0000008000000000ffff7fff"
	targetSHA256 = "6312074316ceea657206c94881134134d4eb70a4d8f050f4fd25596b839156f4"
)

var (
	targetRows = [][]float32{{1.5, -2, 1.5}, {float32(math.Copysign(0, -1)), 0, -math.MaxFloat32}}
	smallSpec  = TargetSpec{Vocab: 3, Prefixes: smallPrefixes()}
)

func smallPrefixes() [][32]byte {
	p := make([][32]byte, 2)
	for i := range 32 {
		p[0][i], p[1][i] = byte(i), byte(255-i)
	}
	return p
}

// verify streams data, and returns the argmax of every row.
func verify(t testing.TB, data []byte, spec TargetSpec) (TargetSum, []int, error) {
	t.Helper()
	ids := []int{}
	sum, err := VerifyTargetReader(context.Background(), bytes.NewReader(data), int64(len(data)), testFile, spec, func(row, id int) {
		require.Equal(t, len(ids), row)
		ids = append(ids, id)
	})
	return sum, ids, err
}

func writeTarget(path string, o WriteOptions) (TargetSum, error) {
	w, err := createTarget(path, smallSpec, o)
	if err != nil {
		return TargetSum{}, err
	}
	defer func() { _ = w.Abort() }()
	for i, row := range targetRows {
		if err := w.WriteRow(i, row); err != nil {
			return TargetSum{}, err
		}
	}
	return w.Commit()
}

// writeBoth writes the target at path, and beside it a file with its hash.
func writeBoth(path string, o WriteOptions, step func(string)) error {
	o.step = func(s string) { step("target: " + s) }
	w, err := createTarget(path, smallSpec, o)
	if err != nil {
		return err
	}
	defer func() { _ = w.Abort() }()
	o.step = func(s string) { step("beside: " + s) }
	beside, err := Create(path+".json", o)
	if err != nil {
		return err
	}
	defer func() { _ = beside.Abort() }()
	for i, row := range targetRows {
		if err := w.WriteRow(i, row); err != nil {
			return err
		}
	}
	return w.CommitWith(beside, func(sum TargetSum) ([]byte, error) { return []byte(hex.EncodeToString(sum.SHA256[:])), nil })
}

// Whatever ends it, two files that belong together are both there or neither.
func TestTargetCommitWithLeavesBothOrNeither(t *testing.T) {
	for _, named := range []bool{false, true} {
		dir := t.TempDir()
		path := filepath.Join(dir, "target.bin")
		for _, name := range []string{path, path + ".json"} {
			appear := func(step string) {
				if step == "beside: sync" {
					require.NoError(t, os.WriteFile(name, []byte("theirs"), 0o600))
				}
			}
			require.ErrorIs(t, writeBoth(path, WriteOptions{named: named}, appear), fs.ErrExist)
			wantFile(t, name, []byte("theirs"))
			require.NoError(t, os.Remove(name))
			wantEmpty(t, dir)
		}
		w, err := createTarget(path, TargetSpec{Vocab: 1}, WriteOptions{named: named})
		require.NoError(t, err)
		beside, err := Create(path+".json", WriteOptions{named: named})
		require.NoError(t, err)
		no := errors.New("no text")
		require.ErrorIs(t, w.CommitWith(beside, func(TargetSum) ([]byte, error) { return nil, no }), no)
		wantEmpty(t, dir)
		require.NoError(t, writeBoth(path, WriteOptions{named: named}, func(string) {}))
		wantFile(t, path, unhex(t, targetHex))
		wantFile(t, path+".json", []byte(targetSHA256))
	}
}

func TestTargetIsWhatPythonWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made", "as the script does", "target.bin")
	sum, err := writeTarget(path, WriteOptions{})
	require.NoError(t, err)
	wantFile(t, path, unhex(t, targetHex))
	require.Equal(t, int64(174), sum.Bytes)
	require.Equal(t, targetSHA256, hex.EncodeToString(sum.SHA256[:]))
	st, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), st.Mode())
	_, err = writeTarget(path, WriteOptions{Overwrite: true}) // of no use here
	require.ErrorIs(t, err, fs.ErrExist)
	wantFile(t, path, unhex(t, targetHex))

	read, err := VerifyTarget(t.Context(), path, smallSpec, nil)
	require.NoError(t, err)
	require.Equal(t, sum, read)
}

func TestTargetReader(t *testing.T) {
	data := unhex(t, targetHex)
	path := filepath.Join(t.TempDir(), "target.bin")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	d, err := OpenTarget(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	require.Equal(t, [2]int{2, 3}, [2]int{d.Rows(), d.Vocab()})
	require.Equal(t, path, d.File())
	row := make([]float32, 3)
	for i, want := range targetRows {
		require.NoError(t, d.Row(i, row))
		for j := range want {
			if math.Float32bits(row[j]) != math.Float32bits(want[j]) {
				t.Errorf("row %d value %d: got %v, want %v", i, j, row[j], want[j])
			}
		}
		prefix, err := d.Prefix(i)
		require.NoError(t, err)
		require.Equal(t, smallSpec.Prefixes[i], prefix)
	}
	var usage *UsageError
	require.ErrorAs(t, d.Row(2, row), &usage)
	require.ErrorAs(t, d.Row(0, row[:2]), &usage)
	_, err = d.Prefix(-1)
	require.ErrorAs(t, err, &usage)
	empty, err := NewTarget(bytes.NewReader(data[:30]), 30, testFile)
	require.NoError(t, err)
	require.Equal(t, [2]int{0, 0}, [2]int{empty.Rows(), empty.Vocab()})
}

// The lowest index wins: 1.5 twice, and -0, which equals 0.
func TestVerifyTargetArgmax(t *testing.T) {
	sum, ids, err := verify(t, unhex(t, targetHex), smallSpec)
	require.NoError(t, err)
	require.Equal(t, []int{0, 0}, ids)
	require.Equal(t, targetSHA256, hex.EncodeToString(sum.SHA256[:]))
}

func TestTargetCutAnywhere(t *testing.T) {
	data := unhex(t, targetHex)
	for n := range len(data) {
		_, _, err := verify(t, data[:n], smallSpec)
		var f *FormatError
		require.ErrorAs(t, err, &f, "%d bytes", n)
		require.Equal(t, int64(n), f.Offset, "the first missing byte: %v", err)
		require.Contains(t, err.Error(), strings.Replace(fmt.Sprintf("want %d bytes more", len(data)-n), "want 1 bytes", "want 1 byte", 1))
		d, err := NewTarget(bytes.NewReader(data[:n]), int64(n), testFile)
		if n == 30 || n == 30+72 { // whole, only not the plan's
			require.NoError(t, err)
			require.Equal(t, (n-30)/72, d.Rows())
			continue
		}
		require.ErrorAs(t, err, &f, "%d bytes", n)
	}
	_, _, err := verify(t, append(bytes.Clone(data), 7), smallSpec)
	require.EqualError(t, err, "dumpfmt: target file x.bin: end of file at byte 0xAE: got 1 trailing bytes, want none after 174 bytes")
	_, err = NewTarget(bytes.NewReader(append(bytes.Clone(data), 7)), 175, testFile)
	require.ErrorContains(t, err, "1 of 60 bytes after byte 0xAE (frame of row 2)")
}

// Every bit of the framing counts, and the error names its byte; a bit of a value
// changes the hash, or makes it no number.
func TestTargetFlippedAnywhere(t *testing.T) {
	good := unhex(t, targetHex)
	framing := func(at int) bool { return at < 30 || (at-30)%72 < 60 }
	for at := range good {
		for bit := range 8 {
			data := bytes.Clone(good)
			data[at] ^= 1 << bit
			sum, _, err := verify(t, data, smallSpec)
			var f *FormatError
			switch {
			case framing(at):
				require.ErrorAs(t, err, &f, "byte %d", at)
				require.Equal(t, int64(at), f.Offset)
				require.Equal(t, fmt.Sprintf("0x%02X", data[at]), f.Got)
				require.Equal(t, fmt.Sprintf("0x%02X", good[at]), f.Want)
			case err != nil:
				require.ErrorAs(t, err, &f)
				require.Equal(t, int64(at)/4*4+2-4*b2i(at%4 < 2), f.Offset, "the value at byte %d", at)
				require.Equal(t, "a finite value", f.Want)
			default:
				require.NotEqual(t, targetSHA256, hex.EncodeToString(sum.SHA256[:]))
			}
		}
	}
}

func b2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func TestTargetErrorsSayWhere(t *testing.T) {
	good := unhex(t, targetHex)
	for _, c := range []struct {
		at   int
		b    []byte
		want string
	}{
		{3, []byte("Q"), `magic at byte 0x3: got 0x51, want 0x71 (want "hf2q-exact-teacher-targets-v1\x00")`},
		{102, []byte("ROW2"), `row 1: row magic at byte 0x69: got 0x32, want 0x31 (got "ROW2", want "ROW1")`},
		{106, []byte{0}, `row 1: point ordinal at byte 0x6A: got 0x00, want 0x01 (got 0, want 1)`},
		{115, []byte{1}, `row 1: vocabulary at byte 0x73: got 0x01, want 0x00 (got 259, want 3)`},
		{50, []byte{9}, `row 0: prefix hash at byte 0x32: got 0x09, want 0x00 (got 09`},
		{82, []byte{13}, `row 0: payload length at byte 0x52: got 0x0D, want 0x0C (got 13, want 12)`},
		{94, []byte{0, 0, 0xc0, 0x7f}, `row 0: value 1 at byte 0x5E: got NaN, want a finite value`},
		{170, []byte{0, 0, 0x80, 0xff}, `row 1: value 2 at byte 0xAA: got -Inf, want a finite value`},
	} {
		data := bytes.Clone(good)
		copy(data[c.at:], c.b)
		_, _, err := verify(t, data, smallSpec)
		require.ErrorContains(t, err, "dumpfmt: target file x.bin: "+c.want)
	}
	// Of two faults the first is told.
	data := bytes.Clone(good)
	copy(data[94:], []byte{0, 0, 0xc0, 0x7f})
	_, _, err := verify(t, data[:110], smallSpec)
	require.ErrorContains(t, err, "row 0: value 1 at byte 0x5E")
}

// Rows that cross the pieces in which a file is read, and end with one.
func TestVerifyTargetOfManyPieces(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, vocab := range []int{targetChunk/4 - 15, targetChunk/4 - 14, 3*targetChunk/4 + 5} {
		spec := TargetSpec{Vocab: vocab, Prefixes: make([][32]byte, 3)}
		path := filepath.Join(t.TempDir(), "target.bin")
		w, err := CreateTarget(path, spec)
		require.NoError(t, err)
		row := make([]float32, vocab)
		var want []int
		for i := range spec.Prefixes {
			best := 0
			for j := range row {
				row[j] = float32(r.NormFloat64())
				if row[j] > row[best] {
					best = j
				}
			}
			want = append(want, best)
			require.NoError(t, w.WriteRow(i, row))
		}
		sum, err := w.Commit()
		require.NoError(t, err)
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, sha256.Sum256(data), sum.SHA256)
		got, ids, err := verify(t, data, spec)
		require.NoError(t, err)
		require.Equal(t, sum, got)
		require.Equal(t, want, ids)
		for _, at := range []int{targetChunk, targetChunk + 30, targetChunk + 31, 2*targetChunk + 29, len(data) - 1} {
			_, _, err := verify(t, data[:at], spec)
			require.ErrorContains(t, err, fmt.Sprintf("end of file at byte 0x%X: ", at))
		}
		last := len(data) - 1
		data[last-1], data[last] = 0x80, 0x7f
		_, _, err = verify(t, data, spec)
		require.ErrorContains(t, err, fmt.Sprintf("row 2: value %d at byte 0x%X", vocab-1, last-3))
	}
}

func TestTargetWriterRefuses(t *testing.T) {
	for what, c := range map[string]struct {
		write func(w *TargetWriter) error
		want  string
	}{
		"a repeated ordinal": {func(w *TargetWriter) error {
			return errors.Join(w.WriteRow(0, targetRows[0]), w.WriteRow(0, targetRows[0]))
		}, "point ordinal: got 0, want 1"},
		"a skipped ordinal": {func(w *TargetWriter) error { return w.WriteRow(1, targetRows[0]) }, "point ordinal: got 1, want 0"},
		"a short row":       {func(w *TargetWriter) error { return w.WriteRow(0, targetRows[0][:2]) }, "length of row 0: got 2, want 3"},
		"NaN": {func(w *TargetWriter) error { return w.WriteRow(0, []float32{0, 1, float32(math.NaN())}) },
			"row 0: value 2 at byte 0x62: got NaN, want a finite value (nothing is written)"},
		"infinity": {func(w *TargetWriter) error { return w.WriteRow(0, []float32{float32(math.Inf(-1)), 1, 2}) }, "row 0: value 0 at byte 0x5A: got -Inf"},
		"too few":  {func(w *TargetWriter) error { _, err := w.Commit(); return err }, "row count: got 0, want 2"},
		"a third row": {func(w *TargetWriter) error {
			return errors.Join(w.WriteRow(0, targetRows[0]), w.WriteRow(1, targetRows[0]), w.WriteRow(2, targetRows[0]))
		}, "row count: got 3, want 2"},
	} {
		dir := t.TempDir()
		for _, named := range []bool{false, true} {
			w, err := createTarget(filepath.Join(dir, "target.bin"), smallSpec, WriteOptions{named: named})
			require.NoError(t, err)
			require.ErrorContains(t, c.write(w), c.want, what)
			wantEmpty(t, dir)
			_, err = w.Commit()
			require.ErrorContains(t, err, c.want, "the first error stays")
			wantEmpty(t, dir)
		}
	}
	for _, spec := range []TargetSpec{{Vocab: 0}, {Vocab: -1}} {
		var usage *UsageError
		_, err := CreateTarget(filepath.Join(t.TempDir(), "x"), spec)
		require.ErrorAs(t, err, &usage)
		_, _, err = verify(t, nil, spec)
		require.ErrorAs(t, err, &usage)
	}
}

// A file that appears while the target is written is kept, also one of another run
// that was a moment faster.
func TestTargetIsWrittenOnce(t *testing.T) {
	for _, named := range []bool{false, true} {
		dir := t.TempDir()
		path := filepath.Join(dir, "target.bin")
		w, err := createTarget(path, smallSpec, WriteOptions{named: named})
		require.NoError(t, err)
		for i, row := range targetRows {
			require.NoError(t, w.WriteRow(i, row))
		}
		require.NoError(t, os.WriteFile(path, []byte("theirs"), 0o644))
		_, err = w.Commit()
		require.ErrorIs(t, err, fs.ErrExist)
		wantFile(t, path, []byte("theirs"))
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, entries, 1)
	}
}

func TestVerifyTargetStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	data := unhex(t, targetHex)
	_, err := VerifyTargetReader(ctx, bytes.NewReader(data), int64(len(data)), testFile, smallSpec, nil)
	require.ErrorIs(t, err, context.Canceled)
	_, err = VerifyTargetReader(t.Context(), bytes.NewReader(data[:100]), int64(len(data)), testFile, smallSpec, nil)
	require.ErrorContains(t, err, "bytes after byte 0x0", "it shrank meanwhile")
	_, err = VerifyTarget(t.Context(), filepath.Join(t.TempDir(), "none"), smallSpec, nil)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = VerifyTarget(t.Context(), t.TempDir(), smallSpec, nil)
	require.ErrorContains(t, err, "want a regular file")
}

func FuzzTarget(f *testing.F) {
	good := unhex(f, targetHex)
	addSeeds(f, good)
	f.Add(good[:102])
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _, verr := verify(t, data, smallSpec)
		if verr != nil {
			refused(t, verr)
		} else if int64(len(data)) != smallSpec.Size() {
			t.Fatal("a file of another size was accepted")
		}
		d, err := NewTarget(bytes.NewReader(data), int64(len(data)), testFile)
		if err != nil {
			refused(t, err)
			if verr == nil {
				t.Fatal(err)
			}
			return
		}
		spec := TargetSpec{Vocab: max(d.Vocab(), 1), Prefixes: make([][32]byte, d.Rows())}
		finite := true
		row := make([]float32, d.Vocab())
		for i := range spec.Prefixes {
			var perr error
			spec.Prefixes[i], perr = d.Prefix(i)
			if err := errors.Join(perr, d.Row(i, row)); err != nil {
				t.Fatal(err)
			}
			for _, x := range row {
				finite = finite && !math.IsNaN(float64(x)) && !math.IsInf(float64(x), 0)
			}
		}
		if _, _, err := verify(t, data, spec); (err == nil) != finite {
			t.Fatalf("got %v of a sound file, finite: %t", err, finite)
		}
		if !finite {
			return
		}
		rewritten(t, data, func(path string) error {
			w, err := CreateTarget(path, spec)
			if err != nil {
				return err
			}
			for i := range spec.Prefixes {
				if err := errors.Join(d.Row(i, row), w.WriteRow(i, row)); err != nil {
					return err
				}
			}
			_, err = w.Commit()
			return err
		})
	})
}
