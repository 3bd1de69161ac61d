package main

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"fmt"
	"github.com/plumbline-go/plumbline/golden/kernel"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// writeFigures writes a CSV of gemma4-30 with figures far below every bound, but
// for what change does to a row.
func writeFigures(t *testing.T, path string, change func(r *kernel.Row, step int)) {
	t.Helper()
	inv := kernel.Gemma4()
	var b bytes.Buffer
	w, err := kernel.NewCSVWriter(&b, inv)
	require.NoError(t, err)
	for i := range inv.Len() {
		r := kernel.Row{Key: inv.Key(i), Figures: kernel.Figures{MaxAbs: 1e-5, MeanAbs: 1e-6, MSE: 1e-12, NRMSE: 1e-5, RelErrPct: 5e-4, RefMeanAbs: 0.5, CandMeanAbs: 0.5}}
		change(&r, inv.Positions[r.Position].Step)
		require.NoError(t, w.Write(r))
	}
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o666))
}

// The script marks an nRMSE at the bound in the third table and not in the second.
func TestDiffMarksAtTheBound(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFigures(t, "at.csv", func(r *kernel.Row, step int) {
		if r.Layer == 7 && step == 5 && r.Op == opSDPA {
			r.NRMSE, r.MaxAbs = 0.15, 1e-3
		}
		if r.Layer == 8 && step == 5 && r.Op == opSDPA {
			r.NRMSE, r.MaxAbs = 0.1501, 1.1e-3
		}
	})
	var out, errs bytes.Buffer
	require.Equal(t, exitFails, run([]string{"diff", "--from-csv", "at.csv", "--summary", "s.md"}, &out, &errs))
	text, err := os.ReadFile("s.md")
	require.NoError(t, err)
	const small = "1.000000e-05 | 1.000000e-05 | 1.000000e-05 | 1.000000e-05 | 1.000000e-05 | 1.000000e-05 | "
	for _, line := range []string{
		"|  7 | " + small + "1.000000e-03 | 1.500000e-01 |",
		"|  8 | " + small + "**1.100000e-03** | **1.501000e-01** |",
		"|  7 | **1.500000e-01** | **NO** |",
		"|  6 | 1.000000e-05 | YES |",
		"| sdpa_out | 8 | 5 | 1.100000e-03 |",
		"| q_normed | NONE | NONE | NONE — within threshold at all 210 measurements |",
	} {
		assert.Contains(t, string(text), "\n"+line+"\n")
	}
}

func TestDiffJSON(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFigures(t, "x.csv", func(r *kernel.Row, step int) {
		switch {
		case r.Layer == 3 && step == 10 && r.Op == opK:
			r.MaxAbs = 0.5
		case r.Layer == 9 && step == 10 && r.Op == opQ:
			r.MaxAbs = 0.75
		case r.Layer < 10 && step == 30 && r.Op == opSDPA:
			r.NRMSE = 0.2
		}
	})
	var out, errs bytes.Buffer
	require.Equal(t, exitFails, run([]string{"diff", "--from-csv", "x.csv", "--json"}, &out, &errs))
	var j diffJSON
	require.NoError(t, json.Unmarshal(out.Bytes(), &j))
	k, q := &breachJSON{3, 10, 31, "k_normed", 0.5}, &breachJSON{9, 10, 31, "q_normed", 0.75}
	assert.Equal(t, k, j.FirstBreach)
	assert.Equal(t, map[string]*breachJSON{"q_normed": q, "k_normed": k, "v_normed": nil, "sdpa_out": nil}, j.PerOp)
	assert.Equal(t, q, j.Script.Largest)
	assert.Len(t, j.KernelBound.Layers, 30)
	assert.Equal(t, num(0.2), *j.KernelBound.Layers[2].MaxNRMSE)
	assert.Equal(t, 30, *j.KernelBound.Layers[2].Pos)
	assert.False(t, j.KernelBound.Layers[2].Holds)
	assert.True(t, j.KernelBound.Layers[10].Holds)
	assert.Len(t, j.Findings, 2+10)
	assert.Equal(t, 0.15, j.Thresholds.NRMSE.Value)
	assert.NotEmpty(t, j.Thresholds.NRMSE.Source)

	// The text shows the first of many, and how many more there are.
	out.Reset()
	require.Equal(t, exitFails, run([]string{"diff", "--from-csv", "x.csv"}, &out, &errs))
	assert.Contains(t, out.String(), "FAIL  kernel bound: layer=4 pos=30 op=sdpa_out: 2.00e-01, limit 0.15: ")
	assert.NotContains(t, out.String(), "FAIL  kernel bound: layer=5")
	assert.Contains(t, out.String(), "\n      … and 5 more\n")
}

func TestParseSteps(t *testing.T) {
	for text, want := range map[string][]int{"1": {1}, "1,5,10-12": {1, 5, 10, 11, 12}, "2-2": {2}, " 3, 4 ": {3, 4}} {
		got, err := parseSteps(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "0", "x", "1,", "5-4", "1,1", "3-5,4", "-3", "1-99999999999"} {
		_, err := parseSteps(text)
		assert.Error(t, err, text)
	}
}

// Ctrl-C, or a full disk, leaves no half file.
func TestDiffLeavesNoHalfFile(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	writeFigures(t, "x.csv", func(*kernel.Row, int) {})
	data, err := os.ReadFile("x.csv")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("x.csv", append(data, "torn"...), 0o666))
	var out, errs bytes.Buffer
	require.Equal(t, exitFails, run([]string{"diff", "--from-csv", "x.csv", "--csv", "out/y.csv", "--summary", "out/s.md"}, &out, &errs))
	assert.Empty(t, out.String())
	left, err := filepath.Glob("out/*")
	require.NoError(t, err)
	assert.Empty(t, left)
	hidden, err := filepath.Glob("out/.*")
	require.NoError(t, err)
	assert.Empty(t, hidden)
}

// A recorded CSV is the candidate's figures: a malformed one doesn't conform, one that
// can't be read is a broken run.
func TestDiffMalformedCSV(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFigures(t, "mean.csv", func(r *kernel.Row, _ int) { r.MeanAbs = 2 * r.MaxAbs })
	require.NoError(t, os.WriteFile("text.csv", []byte("nothing\n"), 0o666))
	require.NoError(t, os.Mkdir("folder.csv", 0o777))
	for name, want := range map[string]int{"mean.csv": exitFails, "text.csv": exitFails, "folder.csv": exitBroken, "none.csv": exitBroken} {
		var out, errs bytes.Buffer
		assert.Equal(t, want, run([]string{"diff", "--from-csv", name}, &out, &errs), name)
		assert.Empty(t, out.String(), name)
		assert.Contains(t, errs.String(), name)
	}
}

// One file under two names would be written twice, or over what is read.
func TestDiffOneFileTwice(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	writeFigures(t, "x.csv", func(*kernel.Row, int) {})
	require.NoError(t, os.WriteFile("inv.json", []byte("{}"), 0o666))
	require.NoError(t, os.Mkdir("real", 0o777))
	require.NoError(t, os.Symlink("real", "link"))
	before, err := os.ReadFile("x.csv")
	require.NoError(t, err)
	abs := func(name string) string { return filepath.Join(dir, name) }
	for _, args := range [][]string{
		{"--csv", "o/same", "--summary", abs("o/same")},
		{"--csv", "real/same", "--summary", "link/../link/same"},
		{"--csv", abs("x.csv")},
		{"--csv", "./real/../x.csv"},
		{"--summary", abs("x.csv")},
		{"--plots", "o", "--summary", abs("o/nrmse-by-layer.svg")},
		{"--plots", abs("o"), "--csv", "o/nrmse-heatmap.png"},
		{"--inventory", "inv.json", "--csv", abs("inv.json")},
	} {
		var out, errs bytes.Buffer
		if args[0] == "--inventory" {
			require.NoError(t, os.WriteFile("inv.json", []byte(oneTensor), 0o666))
		}
		assert.Equal(t, exitBroken, run(append([]string{"diff", "--from-csv", "x.csv", "--overwrite"}, args...), &out, &errs), "%q", args)
		assert.Contains(t, errs.String(), " for both", "%q", args)
		assert.Empty(t, out.String(), "%q", args)
	}
	after, err := os.ReadFile("x.csv")
	require.NoError(t, err)
	assert.Equal(t, before, after)
	assert.NoDirExists(t, "o")
	left, err := os.ReadDir("real")
	require.NoError(t, err)
	assert.Empty(t, left)
}

const oneTensor = `{"layer_types": {"a": {"heads": 1, "kv_heads": 1, "head_dim": 1}}, "layers": 1, "positions": {"first_pos": 3, "steps": [1]}}`

// A figure that the script makes up for an all-zero reference isn't plotted.
func TestDiffPlotsNoMadeUpFigure(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFigures(t, "x.csv", func(r *kernel.Row, step int) {
		if r.Layer == 7 && step == 5 && r.Op == opSDPA {
			r.Figures = kernel.Figures{MaxAbs: 1e-5, MeanAbs: 1e-6, MSE: 1e-12, RelErrPct: 1e8, CandMeanAbs: 1e-6}
		}
	})
	d := diffReport{inv: kernel.Gemma4(), t: kernel.DefaultThresholds(), flags: diffFlags{fromCSV: "x.csv", plots: "plots"}}
	require.NoError(t, d.run(t.Context(), &app{stdout: io.Discard, stderr: io.Discard}, [2]kernel.Source{}))
	assert.True(t, math.IsNaN(d.grid[7][1]), "%v", d.grid[7][1])
	assert.Equal(t, 1e-5, d.grid[7][0])
}

// A NaN is the worst head, whichever it is in.
func TestHeadsTextNamesTheHeadWithANaN(t *testing.T) {
	for at := range 3 {
		stats := make([]metric.TensorStats, 3)
		for i := range stats {
			stats[i] = metric.TensorStats{SumSqRef: 1, SumSqDiff: float64(i) / 10}
		}
		stats[at].SumSqDiff = math.NaN()
		assert.Contains(t, headsText(tensorHeads{stats: stats}), fmt.Sprintf("in head %d ", at))
	}
}
