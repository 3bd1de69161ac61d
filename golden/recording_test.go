package golden_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/golden"
)

// model is a checkpoint as far as its hashes go.
func model() fstest.MapFS {
	return fstest.MapFS{
		"config.json":       {Data: []byte("{}")},
		"model.safetensors": {Data: []byte("weights")},
		"tokenizer.json":    {Data: []byte("words")},
		"README.md":         {Data: []byte("not looked at")},
	}
}

// recordingOf is the manifest of a dump folder with one case of two rows and one row of
// logits, and of the model above.
func recordingOf(t *testing.T, dir string) *golden.Recording {
	t.Helper()
	w, err := dumpfmt.CreateFolder(dir, dumpfmt.EngineFile{Name: "torch", Version: "2", DType: "float32",
		Layers: dumpfmt.LayersFloat32, Logits: dumpfmt.LogitsFloat32}, dumpfmt.WriteOptions{})
	require.NoError(t, err)
	c, err := w.Case("hello", dumpfmt.CaseFile{Text: "hello", TokenIDs: []int{1}, OutputIDs: []int{1}})
	require.NoError(t, err)
	l, err := c.FloatLayers(2, 2)
	require.NoError(t, err)
	require.NoError(t, l.WriteRow([]float32{1, 2}))
	require.NoError(t, l.WriteRow([]float32{3, 4}))
	require.NoError(t, l.Commit())
	g, err := c.FloatLogits(dumpfmt.LogitHeader{Rows: 1, Vocab: 3})
	require.NoError(t, err)
	require.NoError(t, g.WriteRow([]float32{1, 7, 2}))
	require.NoError(t, g.Commit())
	require.NoError(t, c.Commit())

	goldens, err := golden.HashFiles(os.DirFS(dir), "rec", []string{"engine.json", "hello.json", "hello.layers.bin", "hello.logits.bin"})
	require.NoError(t, err)
	files, err := golden.CheckpointFiles(model())
	require.NoError(t, err)
	require.Equal(t, []string{"config.json", "model.safetensors", "tokenizer.json"}, files)
	checkpoint, err := golden.HashFiles(model(), "mine", files)
	require.NoError(t, err)
	return &golden.Recording{
		Schema: "plumbline-recording-v1", Set: "rec",
		Engine:    golden.RecordedEngine{Name: "torch", Version: "2", DType: "float32"},
		Reference: &golden.RecordedEngine{Name: "ref", DType: "float32"},
		Goldens:   goldens, Checkpoint: checkpoint, Cases: []string{"hello"},
		Precision: golden.Precision{Measure: "by hand", Cases: map[string]golden.RowPrecision{"hello": {Layers: []float64{0, 1e-7}, Logits: []float64{2e-7}}}},
	}
}

// writeManifest writes a manifest and its hash beside the folder.
func writeManifest(t *testing.T, dir string, r *golden.Recording) {
	t.Helper()
	data, err := json.Marshal(r)
	require.NoError(t, err)
	name := filepath.Base(dir) + ".manifest.json"
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(dir), name), data, 0o666))
	pin := fmt.Sprintf("%x  %s\n", sha256.Sum256(data), name)
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(dir), name+".sha256"), []byte(pin), 0o666))
}

func TestRecording(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rec")
	r := recordingOf(t, dir)
	writeManifest(t, dir, r)
	set, err := golden.OpenFolder(dir)
	require.NoError(t, err)
	assert.False(t, set.Plain())
	assert.Equal(t, "torch", set.Engine())
	assert.Equal(t, r, set.Recording())
	assert.True(t, set.Has("hello"))
	assert.True(t, set.HasLogits("hello"))
	assert.Equal(t, []float64{0, 1e-7}, set.LayerFloor("hello"))
	assert.Equal(t, []float64{2e-7}, set.LogitFloor("hello"))
	assert.Empty(t, set.Verify(golden.Inputs{Checkpoint: model()}))
	assert.False(t, set.ShowsChangeOnly("ref"), "another engine's values are evidence")
	assert.True(t, set.ShowsChangeOnly("torch"))
	plain, err := golden.OpenFolder(plainFolder(t, dumpfmt.LayersFloat32))
	require.NoError(t, err)
	assert.Nil(t, plain.Recording())
	assert.False(t, plain.ShowsChangeOnly("torch"), "a folder without a manifest vouches for nothing")
}

// TestRecordingRefusesFiles: whatever is not as the manifest says is named when the
// folder is opened.
func TestRecordingRefusesFiles(t *testing.T) {
	flip := func(name string, at int) func(t *testing.T, dir string, r *golden.Recording) {
		return func(t *testing.T, dir string, _ *golden.Recording) {
			data, err := os.ReadFile(filepath.Join(dir, name))
			require.NoError(t, err)
			data[at] ^= 1
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o666))
		}
	}
	// rehash makes the manifest agree with what the folder holds by then.
	rehash := func(change func(t *testing.T, dir string, r *golden.Recording)) func(*testing.T, string, *golden.Recording) {
		return func(t *testing.T, dir string, r *golden.Recording) {
			change(t, dir, r)
			var err error
			r.Goldens, err = golden.HashFiles(os.DirFS(dir), "rec", []string{"engine.json", "hello.json", "hello.layers.bin", "hello.logits.bin"})
			require.NoError(t, err)
		}
	}
	for name, tt := range map[string]struct {
		change func(t *testing.T, dir string, r *golden.Recording)
		want   string
	}{
		"changed rows":   {flip("hello.layers.bin", 40), "rec/hello.layers.bin: sha256"},
		"changed logits": {flip("hello.logits.bin", 20), "rec/hello.logits.bin: sha256"},
		"changed case":   {flip("hello.json", 5), "rec/hello.json: sha256"},
		"cut": {func(t *testing.T, dir string, _ *golden.Recording) {
			require.NoError(t, os.Truncate(filepath.Join(dir, "hello.layers.bin"), 40))
		}, "rec/hello.layers.bin: length: got 40 bytes, want 48 bytes"},
		"missing": {func(t *testing.T, dir string, _ *golden.Recording) {
			require.NoError(t, os.Remove(filepath.Join(dir, "hello.logits.bin")))
		}, "rec/hello.logits.bin: file"},
		"orphan": {func(t *testing.T, dir string, _ *golden.Recording) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "old.json"), nil, 0o666))
		}, "rec/old.json: orphan"},
		"another text": {rehash(func(t *testing.T, dir string, _ *golden.Recording) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "hello.json"), []byte(`{"text":"hullo","token_ids":[1],"output_ids":[1]}`), 0o666))
		}), "rec/hello.layers.bin: fingerprint"},
		"another output": {rehash(func(t *testing.T, dir string, _ *golden.Recording) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "hello.json"), []byte(`{"text":"hello","token_ids":[1],"output_ids":[2]}`), 0o666))
		}), "rec/hello.logits.bin: row 0: got its largest logit at 1, want at the output token 2"},
		"another engine": {rehash(func(t *testing.T, dir string, _ *golden.Recording) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "engine.json"), []byte(`{"name":"mine","layers":"f32","logits":"f32"}`), 0o666))
		}), `rec/engine.json: engine: got mine  in "", want torch 2 in "float32"`},
		"a row less in the precision": {func(_ *testing.T, _ string, r *golden.Recording) {
			r.Precision.Cases["hello"] = golden.RowPrecision{Layers: []float64{0}, Logits: []float64{0}}
		}, "rec/hello.layers.bin: rows: got 2, want 1"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "rec")
			r := recordingOf(t, dir)
			tt.change(t, dir, r)
			writeManifest(t, dir, r)
			_, err := golden.OpenFolder(dir)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

// TestRecordingRefusesACheckpoint: another model than the one recorded from.
func TestRecordingRefusesACheckpoint(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rec")
	set, err := golden.NewRecording(os.DirFS(dir), recordingOf(t, dir))
	require.NoError(t, err)
	with := func(name, data string) fs.FS {
		m := maps.Clone(model())
		m[name] = &fstest.MapFile{Data: []byte(data)}
		return m
	}
	without := model()
	delete(without, "tokenizer.json")
	for want, checkpoint := range map[string]fs.FS{
		"mine/model.safetensors: sha256":              with("model.safetensors", "wEights"),
		"mine/model.safetensors: length: got 5 bytes": with("model.safetensors", "short"),
		"mine/tokenizer.json: file":                   without,
		"mine/more.safetensors: orphan":               with("more.safetensors", "x"),
		"mine/chat_template.jinja: orphan":            with("chat_template.jinja", "x"),
		"mine: checkpoint: got none, want the folder": nil,
	} {
		problems := set.Verify(golden.Inputs{Checkpoint: checkpoint})
		require.Len(t, problems, 1, want)
		assert.ErrorContains(t, &problems[0], want)
	}
	assert.Empty(t, set.Verify(golden.Inputs{Checkpoint: with("README.md", "another")}), "a file that says nothing of the model")
}

func TestCheckpointFilesOfAGGUF(t *testing.T) {
	files, err := golden.CheckpointFiles(fstest.MapFS{"a.gguf": {}, "notes.txt": {}})
	require.NoError(t, err)
	require.Equal(t, []string{"a.gguf"}, files)
}

// TestRecordingRefusesManifests: a manifest that says too little, or too much.
func TestRecordingRefusesManifests(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rec")
	clean := recordingOf(t, dir)
	for name, tt := range map[string]struct {
		change func(r *golden.Recording)
		want   string
	}{
		"schema":            {func(r *golden.Recording) { r.Schema = "plumbline-recording-v2" }, "schema: got plumbline-recording-v2"},
		"set":               {func(r *golden.Recording) { r.Set = "other" }, "set: got other, want rec"},
		"no engine":         {func(r *golden.Recording) { r.Engine.Name = "" }, "engine.name: got none"},
		"bfloat16":          {func(r *golden.Recording) { r.Engine.DType = "bfloat16" }, `engine.dtype: got "bfloat16"`},
		"no case":           {func(r *golden.Recording) { r.Cases = nil }, "cases: got none"},
		"case twice":        {func(r *golden.Recording) { r.Cases = []string{"hello", "hello"} }, "precision.cases: got 1, want 2"},
		"no checkpoint":     {func(r *golden.Recording) { r.Checkpoint.Files = nil }, "checkpoint.files: got none"},
		"a loose precision": {func(r *golden.Recording) { r.Precision.Cases["hello"].Layers[1] = 0.01 }, "precision of case hello: got 0.01, want 0 to 0.0001"},
		"a negative one":    {func(r *golden.Recording) { r.Precision.Cases["hello"].Logits[0] = -1 }, "precision of case hello: got -1"},
		"none of logits": {func(r *golden.Recording) {
			r.Precision.Cases["hello"] = golden.RowPrecision{Layers: []float64{0, 0}}
		}, "got 0 rows of logits"},
		"no hash of the rows":  {func(r *golden.Recording) { delete(r.Goldens.Files, "hello.layers.bin") }, "goldens.files: got no hello.layers.bin"},
		"a hash of nothing":    {func(r *golden.Recording) { r.Goldens.Files["x.bin"] = r.Goldens.Files["hello.json"] }, "goldens.files: got x.bin"},
		"a short hash":         {func(r *golden.Recording) { r.Checkpoint.Files["config.json"] = golden.FileHash{SHA256: "ab"} }, "hash of config.json"},
		"a path":               {func(r *golden.Recording) { r.Checkpoint.Files["../x"] = r.Checkpoint.Files["config.json"] }, "hash of ../x"},
		"a hash of no prompts": {func(r *golden.Recording) { r.Prompts = &golden.PathHash{Path: "p.jsonl"} }, "hash of p.jsonl"},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := json.Marshal(clean)
			require.NoError(t, err)
			var r golden.Recording
			require.NoError(t, json.Unmarshal(data, &r))
			tt.change(&r)
			writeManifest(t, dir, &r)
			_, err = golden.OpenFolder(dir)
			var bad *golden.ManifestError
			require.ErrorAs(t, err, &bad)
			require.ErrorContains(t, err, tt.want)
		})
	}
	_, err := golden.ParseRecording("m", []byte(`{"schema":"plumbline-recording-v1","more":1}`))
	require.ErrorContains(t, err, `unknown field "more"`)
	writeManifest(t, dir, clean)
	pin := filepath.Join(filepath.Dir(dir), "rec.manifest.json.sha256")
	require.NoError(t, os.WriteFile(pin, []byte("0  rec.manifest.json\n"), 0o666))
	_, err = golden.OpenFolder(dir)
	require.ErrorContains(t, err, "rec.manifest.json: sha256")
}
