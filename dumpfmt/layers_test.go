package dumpfmt

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var wantFloats = []float32{1, -2.5, float32(math.Inf(1)), math.Float32frombits(0x53a1),
	math.Float32frombits(0x7fc00000), math.Float32frombits(0x80000000)}

func TestFloatLayersRead(t *testing.T) {
	data := unhex(t, floatLayersHex)
	d, err := NewFloatLayers(bytes.NewReader(data), int64(len(data)), testFile)
	if err != nil {
		t.Fatal(err)
	}
	if want := (LayerHeader{2, 3, foobarFingerprint, 1}); d.Header() != want {
		t.Errorf("header: got %+v, want %+v", d.Header(), want)
	}
	row := make([]float32, 3)
	row64 := make([]float64, 3)
	for i := range 2 {
		want := wantFloats[3*i : 3*i+3]
		if err := d.Row(i, row); err != nil || !sameBits(row, want) {
			t.Errorf("row %d: got %v, %v, want %v", i, row, err, want)
		}
		if err := d.Row64(i, row64); err != nil {
			t.Fatal(err)
		}
		for j := range row64 {
			if math.Float64bits(row64[j]) != math.Float64bits(float64(want[j])) {
				t.Errorf("row %d, channel %d: got %v, want %v", i, j, row64[j], want[j])
			}
		}
	}
	var all []float32
	for {
		chunk := make([]float32, 4)
		n, err := d.ReadValues(chunk, int64(len(all)))
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, chunk[:n]...)
	}
	if d.Len() != 6 || !sameBits(all, wantFloats) {
		t.Errorf("by chunks of 4: got %v, want %v", all, wantFloats)
	}
}

func TestLayerDumpsRefused(t *testing.T) {
	floats, codes := unhex(t, floatLayersHex), unhex(t, int8LayersHex)
	tests := []struct {
		name   string
		data   []byte
		open   func([]byte) error
		offset int64
		want   string
	}{
		{"rows 2^60", patched(floats, 0, 1<<60), openFloatLayers, 32,
			"dumpfmt: layer dump x.bin: 24 of 13835058055282163712 bytes after byte 0x20 (1152921504606846976 rows of 12 bytes)"},
		{"rows 2^64-1", patched(floats, 0, math.MaxUint64), openFloatLayers, 32, "24 of 221360928884514619380 bytes"},
		{"width 2^62, whose product with 4 wraps to 0", patched(floats, 8, 1<<62), openFloatLayers, 32, "24 of 36893488147419103232 bytes"},
		{"width 2^64-1", patched(floats, 8, math.MaxUint64), openFloatLayers, 32, "24 of 147573952589676412920 bytes"},
		{"rows and width whose product wraps to 24", patched(patched(floats, 0, 1<<62+2), 8, 3), openFloatLayers, 32, "24 of 55340232221128654872 bytes"},
		{"one row more", patched(floats, 0, 3), openFloatLayers, 32, "24 of 36 bytes after byte 0x20 (3 rows of 12 bytes)"},
		{"one row fewer", patched(floats, 0, 1), openFloatLayers, 44, "end of file at byte 0x2C: got 12 trailing bytes, want none"},
		{"one byte more", append(bytes.Clone(floats), 0), openFloatLayers, 56, "end of file at byte 0x38: got 1 trailing bytes, want none"},
		{"no rows", patched(floats, 0, 0), openFloatLayers, 0, "rows at byte 0x0: got 0, want at least 1"},
		{"no width", patched(floats, 8, 0), openFloatLayers, 8, "hidden size at byte 0x8: got 0, want at least 1"},
		{"mode 0", patched(floats, 24, 0), openFloatLayers, 24, "capture mode at byte 0x18: got 0, want 1"},
		{"mode 2", patched(floats, 24, 2), openFloatLayers, 24, "capture mode at byte 0x18: got 2, want 1"},

		{"int8 rows 2^60", patched(codes, 0, 1<<60), openInt8Layers, 32, "38 of 21905508587530092544 bytes"},
		{"int8 width 2^64-1, which with the scale wraps to 15", patched(codes, 8, math.MaxUint64), openInt8Layers, 32, "38 of 36893488147419103262 bytes"},
		{"int8 one row more", patched(codes, 0, 3), openInt8Layers, 32, "dumpfmt: int8 layer dump x.bin: 38 of 57 bytes after byte 0x20 (3 rows of 19 bytes)"},
		{"int8 no rows", patched(codes, 0, 0), openInt8Layers, 0, "rows at byte 0x0: got 0"},
		{"int8 no width", patched(codes, 8, 0), openInt8Layers, 8, "hidden size at byte 0x8: got 0"},
		{"int8 mode 2", patched(codes, 24, 2), openInt8Layers, 24, "capture mode at byte 0x18: got 2, want 1"},
		{"int8 scale m = 0", patched(codes, 51, 0), openInt8Layers, 51, "scale of row 1 at byte 0x33: got 0*2^-36"},
		{"int8 scale m < 0", patched(codes, 32, math.MaxUint64), openInt8Layers, 32, "scale of row 0 at byte 0x20: got -1*2^-38"},
		{"int8 scale overflows", patched(codes, 40, 1024), openInt8Layers, 32, "scale of row 0 at byte 0x20: got 2014482168*2^1024"},
		{"int8 scale vanishes", patched(codes, 40, ^uint64(1099)), openInt8Layers, 32, "scale of row 0 at byte 0x20: got 2014482168*2^-1100"},
		{"int8 scale e = 2^63-1", patched(codes, 40, math.MaxInt64), openInt8Layers, 32, "2^9223372036854775807"},
		{"int8 scale e = -2^63", patched(codes, 40, 1<<63), openInt8Layers, 32, "2^-9223372036854775808"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := brokenAt(t, tt.open(tt.data), len(tt.data))
			if e.Offset != tt.offset || !strings.Contains(e.Error(), tt.want) {
				t.Errorf("got %v at byte %d, want %q at byte %d", e, e.Offset, tt.want, tt.offset)
			}
		})
	}
}

func TestInt8LayersRead(t *testing.T) {
	data := append(unhex(t, int8LayersHex), 1, 2, 3)
	d, err := NewInt8Layers(bytes.NewReader(data), int64(len(data)), testFile)
	if err != nil {
		t.Fatal(err)
	}
	if want := (LayerHeader{2, 3, foobarFingerprint, 1}); d.Header() != want || d.TrailingBytes() != 3 {
		t.Errorf("got %+v and %d trailing bytes, want %+v and 3", d.Header(), d.TrailingBytes(), want)
	}
	if err := d.CheckScales(); err != nil {
		t.Error(err)
	}
	tests := []struct {
		scale  Scale
		codes  []int8
		values []float64 // code*m*2^e in Python
		step   float64
	}{
		{Scale{2014482168, -38}, []int8{127, -128, 1}, []float64{0x1.dc89a7684p-1, -0x1.e04a3bep-1, 0x1.e04a3bep-8}, 0x1.e04a3bep-8},
		{Scale{1 << 30, -36}, []int8{0, -1, 64}, []float64{0, -1. / 64, 1}, 1. / 64},
	}
	for i, tt := range tests {
		codes, values := make([]int8, 3), make([]float64, 3)
		scale, err := d.RowCodes(i, codes)
		if err != nil || scale != tt.scale || !bytes.Equal(bytesOf(codes), bytesOf(tt.codes)) {
			t.Errorf("row %d: got %v, %v, %v, want %v, %v", i, scale, codes, err, tt.scale, tt.codes)
		}
		step, err := d.Row64(i, values)
		if err != nil || step != tt.step {
			t.Errorf("row %d: got step %v, %v, want %v", i, step, err, tt.step)
		}
		for j := range values {
			if values[j] != tt.values[j] {
				t.Errorf("row %d, channel %d: got %v, want %v", i, j, values[j], tt.values[j])
			}
		}
	}
}

func TestScaleStep(t *testing.T) {
	tests := []struct {
		s    Scale
		step float64
		ok   bool
	}{
		{Scale{1, 0}, 1, true},
		{Scale{3, -1}, 1.5, true},
		{Scale{math.MaxInt64, -63}, 1, true}, // 2^63-1 rounds to 2^63
		{Scale{1, -1022}, 0x1p-1022, true},
		{Scale{1, -1023}, 0, false},
		{Scale{1 << 62, -1084}, 0x1p-1022, true},
		{Scale{1, 1016}, 0x1p1016, true},
		{Scale{1, 1017}, 0, false}, // 128 codes overflow
		{Scale{0, 0}, 0, false},
		{Scale{-1, 0}, 0, false},
		{Scale{math.MinInt64, 0}, 0, false},
		{Scale{1, math.MaxInt64}, 0, false},
		{Scale{1, math.MinInt64}, 0, false},
	}
	for _, tt := range tests {
		step, ok := tt.s.Step()
		if step != tt.step || ok != tt.ok {
			t.Errorf("%v: got %v, %v, want %v, %v", tt.s, step, ok, tt.step, tt.ok)
		}
	}
}

func TestLayersWritten(t *testing.T) {
	dir := t.TempDir()
	h := LayerHeader{2, 3, foobarFingerprint, CaptureIncremental}

	path := filepath.Join(dir, "new", "folder", "f.layers.bin")
	w, err := CreateFloatLayers(path, h, WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	mustDo(t, w.WriteRow(wantFloats[:3]), w.WriteRow(wantFloats[3:]), w.Commit(), w.Abort())
	wantFile(t, path, unhex(t, floatLayersHex))

	path = filepath.Join(dir, "i.layers.bin")
	v, err := CreateInt8Layers(path, h, WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	mustDo(t, v.WriteRow(Scale{2014482168, -38}, []int8{127, -128, 1}),
		v.WriteRow(Scale{1 << 30, -36}, []int8{0, -1, 64}), v.Commit())
	wantFile(t, path, unhex(t, int8LayersHex))
}

func TestLayerWritersRefuse(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.layers.bin")
	for _, h := range []LayerHeader{{0, 3, 0, 1}, {-1, 3, 0, 1}, {2, 0, 0, 1}, {2, 3, 0, 0}, {2, 3, 0, 2}} {
		_, err := CreateFloatLayers(path, h, WriteOptions{})
		wantUsage(t, err)
		_, err = CreateInt8Layers(path, h, WriteOptions{})
		wantUsage(t, err)
	}
	w, err := CreateFloatLayers(path, LayerHeader{2, 3, 0, 1}, WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantUsage(t, w.WriteRow(make([]float32, 2)))
	mustDo(t, w.WriteRow(make([]float32, 3)))
	wantUsage(t, w.Commit()) // one row short
	wantEmpty(t, dir)

	v, err := CreateInt8Layers(path, LayerHeader{1, 3, 0, 1}, WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantUsage(t, v.WriteRow(Scale{0, 0}, make([]int8, 3)))
	mustDo(t, v.WriteRow(Scale{1, 0}, make([]int8, 3)))
	wantUsage(t, v.WriteRow(Scale{1, 0}, make([]int8, 3))) // one row too many
	mustDo(t, v.Abort(), v.Abort())
	wantEmpty(t, dir)
}

func TestReadersRefuseMisuse(t *testing.T) {
	data := unhex(t, floatLayersHex)
	d, err := NewFloatLayers(bytes.NewReader(data), int64(len(data)), testFile)
	if err != nil {
		t.Fatal(err)
	}
	wantUsage(t, d.Row(-1, make([]float32, 3)))
	wantUsage(t, d.Row(2, make([]float32, 3)))
	wantUsage(t, d.Row(0, make([]float32, 4)))
	wantUsage(t, d.Row64(2, make([]float64, 3)))
	wantUsage(t, d.Row64(0, make([]float64, 2)))
	for _, i := range []int64{-1, 7, math.MaxInt64} {
		_, err = d.ReadValues(make([]float32, 1), i)
		wantUsage(t, err)
	}
	data = unhex(t, int8LayersHex)
	i8, err := NewInt8Layers(bytes.NewReader(data), int64(len(data)), testFile)
	if err != nil {
		t.Fatal(err)
	}
	_, err = i8.RowCodes(2, make([]int8, 3))
	wantUsage(t, err)
	_, err = i8.RowCodes(0, make([]int8, 4))
	wantUsage(t, err)
	_, err = i8.Row64(0, make([]float64, 2))
	wantUsage(t, err)
	_, err = i8.Scale(-1)
	wantUsage(t, err)
}

// A file that shrinks, or a disk that fails, after the size was taken.
func TestReadersReportLateFaults(t *testing.T) {
	data := unhex(t, floatLayersHex)
	d, err := NewFloatLayers(bytes.NewReader(data[:50]), int64(len(data)), testFile)
	if err != nil {
		t.Fatal(err)
	}
	if e := brokenAt(t, d.Row(1, make([]float32, 3)), len(data)); e.Error() != "dumpfmt: layer dump x.bin: 6 of 12 bytes after byte 0x2C" {
		t.Error(e)
	}
	disk := errors.New("disk on fire")
	d, err = NewFloatLayers(failing{bytes.NewReader(data), 40, disk}, int64(len(data)), testFile)
	if err != nil {
		t.Fatal(err)
	}
	var e *FormatError
	if err := d.Row(1, make([]float32, 3)); !errors.Is(err, disk) || errors.As(err, &e) {
		t.Errorf("got %v, want %v, not a *FormatError", err, disk)
	}
}

// failing fails from byte from on.
type failing struct {
	io.ReaderAt
	from int64
	err  error
}

func (f failing) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > f.from {
		return 0, f.err
	}
	return f.ReaderAt.ReadAt(p, off)
}

func TestOpenRefusesWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	var e *FormatError
	if _, err := OpenFloatLayers(dir); !errors.As(err, &e) || e.File != dir {
		t.Errorf("a folder: got %v, want a *FormatError", err)
	}
	if _, err := OpenFloatLayers(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) || errors.As(err, &e) {
		t.Errorf("no file: got %v, want fs.ErrNotExist", err)
	}
}

func mustDo(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func wantUsage(t *testing.T, err error) {
	t.Helper()
	var e *UsageError
	if !errors.As(err, &e) || !strings.HasPrefix(err.Error(), "dumpfmt: ") {
		t.Errorf("got %v, want a *UsageError", err)
	}
}

func wantFile(t *testing.T, path string, want []byte) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s: got % x, %v, want % x", path, got, err, want)
	}
}

// wantEmpty demands that no file is left, hidden ones included.
func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Errorf("left behind: %s", e.Name())
	}
}
