package engine_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
)

// The text of the cases here, and its FNV-1a 64 from the FNV reference.
const (
	text      = "foobar"
	textPrint = 0x85944171f73967e8
	caseJSON  = `{"text":"foobar","token_ids":[4,5],"output_ids":[6]}`
	floatSide = `{"name":"e","version":"1","layers":"f32","logits":"f32","dtype":"float32","weights":"w","activations":"a","kv_cache":"k","model":"m"}`
	int8Side  = `{"name":"e","layers":"int8-scaled","logits":"i32"}`
)

// raw puts values one after the other, little-endian.
func raw(values ...any) string {
	var b bytes.Buffer
	for _, v := range values {
		if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
			panic(err)
		}
	}
	return b.String()
}

func layerHeader(rows, width, fingerprint, mode uint64) []uint64 {
	return []uint64{rows, width, fingerprint, mode}
}

var (
	floatLayers = raw(layerHeader(2, 2, textPrint, 1), []float32{1, -2.5, 3, 4})
	int8Layers  = raw(layerHeader(2, 2, textPrint, 1), []int64{3, -1}, []int8{1, -2}, []int64{1, 4}, []int8{127, 0})
	floatLogits = raw([]uint64{1, 3}, []float32{0.5, 7, -1})
	int32Logits = raw([]uint64{1, 3}, []int32{5, -7, 0})
)

// folder writes files; a name that ends in a slash is a folder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		path := filepath.Join(dir, name)
		if name[len(name)-1] == '/' {
			require.NoError(t, os.Mkdir(path, 0o777))
			continue
		}
		require.NoError(t, os.WriteFile(path, []byte(data), 0o666))
	}
	return dir
}

func request(name string) engine.Request {
	return engine.Request{Case: engine.Case{Name: name, Text: text, TokenIDs: []int{4, 5}}}
}

func TestDirAnswersFromFloatDumps(t *testing.T) {
	dir := folder(t, map[string]string{"engine.json": floatSide, "x.json": caseJSON, "x.layers.bin": floatLayers, "x.logits.bin": floatLogits})
	d := engine.Dir(dir)
	info, err := d.Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, engine.Info{Name: "e", Version: "1", Layers: engine.LayersFloat32, Logits: engine.LogitsFloat32,
		Weights: "w", Activations: "a", KVCache: "k", DType: "float32", Model: "m"}, info)

	r, err := d.Run(t.Context(), request("x"))
	require.NoError(t, err)
	require.Equal(t, []int{6}, r.OutputIDs)
	require.Equal(t, []int{4, 5}, r.PromptIDs)
	require.Equal(t, engine.ResponseFiles{Layers: filepath.Join(dir, "x.layers.bin"), Logits: filepath.Join(dir, "x.logits.bin")}, r.Files)
	require.Equal(t, engine.CaptureHeader{Rows: 2, Width: 2, Fingerprint: textPrint, Mode: engine.CaptureModeIncremental}, r.Layers.Header())
	wantRow(t, r.Layers, 0, 0, 1, -2.5)
	wantRow(t, r.Layers, 1, 0, 3, 4)
	_, err = r.Layers.Row(2, make([]float64, 2))
	require.Error(t, err)

	rows, vocab := r.Logits.Shape()
	require.Equal(t, []int{1, 3}, []int{rows, vocab})
	logits := make([]float64, 3)
	require.NoError(t, r.Logits.Row(0, logits))
	if logits[0] != 0.5 || logits[1] != 7 || logits[2] != -1 {
		t.Errorf("logits: got %v, want [0.5 7 -1]", logits)
	}
	require.NoError(t, r.Close())
	require.Error(t, r.Logits.Row(0, logits), "the file is closed")
}

func wantRow(t *testing.T, s engine.RowSource, i int, step float64, want ...float64) {
	t.Helper()
	row := make([]float64, len(want))
	got, err := s.Row(i, row)
	require.NoError(t, err)
	if got != step {
		t.Errorf("row %d: got step %v, want %v", i, got, step)
	}
	for j := range want {
		if row[j] != want[j] {
			t.Errorf("row %d, channel %d: got %v, want %v", i, j, row[j], want[j])
		}
	}
}

func TestDirAnswersFromInt8Dumps(t *testing.T) {
	d := engine.Dir(folder(t, map[string]string{"engine.json": int8Side, "x.json": caseJSON,
		"x.layers.bin": int8Layers + "trailer", "x.logits.bin": int32Logits}))
	r, err := d.Run(t.Context(), request("x"))
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	wantRow(t, r.Layers, 0, 1.5, 1.5, -3)  // 3*2^-1
	wantRow(t, r.Layers, 1, 16, 127*16, 0) // 1*2^4
	logits := make([]float64, 3)
	require.NoError(t, r.Logits.Row(0, logits))
	if logits[0] != 5 || logits[1] != -7 || logits[2] != 0 {
		t.Errorf("logits: got %v, want [5 -7 0]", logits)
	}
}

func TestDirOffersWhatTheCaseHolds(t *testing.T) {
	probes := `{"embed":{"dtype":"F32","shape":[3,1],"data_offsets":[0,12]}}`
	d := engine.Dir(folder(t, map[string]string{"engine.json": floatSide,
		"a.json": `{"text":"foobar","token_ids":[4,5],"output_ids":[]}`, "a.logits.bin": raw([]uint64{0, 0}),
		"b.json": caseJSON, "b.probes.safetensors": raw(uint64(len(probes)), []byte(probes), make([]float32, 3))}))
	r, err := d.Run(t.Context(), request("a"))
	require.NoError(t, err)
	require.Nil(t, r.Layers)
	require.Nil(t, r.Probes)
	rows, vocab := r.Logits.Shape()
	require.Equal(t, []int{0, 0}, []int{rows, vocab})
	require.NoError(t, r.Close())

	r, err = d.Run(t.Context(), request("b"))
	require.NoError(t, err)
	require.Nil(t, r.Layers)
	require.Nil(t, r.Logits)
	require.Equal(t, []engine.Probe{engine.ProbeEmbed}, r.Probes.Probes())
	require.NoError(t, r.Close())
}

// TestDirNotesTrailingBytes: bytes after the last int8 row are no fault, and
// are told.
func TestDirNotesTrailingBytes(t *testing.T) {
	d := engine.Dir(folder(t, map[string]string{"engine.json": int8Side, "a.json": caseJSON, "a.layers.bin": int8Layers,
		"b.json": caseJSON, "b.layers.bin": int8Layers + "behind"}))
	r, err := d.Run(t.Context(), request("a"))
	require.NoError(t, err)
	require.Empty(t, r.Notes)
	require.NoError(t, r.Close())
	r, err = d.Run(t.Context(), request("b"))
	require.NoError(t, err)
	require.Equal(t, []string{r.Files.Layers + ": 6 bytes after the last row were not read"}, r.Notes)
	require.NoError(t, r.Close())
}

func TestDirListsBrokenCasesToo(t *testing.T) {
	d := engine.Dir(folder(t, map[string]string{"engine.json": floatSide,
		"c.json": caseJSON, "c.layers.bin": floatLayers,
		"d.json": `{"text":"foobar","token_ids":[4],"stop":[7,2]}`, "d.layers.bin": floatLayers,
		"b.json": `{`, "b.layers.bin": floatLayers, "a.layers.bin": floatLayers}))
	cases, err := d.Cases(t.Context())
	require.NoError(t, err)
	require.Equal(t, []engine.Case{{Name: "a"}, {Name: "b"}, {Name: "c", Text: text, TokenIDs: []int{4, 5}},
		{Name: "d", Text: text, TokenIDs: []int{4}, Stop: []int{7, 2}}}, cases)
	r, err := d.Run(t.Context(), request("c"))
	require.NoError(t, err)
	require.NoError(t, r.Close())
}

func TestDirMalformedAnswers(t *testing.T) {
	cut := func(s string, n int) string { return s[:len(s)-n] }
	const f4 = `{"embed":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}}`
	tests := []struct {
		name       string
		side       string
		files      map[string]string
		file       string
		provenance bool
		want       string
	}{
		{"layers cut, logits good", floatSide, map[string]string{"x.layers.bin": cut(floatLayers, 1), "x.logits.bin": floatLogits}, "x.layers.bin", false, "15 of 16 bytes after byte 0x20"},
		{"layers good, logits cut", floatSide, map[string]string{"x.layers.bin": floatLayers, "x.logits.bin": cut(floatLogits, 1)}, "x.logits.bin", false, "11 of 12 bytes after byte 0x10"},
		{"int8 layers cut", int8Side, map[string]string{"x.layers.bin": cut(int8Layers, 1)}, "x.layers.bin", false, "35 of 36 bytes after byte 0x20"},
		{"rows 2^60", floatSide, map[string]string{"x.layers.bin": raw(layerHeader(1<<60, 2, textPrint, 1), make([]float32, 4))}, "x.layers.bin", false, "16 of 9223372036854775808 bytes"},
		{"capture mode 2", floatSide, map[string]string{"x.layers.bin": raw(layerHeader(2, 2, textPrint, 2), make([]float32, 4))}, "x.layers.bin", false, "capture mode at byte 0x18: got 2, want 1"},
		{"no rows", floatSide, map[string]string{"x.layers.bin": raw(layerHeader(0, 2, textPrint, 1))}, "x.layers.bin", false, "rows at byte 0x0: got 0"},
		{"bytes behind float layers", floatSide, map[string]string{"x.layers.bin": floatLayers + "x"}, "x.layers.bin", false, "1 trailing bytes"},
		{"a scale of -1", int8Side, map[string]string{"x.layers.bin": raw(layerHeader(2, 2, textPrint, 1), []int64{3, -1}, []int8{1, -2}, []int64{-1, 4}, []int8{127, 0})}, "x.layers.bin", false, "scale of row 1 at byte 0x32: got -1*2^4"},
		{"bytes behind logits", int8Side, map[string]string{"x.logits.bin": int32Logits + "x"}, "x.logits.bin", false, "1 trailing bytes"},
		{"probes of a type nobody knows", floatSide, map[string]string{"x.layers.bin": floatLayers, "x.probes.safetensors": raw(uint64(len(f4)), []byte(f4), []byte{1})}, "x.probes.safetensors", false, `dtype of tensor "embed"`},
		{"more output ids than logit rows", floatSide, map[string]string{"x.json": `{"text":"foobar","token_ids":[4,5],"output_ids":[6,7,8]}`, "x.logits.bin": floatLogits}, "x.json", false, "output_ids: got 3 ids, want 1"},
		{"no dump", floatSide, nil, "x.json", false, "dumps of the case: got none"},
		{"layers undeclared", `{"name":"e"}`, map[string]string{"x.layers.bin": floatLayers}, "engine.json", false, `key "layers"`},
		{"a folder for a dump", floatSide, map[string]string{"x.layers.bin/": ""}, "x.layers.bin", false, "file type"},
		{"no case file", floatSide, map[string]string{"x.json": "", "x.layers.bin": floatLayers}, "x.json", false, "the case at byte 0x0"},

		{"another prompt's layers", floatSide, map[string]string{"x.layers.bin": raw(layerHeader(2, 2, 0xaf63dc4c8601ec8c, 1), make([]float32, 4))}, "x.layers.bin", true, "got 0xAF63DC4C8601EC8C, want 0x85944171F73967E8"},
		{"another prompt's int8 layers", int8Side, map[string]string{"x.layers.bin": raw(layerHeader(1, 1, 7, 1), []int64{1, 0}, []int8{1})}, "x.layers.bin", true, "got 0x0000000000000007, want 0x85944171F73967E8"},
		{"another text", floatSide, map[string]string{"x.json": `{"text":"a","token_ids":[4,5]}`, "x.logits.bin": floatLogits}, "x.json", true, "text: got one of fingerprint 0xAF63DC4C8601EC8C, want 0x85944171F73967E8"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files := map[string]string{"engine.json": tt.side, "x.json": caseJSON}
			for name, data := range tt.files {
				files[name] = data
			}
			dir := folder(t, files)
			r, err := engine.Dir(dir).Run(t.Context(), request("x"))
			require.Nil(t, r)
			var bad *engine.MalformedError
			require.ErrorAs(t, err, &bad)
			require.Equal(t, filepath.Join(dir, tt.file), bad.File)
			require.Equal(t, tt.provenance, bad.Provenance)
			require.ErrorContains(t, err, tt.want)
			require.ErrorContains(t, err, filepath.Join(dir, tt.file))
		})
	}
}

// TestDirTellsWhichPromptWasRun: ids that are not those of the request are the
// answer's, not an error; all of it is there to be judged.
func TestDirTellsWhichPromptWasRun(t *testing.T) {
	for name, ids := range map[string][]int{"[4,6]": {4, 6}, "[4,5,6]": {4, 5, 6}, "[4]": {4}, "[9]": {9}} {
		d := engine.Dir(folder(t, map[string]string{"engine.json": floatSide, "x.json": `{"text":"foobar","token_ids":` + name + `}`,
			"x.layers.bin": floatLayers, "x.logits.bin": floatLogits}))
		r, err := d.Run(t.Context(), request("x"))
		require.NoError(t, err, name)
		require.Equal(t, ids, r.PromptIDs)
		wantRow(t, r.Layers, 0, 0, 1, -2.5)
		rows, vocab := r.Logits.Shape()
		require.Equal(t, []int{1, 3}, []int{rows, vocab})
		require.NoError(t, r.Close())
	}
}

func TestDirWithoutTheCase(t *testing.T) {
	d := engine.Dir(folder(t, map[string]string{"engine.json": floatSide, "x.json": caseJSON, "x.logits.bin": floatLogits}))
	_, err := d.Run(t.Context(), request("../x"))
	var none *engine.NoAnswerError
	require.ErrorAs(t, err, &none)
	require.Equal(t, "../x", none.Case)
}

func TestDirWithoutAnyCase(t *testing.T) {
	d := engine.Dir(folder(t, map[string]string{"engine.json": floatSide}))
	info, err := d.Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, "e", info.Name)
	cases, err := d.Cases(t.Context())
	require.NoError(t, err)
	require.Empty(t, cases)
	_, err = d.Run(t.Context(), request("x"))
	var none *engine.NoAnswerError
	require.ErrorAs(t, err, &none)
}

// all calls each method and gives its error to check.
func all(t *testing.T, d *engine.DumpDir, check func(error)) {
	_, err := d.Info(t.Context())
	check(err)
	_, err = d.Cases(t.Context())
	check(err)
	_, err = d.Run(t.Context(), request("x"))
	check(err)
}

func TestDirWithoutDescription(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"none, with a case": {"x.json": caseJSON, "x.logits.bin": floatLogits},
		"none, empty":       {},
		"broken":            {"engine.json": `{"name":`, "x.json": caseJSON, "x.logits.bin": floatLogits},
		"broken, no case":   {"engine.json": `{"name":`},
		"a folder":          {"engine.json/": ""},
	} {
		t.Run(name, func(t *testing.T) {
			all(t, engine.Dir(folder(t, files)), func(err error) {
				var bad *engine.MalformedError
				require.ErrorAs(t, err, &bad)
				require.False(t, bad.Provenance)
				require.ErrorContains(t, err, "engine.json")
			})
		})
	}
}

func TestDirThatIsNoFolder(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none")
	all(t, engine.Dir(missing), func(err error) {
		var setup *engine.SetupError
		require.ErrorAs(t, err, &setup)
		require.Equal(t, missing, setup.Path)
		require.ErrorIs(t, err, fs.ErrNotExist)
		var bad *engine.MalformedError
		require.NotErrorAs(t, err, &bad)
	})
	file := filepath.Join(folder(t, map[string]string{"f": ""}), "f")
	all(t, engine.Dir(file), func(err error) {
		var setup *engine.SetupError
		require.ErrorAs(t, err, &setup)
	})
}

func TestDirHonoursContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d := engine.Dir(folder(t, map[string]string{"engine.json": floatSide, "x.json": caseJSON, "x.logits.bin": floatLogits}))
	_, err := d.Info(ctx)
	require.ErrorIs(t, err, context.Canceled)
	_, err = d.Run(ctx, request("x"))
	require.ErrorIs(t, err, context.Canceled)
	_, err = d.Info(t.Context())
	require.NoError(t, err, "a cancelled call spoils nothing")
}

func TestDirConcurrently(t *testing.T) {
	d := engine.Dir(folder(t, map[string]string{"engine.json": int8Side, "x.json": caseJSON, "x.layers.bin": int8Layers}))
	r, err := d.Run(t.Context(), request("x"))
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			row := make([]float64, 2)
			for i := range 200 {
				want := []float64{1.5, 2032}[i%2]
				if _, err := r.Layers.Row(i%2, row); err != nil || row[0] != want {
					t.Errorf("row %d: got %v, %v, want %v", i%2, row, err, want)
				}
			}
		})
	}
	wg.Wait()
}
