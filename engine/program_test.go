package engine_test

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/internal/seeded"
	"github.com/plumbline-go/plumbline/engine/quant"
	"github.com/plumbline-go/plumbline/fixtures"
)

// record writes what a candidate answers to the cases into a folder of
// recordings, as testdata's two programs read it: int8 dumps, bit for bit.
func record(t *testing.T, c engine.Candidate, cases []engine.Case) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "engine.json"), []byte(`{"name": "recorded", "layers": "int8-scaled", "kv_cache": "int8"}`), 0o666))
	for _, k := range cases {
		resp, err := c.Run(t.Context(), engine.Request{Case: k})
		require.NoError(t, err)
		h := resp.Layers.Header()
		w, err := dumpfmt.CreateInt8Layers(filepath.Join(dir, k.Name+".layers.bin"),
			dumpfmt.LayerHeader{Rows: h.Rows, Width: h.Width, Fingerprint: h.Fingerprint, Mode: h.Mode}, dumpfmt.WriteOptions{})
		require.NoError(t, err)
		row, codes := make([]float64, h.Width), make([]int8, h.Width)
		for i := range h.Rows {
			step, err := resp.Layers.Row(i, row)
			require.NoError(t, err)
			for j, x := range row {
				codes[j] = int8(math.Round(x / step))
			}
			m, e := math.Frexp(step) // m*2^53 is an integer
			require.NoError(t, w.WriteRow(dumpfmt.Scale{M: int64(m * (1 << 53)), E: int64(e - 53)}, codes))
		}
		require.NoError(t, w.Commit())
		require.NoError(t, resp.Close())
		ids := strings.Trim(strings.ReplaceAll(fmt.Sprint(k.TokenIDs), " ", "\n"), "[]") + "\n"
		require.NoError(t, os.WriteFile(filepath.Join(dir, k.Name+".ids"), []byte(ids), 0o666))
	}
	return dir
}

// TestProgramsAreCandidates: a short shell script and a short Python program
// carry an engine's answer through exec and protocol without changing a bit.
func TestProgramsAreCandidates(t *testing.T) {
	w, err := seeded.Weights()
	require.NoError(t, err)
	emulation := quant.FromWeights(w, quant.KVCacheInt8()).Candidate(engine.Scheme{RowsInt8: true})
	cases, err := fixtures.SeededPrompts()
	require.NoError(t, err)
	known, unknown := cases[:3], cases[3]
	recordings := record(t, emulation, known)

	type program interface {
		engine.Candidate
		Close() error
	}
	for name, open := range map[string]func(t *testing.T) program{
		"a shell script through exec": func(t *testing.T) program {
			e, err := engine.Exec("sh testdata/exec_candidate.sh '"+recordings+"' {ids_file} {dir}", engine.ProgramOptions{TempDir: t.TempDir()})
			require.NoError(t, err)
			return nothingToClose{e}
		},
		"a Python program through the protocol": func(t *testing.T) program {
			python, err := exec.LookPath("python3")
			if err != nil {
				t.Skip("no python3 on this machine: the protocol is shown by the fakes in Go alone")
			}
			p, err := engine.Protocol("'"+python+"' testdata/protocol_candidate.py '"+recordings+"'", engine.ProgramOptions{TempDir: t.TempDir()})
			require.NoError(t, err)
			return p
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := open(t)
			info, err := p.Info(t.Context())
			require.NoError(t, err)
			require.Equal(t, engine.Info{Name: "recorded", Layers: engine.LayersInt8Scaled, KVCache: "int8"}, info)
			for _, k := range known {
				got, err := p.Run(t.Context(), engine.Request{Case: k})
				require.NoError(t, err)
				want, err := emulation.Run(t.Context(), engine.Request{Case: k})
				require.NoError(t, err)
				require.Equal(t, want.Layers.Header(), got.Layers.Header())
				h := want.Layers.Header()
				a, b := make([]float64, h.Width), make([]float64, h.Width)
				for i := range h.Rows {
					wantStep, err := want.Layers.Row(i, a)
					require.NoError(t, err)
					step, err := got.Layers.Row(i, b)
					require.NoError(t, err)
					if step != wantStep {
						t.Fatalf("case %s, row %d: got step %v, want %v", k.Name, i, step, wantStep)
					}
					for j := range a {
						if a[j] != b[j] {
							t.Fatalf("case %s, row %d, channel %d: got %v, want %v", k.Name, i, j, b[j], a[j])
						}
					}
				}
				require.NoError(t, got.Close())
			}
			_, err = p.Run(t.Context(), engine.Request{Case: unknown})
			var un *engine.UnsupportedError
			require.ErrorAs(t, err, &un)
			require.Equal(t, "no recording of this prompt", un.Why)
			require.NoError(t, p.Close())
		})
	}
}

type nothingToClose struct{ *engine.ExecCandidate }

func (nothingToClose) Close() error { return nil }

// TestProgramsAreShort: what an author has to write stays short.
func TestProgramsAreShort(t *testing.T) {
	for _, path := range []string{"testdata/exec_candidate.sh", "testdata/protocol_candidate.py"} {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.LessOrEqual(t, strings.Count(string(data), "\n"), 30, path)
	}
}
