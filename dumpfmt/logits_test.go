package dumpfmt

import (
	"bytes"
	"io"
	"math"
	"path/filepath"
	"strings"
	"testing"
)

func TestLogitsRead(t *testing.T) {
	data := unhex(t, floatLogitsHex)
	f, err := NewFloatLogits(bytes.NewReader(data), int64(len(data)), testFile)
	if err != nil {
		t.Fatal(err)
	}
	data = unhex(t, int32LogitsHex)
	i, err := NewInt32Logits(bytes.NewReader(data), int64(len(data)), testFile)
	if err != nil {
		t.Fatal(err)
	}
	if want := (LogitHeader{2, 2}); f.Header() != want || i.Header() != want || f.Len() != 4 || i.Len() != 4 {
		t.Errorf("got %+v and %+v, want %+v", f.Header(), i.Header(), want)
	}
	row, ints, row64 := make([]float32, 2), make([]int32, 2), make([]float64, 2)
	mustDo(t, f.Row(1, row), i.Row(1, ints))
	if row[0] != 0.5 || row[1] != 3e38 {
		t.Errorf("got %v, want [0.5 3e38]", row)
	}
	if ints[0] != math.MaxInt32 || ints[1] != math.MinInt32 {
		t.Errorf("got %v, want the ends of int32", ints)
	}
	mustDo(t, f.Row64(0, row64))
	if row64[0] != 1 || row64[1] != -1 {
		t.Errorf("got %v, want [1 -1]", row64)
	}
	mustDo(t, i.Row64(1, row64))
	if row64[0] != math.MaxInt32 || row64[1] != math.MinInt32 {
		t.Errorf("got %v, want the ends of int32", row64)
	}
	all := make([]int32, 5)
	if n, err := i.ReadValues(all, 1); n != 3 || err != nil || all[0] != -1 || all[2] != math.MinInt32 {
		t.Errorf("got %d, %v: %v, want the last three values", n, err, all)
	}
	wantUsage(t, f.Row(2, row))
	wantUsage(t, i.Row64(0, row64[:1]))
}

func TestLogitsWithoutRows(t *testing.T) {
	data := unhex(t, emptyLogitsHex)
	d, err := NewFloatLogits(bytes.NewReader(data), 16, testFile)
	if err != nil {
		t.Fatal(err)
	}
	if d.Header() != (LogitHeader{}) || d.Len() != 0 {
		t.Errorf("got %+v, want no rows", d.Header())
	}
	if _, err := d.ReadValues(make([]float32, 1), 0); err != io.EOF {
		t.Errorf("got %v, want io.EOF", err)
	}
	path := filepath.Join(t.TempDir(), "x.logits.bin")
	w, err := CreateFloatLogits(path, LogitHeader{}, WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	mustDo(t, w.Commit())
	wantFile(t, path, data)
}

func TestLogitDumpsRefused(t *testing.T) {
	good := unhex(t, floatLogitsHex)
	tests := []struct {
		name   string
		data   []byte
		offset int64
		want   string
	}{
		{"rows 2^60", patched(good, 0, 1<<60), 16, "16 of 9223372036854775808 bytes after byte 0x10 (1152921504606846976 rows of 8 bytes)"},
		{"vocabulary 2^62, whose product with 4 wraps to 0", patched(good, 8, 1<<62), 16, "16 of 36893488147419103232 bytes"},
		{"rows and vocabulary 2^63", patched(patched(good, 0, 1<<63), 8, 1<<63), 16, "of 340282366920938463463374607431768211456 bytes"},
		{"one row more", patched(good, 0, 3), 16, "16 of 24 bytes after byte 0x10"},
		{"one row fewer", patched(good, 0, 1), 24, "end of file at byte 0x18: got 8 trailing bytes, want none"},
		{"one byte more", append(bytes.Clone(good), 9), 32, "got 1 trailing bytes, want none"},
		{"no vocabulary", patched(good, 8, 0), 8, "vocabulary at byte 0x8: got 0, want at least 1 with 2 rows"},
		{"no rows, with a vocabulary", patched(good, 0, 0), 8, "vocabulary of an empty dump at byte 0x8: got 2, want 0"},
		{"no rows, with bytes", append(unhex(t, emptyLogitsHex), 1, 2), 16, "got 2 trailing bytes, want none"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for kind, open := range map[string]func([]byte) error{"logit dump": openFloatLogits, "int32 logit dump": openInt32Logits} {
				e := brokenAt(t, open(tt.data), len(tt.data))
				if e.Offset != tt.offset || !strings.Contains(e.Error(), tt.want) || !strings.HasPrefix(e.Error(), "dumpfmt: "+kind+" x.bin: ") {
					t.Errorf("%s: got %v at byte %d, want %q at byte %d", kind, e, e.Offset, tt.want, tt.offset)
				}
			}
		})
	}
}

func TestLogitsWritten(t *testing.T) {
	dir := t.TempDir()
	f, err := CreateFloatLogits(filepath.Join(dir, "f"), LogitHeader{2, 2}, WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	mustDo(t, f.WriteRow([]float32{1, -1}), f.WriteRow([]float32{0.5, 3e38}), f.Commit())
	wantFile(t, filepath.Join(dir, "f"), unhex(t, floatLogitsHex))
	i, err := CreateInt32Logits(filepath.Join(dir, "i"), LogitHeader{2, 2}, WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	mustDo(t, i.WriteRow([]int32{1, -1}), i.WriteRow([]int32{math.MaxInt32, math.MinInt32}), i.Commit())
	wantFile(t, filepath.Join(dir, "i"), unhex(t, int32LogitsHex))

	for _, h := range []LogitHeader{{1, 0}, {0, 1}, {-1, -1}} {
		_, err = CreateFloatLogits(filepath.Join(dir, "x"), h, WriteOptions{})
		wantUsage(t, err)
		_, err = CreateInt32Logits(filepath.Join(dir, "x"), h, WriteOptions{})
		wantUsage(t, err)
	}
}
