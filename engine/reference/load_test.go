package reference_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
)

// loadBoth loads a folder from disk and from memory.
func loadBoth(t *testing.T, f files) []*reference.Checkpoint {
	t.Helper()
	disk, err := reference.Load(f.onDisk(t))
	require.NoError(t, err)
	mem, err := reference.LoadFS(f.inMemory(), ".")
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, disk.Close())
		require.NoError(t, mem.Close())
	})
	return []*reference.Checkpoint{disk, mem}
}

func requireTensors(t *testing.T, w engine.Weights, want map[string]engine.Tensor) {
	t.Helper()
	for name, tensor := range want {
		got, err := w.Tensor(name)
		require.NoError(t, err)
		require.Equal(t, tensor.Shape, got.Shape, name)
		require.Len(t, got.Data, len(tensor.Data), name)
		for i := range tensor.Data {
			if math.Float32bits(got.Data[i]) != math.Float32bits(tensor.Data[i]) {
				t.Fatalf("%s: element %d: got %v, want %v", name, i, got.Data[i], tensor.Data[i])
			}
		}
	}
}

func TestLoadReadsBothConfigStylesAndAllDTypes(t *testing.T) {
	want := modelWeights()
	arch := smallArch()
	arch.FinalNormEps = 1e-5
	for n := range arch.PerLayer {
		arch.PerLayer[n] = engine.LayerParams{RopeTheta: 20000, NormEps: 1e-5}
	}
	for style, config := range map[string]string{"new": configNew, "old": configOld} {
		for _, dtype := range []string{"F32", "BF16", "F16"} {
			t.Run(style+" "+dtype, func(t *testing.T) {
				f := files{"config.json": []byte(config), "model.safetensors": safetensorsFile(t, dtype, want)}
				for _, c := range loadBoth(t, f) {
					require.Equal(t, arch, c.Arch())
					require.Equal(t, "bfloat16", c.DType())
					require.Empty(t, c.UnusedKeys())
					require.Empty(t, c.UnusedTensors())
					requireTensors(t, c, want)
					_, err := c.Tensor("model.layers.3.mlp.up_proj.weight")
					var missing *engine.ConfigError
					require.ErrorAs(t, err, &missing)
					require.ErrorContains(t, err, "tensor model.layers.3.mlp.up_proj.weight: got nothing")
				}
			})
		}
	}
}

// TestOpenRunsACheckpoint: the loaded model computes what the same weights in
// memory do.
func TestOpenRunsACheckpoint(t *testing.T) {
	dir := goodModel(t).onDisk(t)
	e, err := reference.Open(dir)
	require.NoError(t, err)
	require.Equal(t, filepath.Base(dir), e.Describe().Model)
	ids := []int{1, 49, 3}
	mem := &memWeights{e.Weights().Arch(), modelWeights()}
	require.True(t, sameBits(capture(t, e, ids).Rows(), capture(t, mustNew(t, mem), ids).Rows()))
	_, err = reference.Open(filepath.Join(dir, "nowhere"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = reference.Open(dir, reference.WithDType("int8"))
	require.ErrorContains(t, err, `got "int8"`)
}

// sharded splits the model into two files and an index.
func sharded(t testing.TB) files {
	parts := [2]map[string]engine.Tensor{{}, {}}
	names := [2]string{"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}
	index := map[string]string{}
	for name, tensor := range modelWeights() {
		i := 0
		if strings.Contains(name, "layers.2.") {
			i = 1
		}
		parts[i][name], index[name] = tensor, names[i]
	}
	js, err := json.Marshal(map[string]any{"metadata": map[string]any{"total_size": 1}, "weight_map": index})
	require.NoError(t, err)
	return files{"config.json": []byte(configNew), "model.safetensors.index.json": js,
		names[0]: safetensorsFile(t, "F32", parts[0]), names[1]: safetensorsFile(t, "BF16", parts[1])}
}

func TestLoadReadsShards(t *testing.T) {
	for _, c := range loadBoth(t, sharded(t)) {
		requireTensors(t, c, modelWeights())
	}
}

func TestLoadResolvesAHubCache(t *testing.T) {
	inCache := func(revisions ...string) files {
		f := files{"refs/main": []byte("abc")}
		for _, r := range revisions {
			for name, data := range goodModel(t) {
				f["snapshots/"+r+"/"+name] = data
			}
		}
		return f
	}
	for _, c := range loadBoth(t, inCache("abc")) {
		require.Equal(t, "abc", c.Name())
		requireTensors(t, c, modelWeights())
	}
	// Snapshots are links into blobs/ in a real cache.
	dir := inCache("abc").onDisk(t)
	file := filepath.Join(dir, "snapshots", "abc", "model.safetensors")
	require.NoError(t, os.Rename(file, filepath.Join(dir, "blob")))
	require.NoError(t, os.Symlink(filepath.Join("..", "..", "blob"), file))
	c, err := reference.Load(dir)
	require.NoError(t, err)
	requireTensors(t, c, modelWeights())
	require.NoError(t, c.Close())

	two := inCache("abc", "def")
	_, err = reference.Load(two.onDisk(t))
	requireConfigError(t, err, "snapshots: got 2 (abc, def), want exactly one")
	_, err = reference.LoadFS(two.inMemory(), ".")
	requireConfigError(t, err, "snapshots: got 2 (abc, def), want exactly one")
	c, err = reference.LoadFS(two.inMemory(), "snapshots/def")
	require.NoError(t, err)
	require.Equal(t, "def", c.Name())

	none := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(none, "snapshots"), 0o755))
	_, err = reference.Load(none)
	requireConfigError(t, err, "snapshots: got 0, want exactly one")
}

func TestLoadReportsWhatItDoesNotUse(t *testing.T) {
	w := modelWeights()
	w["lm_head.weight"] = w["model.embed_tokens.weight"]
	w["model.layers.0.self_attn.rotary_emb.inv_freq"] = engine.Tensor{Shape: []int{2}, Data: []float32{1, 2}}
	config := strings.Replace(configNew, `"rope_type":"default"`, `"rope_type":"default","mystery":1`, 1)
	config = strings.Replace(config, `"model_type"`, `"Hidden_Size":7,"sauce":"special","model_type"`, 1)
	for _, c := range loadBoth(t, files{"config.json": []byte(config), "model.safetensors": safetensorsFile(t, "F32", w)}) {
		require.Equal(t, []string{"Hidden_Size", "rope_parameters.mystery", "sauce"}, c.UnusedKeys())
		require.Equal(t, []string{"lm_head.weight", "model.layers.0.self_attn.rotary_emb.inv_freq"}, c.UnusedTensors())
		require.Equal(t, 24, c.Arch().Hidden)
	}
}

func ExampleLoadFS() {
	checkpoint, err := reference.LoadFS(goodModel(&testing.T{}).inMemory(), ".") // or an embed.FS
	if err != nil {
		fmt.Println(err)
		return
	}
	defer checkpoint.Close()
	a := checkpoint.Arch()
	fmt.Println(a.Family, a.Layers, a.Hidden, checkpoint.UnusedKeys())
	// Output: qwen2 3 24 []
}
