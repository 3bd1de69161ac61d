package golden_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/golden"
)

func plainFolder(t *testing.T, layers string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "rec")
	w, err := dumpfmt.CreateFolder(dir, dumpfmt.EngineFile{Name: "torch", Layers: layers}, dumpfmt.WriteOptions{})
	require.NoError(t, err)
	c, err := w.Case("hello", dumpfmt.CaseFile{Text: "hello", TokenIDs: []int{1}})
	require.NoError(t, err)
	if layers == dumpfmt.LayersFloat32 {
		l, err := c.FloatLayers(2, 2)
		require.NoError(t, err)
		require.NoError(t, l.WriteRow([]float32{1, 2}))
		require.NoError(t, l.WriteRow([]float32{3, 4}))
		require.NoError(t, l.Commit())
	} else {
		l, err := c.Int8Layers(1, 2)
		require.NoError(t, err)
		require.NoError(t, l.WriteRow(dumpfmt.Scale{M: 1 << 30, E: -36}, []int8{1, 2}))
		require.NoError(t, l.Commit())
	}
	require.NoError(t, c.Commit())
	return dir
}

func TestOpenFolderWithoutAManifest(t *testing.T) {
	dir := plainFolder(t, dumpfmt.LayersFloat32)
	set, err := golden.OpenFolder(dir)
	require.NoError(t, err)
	assert.True(t, set.Plain())
	assert.Equal(t, "torch", set.Engine())
	assert.True(t, set.Has("hello"))
	assert.Nil(t, set.LayerFloor("hello"))
	d, err := set.Layers("hello")
	require.NoError(t, err)
	row := make([]float64, 2)
	require.NoError(t, d.Row64(1, row))
	assert.Equal(t, []float64{3, 4}, row)

	// A dump that changes under the run is noticed.
	path := filepath.Join(dir, "hello.layers.bin")
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	b[40] ^= 1
	require.NoError(t, os.WriteFile(path, b, 0o600))
	_, err = set.Layers("hello")
	require.Error(t, err)

	require.NoError(t, os.Truncate(path, 35))
	_, err = golden.OpenFolder(dir)
	require.Error(t, err)
	assert.Contains(t, err.Error(), "hello.layers.bin")

	int8s, err := golden.OpenFolder(plainFolder(t, dumpfmt.LayersInt8Scaled))
	require.NoError(t, err)
	assert.False(t, int8s.Has("hello"), "int8 rows are nothing to hold a float engine to")
}

func TestOpenFolderWithAManifestHoldsItToIt(t *testing.T) {
	copied := t.TempDir()
	for _, name := range []string{"qwen2-trained.manifest.json", "qwen2-trained.manifest.json.sha256"} {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(copied, name), b, 0o600))
	}
	dir := filepath.Join(copied, "qwen2-trained")
	require.NoError(t, os.CopyFS(dir, os.DirFS("qwen2-trained")))
	set, err := golden.OpenFolder(dir)
	require.NoError(t, err)
	assert.False(t, set.Plain())
	assert.Equal(t, "transformers", set.Engine())
	assert.NotEmpty(t, set.LayerFloor("mutex"))

	path := filepath.Join(dir, "mutex.json")
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	b[20] ^= 1
	require.NoError(t, os.WriteFile(path, b, 0o600))
	_, err = golden.OpenFolder(dir)
	require.Error(t, err)
	assert.Contains(t, err.Error(), "mutex.json")
}
