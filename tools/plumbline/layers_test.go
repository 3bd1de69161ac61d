package main

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
)

// fake is a reference of two layers whose outputs are given.
type fake struct {
	engine.Reference
	rows, whole       [][]float64
	hidden, embedding []float64
	norm              []float64 // nil for the hidden state
	err               error
	probes            map[engine.Probe]engine.Matrix
}

type fakeTrace struct {
	engine.Trace
	rows [][]float64
}

func (t fakeTrace) Rows() [][]float64 { return t.rows }

func (f *fake) Capture(context.Context, []int) (engine.Trace, error) {
	return fakeTrace{rows: f.rows}, nil
}
func (f *fake) CaptureWholeStep(context.Context, []int) ([][]float64, error) { return f.whole, f.err }
func (f *fake) LastHidden(context.Context, []int) ([]float64, error)         { return f.hidden, nil }
func (f *fake) Embedding(int) ([]float64, error)                             { return f.embedding, nil }
func (f *fake) FinalNorm(context.Context, []float64) ([]float64, error) {
	if f.norm == nil {
		return f.hidden, nil
	}
	return f.norm, nil
}
func (f *fake) Describe() engine.Info { return engine.Info{} }

func (f *fake) CaptureProbes(context.Context, []int, []int, []engine.Probe) (map[engine.Probe]engine.Matrix, error) {
	return f.probes, f.err
}

func healthy() *fake {
	return &fake{
		rows:      [][]float64{{1, 2}, {3, 4}, {5, 6}},
		whole:     [][]float64{{1, 2}, {3, 4}, {5, 6}},
		hidden:    []float64{0.6, 0.8},
		embedding: []float64{1, 2},
	}
}

// No dump is written when a self-check fails, and what was passed before it is
// still told.
func TestNoDumpWhenASelfCheckFails(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(*fake)
		lines int
		says  string
	}{
		{"healthy", func(*fake) {}, 4, ""},
		{"the last row is the normed state", func(f *fake) { f.hidden = f.rows[2] }, 1, "endpoint_self_check: row 2"},
		{"a hidden state that is NaN", func(f *fake) { f.hidden = []float64{0.6, math.NaN()} }, 1, "endpoint_self_check: row 2: channel 1 of the state after the final norm: got NaN"},
		{"a last row that doesn't give the hidden state", func(f *fake) { f.norm = []float64{0.6, 0.9} }, 1, "endpoint_self_check: row 2: channel 1: its final norm is 0.9"},
		{"another token's embedding", func(f *fake) { f.embedding = []float64{1, 3} }, 1, "endpoint_self_check: row 0"},
		{"an inner row is stale", func(f *fake) { f.whole[1] = []float64{3, 5} }, 2, "interior_row_oracle: row 1"},
		{"NaN", func(f *fake) { f.rows[1][0] = math.NaN() }, 0, "capture: row 1"},
		{"the run breaks", func(f *fake) { f.err = errors.New("stalled") }, 2, "stalled"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "x.bin")
			ref := healthy()
			tt.spoil(ref)
			var out, stderr bytes.Buffer
			err := writeCapture(context.Background(), &app{stdout: &out, stderr: &stderr}, ref, engine.Case{Text: "x", TokenIDs: []int{1}}, layersFlags{dump: path})
			require.Equal(t, tt.lines, bytes.Count(out.Bytes(), []byte("\n")), out.String())
			if tt.says == "" {
				require.NoError(t, err)
				st, err := os.Stat(path)
				require.NoError(t, err)
				require.Equal(t, int64(32+3*2*4), st.Size())
				return
			}
			require.ErrorContains(t, err, tt.says)
			require.Equal(t, exitBroken, exitCode(err))
			entries, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Empty(t, entries)
		})
	}
}

func TestExistingDumpIsFoundBeforeTheWork(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.bin")
	require.NoError(t, writeFile(path, nil))
	require.ErrorIs(t, (&app{}).mayWrite("dump", path), fs.ErrExist)
	require.NoError(t, (&app{overwrite: true}).mayWrite("dump", path))
}
