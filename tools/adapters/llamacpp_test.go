package adapters_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

const (
	recordings        = "llamacpp/testdata/smollm2"
	recordingsLayers  = 30 // SmolLM2-135M
	recordingsHidden  = 576
	recordingsKV      = 192 // three heads of 64
	recordingsProbed  = 5   // --probe-layers
	recordingsAtMost  = 2 << 20
	recordingsNoFault = recordingsLayers + 1
)

// recordingManifest is what llamacpp/testdata/record.py writes beside the folders.
type recordingManifest struct {
	Model   struct{ File, SHA256 string }
	Folders map[string]recordedFolder
}

type recordedFolder struct {
	Commands []string
	// FirstBadRow is the first dump row that the planted fault changes, nil
	// without a fault; Source the place that it enters by, where that is known.
	FirstBadRow *int    `json:"first_bad_row"`
	Source      *string `json:"source"`
	Files       map[string]string
}

func readManifest(t *testing.T) recordingManifest {
	t.Helper()
	data, err := os.ReadFile(recordings + ".manifest.json")
	require.NoError(t, err)
	var m recordingManifest
	require.NoError(t, json.Unmarshal(data, &m))
	require.NotEmpty(t, m.Folders)
	return m
}

func digest(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// TestLlamaRecordings: the recordings of llama.cpp are those of the manifest,
// read as dump folders do, and each fault begins where it was planted.
func TestLlamaRecordings(t *testing.T) {
	m := readManifest(t)
	entries, err := os.ReadDir(recordings)
	require.NoError(t, err)
	require.Len(t, entries, len(m.Folders))
	total := int64(0)
	clean, cleanProbes := map[string][][]float32{}, map[string]map[string][]float32{} // by text
	for _, faulty := range []bool{false, true} {
		for name, want := range m.Folders {
			if faulty != (want.FirstBadRow != nil) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				dir := filepath.Join(recordings, name)
				files, err := os.ReadDir(dir)
				require.NoError(t, err)
				require.Len(t, files, len(want.Files))
				for _, f := range files {
					require.Equal(t, want.Files[f.Name()], digest(t, filepath.Join(dir, f.Name())), f.Name())
					st, err := f.Info()
					require.NoError(t, err)
					total += st.Size()
				}
				folder, err := dumpfmt.OpenFolder(dir)
				require.NoError(t, err)
				e := folder.Engine()
				require.Equal(t, []string{"llama.cpp", "f32", "Q4_1", "int8 blocks", "f16", m.Model.File},
					[]string{e.Name, e.Layers, e.Weights, e.Activations, e.KVCache, e.Model})
				require.NotEmpty(t, folder.Cases())
				for _, c := range folder.Cases() {
					require.NoError(t, c.Check(), c.Name) // the text's fingerprint is the dump's
					rows, probes := layerRows(t, c), probeValues(t, c, e.Probes)
					for at, row := range rows[:recordingsProbed+1] {
						if v := probes[rowPlace(at)]; len(probes) > 0 {
							assert.True(t, slices.Equal(row, v[len(v)-recordingsHidden:]), "row %d is its probe's last position", at)
						}
					}
					if !faulty {
						clean[c.File.Text], cleanProbes[c.File.Text] = rows, probes
						continue
					}
					require.Contains(t, clean, c.File.Text)
					assert.Equal(t, *want.FirstBadRow, firstDifference(rows, clean[c.File.Text]), c.Name)
					if len(probes) > 0 {
						assert.Equal(t, *want.Source, firstChanged(probes, cleanProbes[c.File.Text]), c.Name)
					}
				}
			})
		}
	}
	require.NotZero(t, total)
	require.LessOrEqual(t, total, int64(recordingsAtMost))
}

func layerRows(t *testing.T, c *dumpfmt.Case) [][]float32 {
	t.Helper()
	d, err := c.OpenFloatLayers()
	require.NoError(t, err)
	defer d.Close()
	rows := make([][]float32, recordingsLayers+1)
	require.Equal(t, []int{recordingsLayers + 1, recordingsHidden}, []int{d.Header().Rows, d.Header().Width})
	for i := range rows {
		rows[i] = make([]float32, recordingsHidden)
		require.NoError(t, d.Row(i, rows[i]))
	}
	return rows
}

// firstDifference is the first row in which two dumps are not the same bits.
func firstDifference(a, b [][]float32) int {
	for i := range a {
		for j := range a[i] {
			if a[i][j] != b[i][j] {
				return i
			}
		}
	}
	return recordingsNoFault
}

// rowPlace names where row at of a layer dump is.
func rowPlace(at int) string {
	if at == 0 {
		return "embed"
	}
	return fmt.Sprintf("blocks.%d.resid_post", at-1)
}

// probed lists the places of the recordings in the order of computation. Two of
// a layer don't depend on each other: k_rope and v.
func probed() []string {
	names := []string{"embed"}
	for n := range recordingsProbed {
		for _, part := range []string{"k_rope", "v", "resid_mid", "resid_post"} {
			names = append(names, fmt.Sprintf("blocks.%d.%s", n, part))
		}
	}
	return names
}

// probeValues reads the probes of a side that declares some: one at each place
// of probed, a row per prompt position.
func probeValues(t *testing.T, c *dumpfmt.Case, declared string) map[string][]float32 {
	t.Helper()
	if declared == "" {
		return nil
	}
	d, err := c.OpenProbes()
	require.NoError(t, err)
	defer d.Close()
	require.Len(t, d.Tensors(), len(probed()))
	require.GreaterOrEqual(t, len(c.File.TokenIDs), 10)
	all := map[string][]float32{}
	for _, name := range probed() {
		width := recordingsHidden
		if strings.HasSuffix(name, ".k_rope") || strings.HasSuffix(name, ".v") {
			width = recordingsKV
		}
		p, err := d.Float32s(name)
		require.NoError(t, err)
		require.Equal(t, int64(len(c.File.TokenIDs)*width), p.Len(), name)
		values := make([]float32, p.Len())
		_, err = p.ReadValues(values, 0)
		require.NoError(t, err)
		all[name] = values
	}
	return all
}

// firstChanged is the most upstream place where two sets of probes are not the
// same bits.
func firstChanged(a, b map[string][]float32) string {
	for _, name := range probed() {
		if !slices.Equal(a[name], b[name]) {
			return name
		}
	}
	return "none"
}

// TestLlamaAdapterWithoutLlama runs the tests of what needs no llama.cpp.
func TestLlamaAdapterWithoutLlama(t *testing.T) {
	unittests(t, "llamacpp")
	help := exec.Command(python(t), "-B", "plumbline_llamacpp.py", "--help")
	help.Dir = "llamacpp"
	out, err := help.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "--rope-freq-base")
}

// realModel names the GGUF that made the recordings; make real sets it.
const realModel = "PLUMBLINE_REAL_GGUF"

// TestReal has the gate judge the recordings with the model that made them: the
// clean ones conform, each fault is found where it was planted.
func TestReal(t *testing.T) {
	gguf := os.Getenv(realModel)
	if gguf == "" {
		t.Skipf("%s isn't set: make real fetches the model", realModel)
	}
	m := readManifest(t)
	require.Equal(t, m.Model.SHA256, digest(t, gguf), "another model than the recordings'")
	exe := filepath.Join(t.TempDir(), "plumbline")
	golang := strings.Fields(os.Getenv("GO")) // as the Makefile's $(GO), which real.sh hands on
	if len(golang) == 0 {
		golang = []string{"go"}
	}
	out, err := exec.Command(golang[0], append(golang[1:], "build", "-o", exe, "../plumbline")...).CombinedOutput()
	require.NoError(t, err, string(out))
	for name, want := range m.Folders {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), exe, "gate", "--json", "--quiet", "--allow-partial", "--model", gguf, "--candidate", filepath.Join(recordings, name))
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			var exit *exec.ExitError
			if err != nil {
				require.ErrorAs(t, err, &exit)
			}
			var got struct {
				Conclusion  string
				FirstBadRow *int `json:"first_bad_row"`
				Source      *string
			}
			require.NoError(t, json.Unmarshal(out, &got), "%s%s", out, stderr.Bytes())
			source := "none"
			if got.Source != nil {
				source = *got.Source
			}
			if want.FirstBadRow == nil {
				conclusion := "partial" // without logits
				for f := range want.Files {
					if strings.HasSuffix(f, ".logits.bin") {
						conclusion = "conforms"
					}
				}
				assert.Equal(t, conclusion, got.Conclusion)
				assert.Equal(t, 0, cmd.ProcessState.ExitCode())
				t.Log(got.Conclusion)
				return
			}
			assert.Equal(t, "fails", got.Conclusion)
			assert.Equal(t, 1, cmd.ProcessState.ExitCode())
			if assert.NotNil(t, got.FirstBadRow) {
				assert.Equal(t, *want.FirstBadRow, *got.FirstBadRow)
				t.Logf("fails at row %d, source %s", *got.FirstBadRow, source)
			}
			if want.Source != nil {
				assert.Equal(t, *want.Source, source)
			}
		})
	}
}
