package bisect_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// The rows of case a and c. The int8 side is codes * 3 * 2^-1.
var (
	refRows   = [][]float32{{1, 2, 3, 4}, {2, 1, 4, 3}, {0.5, -1, 2, 8}}
	candCodes = [][]int8{{1, 2, 3, 5}, {3, 1, 3, 4}, {1, -1, 2, 6}}
	scale     = dumpfmt.Scale{M: 3, E: -1}
)

// floatFolder writes one case per name with the given rows.
func floatFolder(t *testing.T, rows [][]float32, names ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "ref")
	w, err := dumpfmt.CreateFolder(dir, dumpfmt.EngineFile{Name: "float", Layers: dumpfmt.LayersFloat32}, dumpfmt.WriteOptions{})
	require.NoError(t, err)
	for _, name := range names {
		c := startCase(t, w, name)
		d, err := c.FloatLayers(len(rows), len(rows[0]))
		require.NoError(t, err)
		for _, r := range rows {
			require.NoError(t, d.WriteRow(r))
		}
		require.NoError(t, d.Commit())
		require.NoError(t, c.Commit())
	}
	return dir
}

func int8Folder(t *testing.T, names ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "cand")
	w, err := dumpfmt.CreateFolder(dir, dumpfmt.EngineFile{Name: "int8", Layers: dumpfmt.LayersInt8Scaled}, dumpfmt.WriteOptions{})
	require.NoError(t, err)
	for _, name := range names {
		c := startCase(t, w, name)
		d, err := c.Int8Layers(len(candCodes), len(candCodes[0]))
		require.NoError(t, err)
		for _, codes := range candCodes {
			require.NoError(t, d.WriteRow(scale, codes))
		}
		require.NoError(t, d.Commit())
		require.NoError(t, c.Commit())
	}
	return dir
}

func startCase(t *testing.T, w *dumpfmt.FolderWriter, name string) *dumpfmt.CaseWriter {
	t.Helper()
	prompt := "prompt of " + name
	c, err := w.Case(name, dumpfmt.CaseFile{Text: "<s>" + name, TokenIDs: []int{1, 2}, Prompt: &prompt})
	require.NoError(t, err)
	return c
}

func open(t *testing.T, dir string) *dumpfmt.Folder {
	t.Helper()
	f, err := dumpfmt.OpenFolder(dir)
	require.NoError(t, err)
	return f
}
