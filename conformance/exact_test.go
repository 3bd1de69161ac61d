package conformance_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/dumpfmt"
)

// writeInt8Folder writes two cases of a 3-row, 4-wide int8 engine.
func writeInt8Folder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "dump")
	w, err := dumpfmt.CreateFolder(dir, dumpfmt.EngineFile{Name: "toy", Layers: "int8-scaled", Logits: "i32"}, dumpfmt.WriteOptions{})
	require.NoError(t, err)
	for k, name := range []string{"alpha", "beta"} {
		c, err := w.Case(name, dumpfmt.CaseFile{Text: name, TokenIDs: []int{1, 2 + k}})
		require.NoError(t, err)
		lw, err := c.Int8Layers(3, 4)
		require.NoError(t, err)
		for i := range 3 {
			require.NoError(t, lw.WriteRow(dumpfmt.Scale{M: 1 << 30, E: int64(-37 + i)}, []int8{1, -2, int8(3 + i), 127}))
		}
		require.NoError(t, lw.Commit())
		gw, err := c.Int32Logits(dumpfmt.LogitHeader{Rows: 1, Vocab: 3})
		require.NoError(t, err)
		require.NoError(t, gw.WriteRow([]int32{7, 8, 9}))
		require.NoError(t, gw.Commit())
		require.NoError(t, c.Commit())
	}
	return dir
}

func copyFolder(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	require.NoError(t, os.CopyFS(to, os.DirFS(from)))
	return to
}

// poke changes one byte of a file.
func poke(t *testing.T, path string, offset int64, to byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NotEqual(t, to, b[offset], "the poke must change something")
	b[offset] = to
	require.NoError(t, os.WriteFile(path, b, 0o644))
}

func TestExactNamesTheFirstDifference(t *testing.T) {
	golden := writeInt8Folder(t)
	const rowBytes = 8 + 8 + 4
	for _, tc := range []struct {
		name    string
		change  func(t *testing.T, dir string)
		want    conformance.Conclusion
		row     int // -1: null
		channel int
		file    string
	}{
		{"identical", func(*testing.T, string) {}, conformance.Conforms, -1, -1, ""},
		{"one code", func(t *testing.T, dir string) { poke(t, filepath.Join(dir, "beta.layers.bin"), 32+rowBytes+16+2, 5) },
			conformance.Fails, 1, 2, "beta.layers.bin"},
		{"one exponent, codes intact", func(t *testing.T, dir string) {
			poke(t, filepath.Join(dir, "alpha.layers.bin"), 32+2*rowBytes+8, 0xde) // -35 is 0xdd, -34 is 0xde
		}, conformance.Fails, 2, -1, "alpha.layers.bin"},
		{"one logit", func(t *testing.T, dir string) { poke(t, filepath.Join(dir, "alpha.logits.bin"), 16, 1) },
			conformance.Fails, -1, 0, "alpha.logits.bin"},
		{"truncated", func(t *testing.T, dir string) {
			require.NoError(t, os.Truncate(filepath.Join(dir, "alpha.layers.bin"), 60))
		}, conformance.Fails, -1, -1, "alpha.layers.bin"},
		{"a case gone", func(t *testing.T, dir string) {
			for _, ext := range []string{".json", ".layers.bin", ".logits.bin"} {
				require.NoError(t, os.Remove(filepath.Join(dir, "beta"+ext)))
			}
		}, conformance.Fails, -1, -1, ""},
		{"a dump gone", func(t *testing.T, dir string) { require.NoError(t, os.Remove(filepath.Join(dir, "beta.logits.bin"))) },
			conformance.Fails, -1, -1, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cand := copyFolder(t, golden)
			tc.change(t, cand)
			rep, err := conformance.Exact(t.Context(), golden, cand)
			require.NoError(t, err)
			assert.Equal(t, tc.want, rep.Conclusion)
			if tc.row < 0 {
				assert.Nil(t, rep.FirstBadRow)
			} else if assert.NotNil(t, rep.FirstBadRow) {
				assert.Equal(t, tc.row, *rep.FirstBadRow)
			}
			if tc.want == conformance.Conforms {
				assert.Empty(t, rep.Failures())
				assert.Equal(t, 4, rep.Executed, "two cases, layers and logits each")
				return
			}
			require.NotEmpty(t, rep.Failures())
			f := rep.Failures()[0]
			if tc.file != "" {
				require.NotEmpty(t, f.Findings)
				assert.Equal(t, tc.file, filepath.Base(f.Findings[0].At.File))
				assert.Equal(t, tc.channel, f.Findings[0].At.Channel)
			}
		})
	}
}

func TestExactRefusesAGoldenThatCannotBeRead(t *testing.T) {
	dir := writeInt8Folder(t)
	golden := copyFolder(t, dir)
	require.NoError(t, os.Truncate(filepath.Join(golden, "alpha.layers.bin"), 60))
	_, err := conformance.Exact(t.Context(), golden, dir)
	require.Error(t, err)
	assert.Contains(t, err.Error(), "alpha.layers.bin")
	_, err = conformance.Exact(t.Context(), filepath.Join(dir, "nowhere"), dir)
	require.Error(t, err)
	_, err = conformance.Exact(t.Context(), dir, filepath.Join(dir, "nowhere"))
	require.Error(t, err)
}

// withProbes writes one case with a layer dump and a probe file.
func withProbes(t *testing.T, value float32, outputIDs []int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "dump")
	w, err := dumpfmt.CreateFolder(dir, dumpfmt.EngineFile{Name: "toy", Layers: "f32"}, dumpfmt.WriteOptions{})
	require.NoError(t, err)
	c, err := w.Case("alpha", dumpfmt.CaseFile{Text: "alpha", TokenIDs: []int{1, 2}, OutputIDs: outputIDs})
	require.NoError(t, err)
	l, err := c.FloatLayers(1, 2)
	require.NoError(t, err)
	require.NoError(t, l.WriteRow([]float32{1, 2}))
	require.NoError(t, l.Commit())
	p, err := c.Probes([]dumpfmt.TensorSpec{{Name: "embed", DType: dumpfmt.F32, Shape: []int{2, 3}}})
	require.NoError(t, err)
	require.NoError(t, p.WriteFloat32s("embed", []float32{0, 1, 2, 3, value, 5}))
	require.NoError(t, p.Commit())
	require.NoError(t, c.Commit())
	return dir
}

func TestExactComparesProbesAndTokens(t *testing.T) {
	golden := withProbes(t, 4, []int{7, 8})
	for _, tc := range []struct {
		name      string
		candidate string
		id        string // "" conforms
		row       int
		channel   int
	}{
		{"same", withProbes(t, 4, []int{7, 8}), "", 0, 0},
		{"one probe value", withProbes(t, 4.5, []int{7, 8}), "ExactProbes", 1, 1},
		{"another token", withProbes(t, 4, []int{7, 9}), "ExactTokens", 1, -1},
		{"tokens not told", withProbes(t, 4, nil), "ExactTokens", 0, -1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rep, err := conformance.Exact(t.Context(), golden, tc.candidate)
			require.NoError(t, err)
			if tc.id == "" {
				assert.Equal(t, conformance.Conforms, rep.Conclusion)
				return
			}
			assert.Equal(t, conformance.Fails, rep.Conclusion)
			require.Len(t, rep.Failures(), 1)
			f := rep.Failures()[0]
			assert.Equal(t, tc.id, f.ID)
			assert.Equal(t, tc.row, f.Findings[0].At.Row)
			assert.Equal(t, tc.channel, f.Findings[0].At.Channel)
		})
	}
	gone := withProbes(t, 4, []int{7, 8})
	require.NoError(t, os.Remove(filepath.Join(gone, "alpha.probes.safetensors")))
	rep, err := conformance.Exact(t.Context(), golden, gone)
	require.NoError(t, err)
	assert.Equal(t, conformance.Fails, rep.Conclusion, "a probe file that the candidate lacks")
}

func TestExactNotesWhatItDoesNotCompare(t *testing.T) {
	golden := writeInt8Folder(t)
	cand := copyFolder(t, golden)
	path := filepath.Join(cand, "alpha.layers.bin")
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append(b, 1, 2, 3), 0o600))
	rep, err := conformance.Exact(t.Context(), golden, cand)
	require.NoError(t, err)
	assert.Equal(t, conformance.Conforms, rep.Conclusion)
	require.Len(t, rep.Notes, 1)
	assert.Contains(t, rep.Notes[0], "3 bytes after the rows")
}
