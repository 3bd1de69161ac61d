package dumpfmt

import (
	"encoding/json"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFolderWrittenAndReadBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "folder")
	e := EngineFile{Name: "e <é>", Layers: LayersFloat32, Logits: LogitsInt32, Model: "m",
		Extra: map[string]json.RawMessage{"threads": json.RawMessage("2"), "kv_cache": json.RawMessage(`{"k": 1.50}`)}}
	w, err := CreateFolder(dir, e, WriteOptions{})
	require.NoError(t, err)
	prompt, system := "q\u2028", ""
	c := CaseFile{Text: "foobar", TokenIDs: []int{4, 5}, Prompt: &prompt, System: &system,
		OutputIDs: []int{7}, Extra: map[string]json.RawMessage{"free": json.RawMessage(`[1.50,null]`)}}
	cw, err := w.Case("a.b", c)
	require.NoError(t, err)
	layers, err := cw.FloatLayers(2, 3)
	require.NoError(t, err)
	mustDo(t, layers.WriteRow(wantFloats[:3]), layers.WriteRow(wantFloats[3:]))
	wantUsage(t, cw.Commit()) // the layers aren't committed
	require.NoError(t, layers.Commit())
	_, err = cw.Int32Logits(LogitHeader{2, 2})
	wantUsage(t, err) // its reader would refuse 2 rows for 1 output id
	logits, err := cw.Int32Logits(LogitHeader{1, 2})
	require.NoError(t, err)
	mustDo(t, logits.WriteRow([]int32{8, 9}), logits.Commit())
	probes, err := cw.Probes([]TensorSpec{{"embed", F32, []int{2, 1}}})
	require.NoError(t, err)
	mustDo(t, probes.WriteFloat32s("embed", []float32{1, 2}), probes.Commit())

	f, err := OpenFolder(dir)
	require.NoError(t, err)
	require.Error(t, f.Cases()[0].Err, "without NAME.json the case is broken")

	require.NoError(t, cw.Commit())
	f, err = OpenFolder(dir)
	require.NoError(t, err)
	require.Len(t, f.Cases(), 1)
	got := f.Cases()[0]
	require.NoError(t, got.Check())
	require.Equal(t, "a.b", got.Name)
	require.Equal(t, c, got.File)
	e.KVCache = `{"k": 1.50}`
	e.Extra = map[string]json.RawMessage{"threads": json.RawMessage("2"), "kv_cache": json.RawMessage(`{"k": 1.50}`)}
	require.Equal(t, e, f.Engine())
	wantFile(t, got.LayersPath, unhex(t, floatLayersHex))

	_, err = CreateFolder(dir, e, WriteOptions{})
	require.ErrorIs(t, err, fs.ErrExist)
	_, err = w.Case("a.b", c)
	require.ErrorIs(t, err, fs.ErrExist)
}

func TestFolderOverwrittenLeavesNoOldDump(t *testing.T) {
	dir := t.TempDir()
	e := EngineFile{Name: "e", Layers: LayersInt8Scaled, Logits: LogitsFloat32}
	w, err := CreateFolder(dir, e, WriteOptions{})
	require.NoError(t, err)
	c := CaseFile{Text: "foobar", TokenIDs: []int{4}}
	write := func(w *FolderWriter, layers bool) {
		cw, err := w.Case("x", c)
		require.NoError(t, err)
		if layers {
			l, err := cw.Int8Layers(1, 1)
			require.NoError(t, err)
			mustDo(t, l.WriteRow(Scale{1, 0}, []int8{5}), l.Commit())
		}
		g, err := cw.FloatLogits(LogitHeader{})
		require.NoError(t, err)
		mustDo(t, g.Commit(), cw.Commit())
	}
	write(w, true)
	w, err = CreateFolder(dir, e, WriteOptions{Overwrite: true})
	require.NoError(t, err)
	_, err = w.Case("x", c)
	require.NoError(t, err)
	_, err = os.Lstat(filepath.Join(dir, "x.json"))
	require.ErrorIs(t, err, fs.ErrNotExist, "a case being overwritten isn't whole")
	write(w, false)
	f, err := OpenFolder(dir)
	require.NoError(t, err)
	require.NoError(t, f.Cases()[0].Check())
	require.Empty(t, f.Cases()[0].LayersPath)
}

func TestFolderWriterRefuses(t *testing.T) {
	dir := t.TempDir()
	for _, e := range []EngineFile{
		{}, {Name: "e", Layers: "f16"}, {Name: "\xff"}, {Name: "e", Model: "\xff"},
		{Name: "e", Extra: map[string]json.RawMessage{"name": json.RawMessage(`"f"`)}},
		{Name: "e", Extra: map[string]json.RawMessage{"x": json.RawMessage(`NaN`)}},
		{Name: "e", Extra: map[string]json.RawMessage{"x": nil}},
	} {
		_, err := CreateFolder(dir, e, WriteOptions{})
		wantUsage(t, err)
	}
	wantEmpty(t, dir)
	w, err := CreateFolder(dir, EngineFile{Name: "e"}, WriteOptions{})
	require.NoError(t, err)
	good := CaseFile{Text: "a", TokenIDs: []int{1}}
	for _, name := range []string{"", "engine", ".x", "a/b", "../x", "a\x00"} {
		_, err := w.Case(name, good)
		wantUsage(t, err)
	}
	tooLarge := math.MaxInt32
	tooLarge++
	for _, c := range []CaseFile{
		{Text: "a"}, {Text: "\xff", TokenIDs: []int{1}}, {Text: "a", TokenIDs: []int{-1}},
		{Text: "a", TokenIDs: []int{tooLarge}}, {Text: "a", TokenIDs: []int{1}, Stop: []int{-1}},
	} {
		_, err := w.Case("x", c)
		wantUsage(t, err)
	}
	cw, err := w.Case("x", good)
	require.NoError(t, err)
	_, err = cw.FloatLayers(1, 1) // engine.json doesn't declare it
	wantUsage(t, err)
	_, err = cw.Int32Logits(LogitHeader{1, 1})
	wantUsage(t, err)
	wantUsage(t, cw.Commit()) // no dump
}
