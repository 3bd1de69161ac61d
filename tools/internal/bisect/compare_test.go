package bisect_test

import (
	"context"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/golden/metric"
	"github.com/plumbline-go/plumbline/tools/internal/bisect"
)

// From scipy.stats.spearmanr and pearsonr, numpy for the rest, on refRows and
// candCodes * 1.5.
var want = []bisect.Row{
	{Index: 0, Spearman: 1, Pearson: 0.982707629823991, MaxZDiff: 0.2781827445542546, RelativeL2: 0.724568837309472, NormRatio: 1.7102631376487067},
	{Index: 1, Spearman: 0.632455532033676, Pearson: 0.7181848464596079, MaxZDiff: 1.112225052629312, RelativeL2: 0.724568837309472, NormRatio: 1.620185174601965},
	{Index: 2, Spearman: 1, Pearson: 0.9902209524921205, MaxZDiff: 0.18881847092189097, RelativeL2: 0.2166365803419133, NormRatio: 1.1681699099994654},
}

func figures(r bisect.Row) []float64 {
	return []float64{r.Spearman, r.Pearson, r.MaxZDiff, r.RelativeL2, r.NormRatio}
}

func checkRows(t *testing.T, got []bisect.Row) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %d rows, want %d", len(got), len(want))
	}
	for i := range want {
		g, w := figures(got[i]), figures(want[i])
		for k := range w {
			if !(math.Abs(g[k]-w[k]) <= 1e-12) {
				t.Errorf("row %d, figure %d: got %v, want %v", i, k, g[k], w[k])
			}
		}
		if got[i].Index != i {
			t.Errorf("row %d: index %d", i, got[i].Index)
		}
	}
}

func TestFloatAgainstInt8(t *testing.T) {
	var steps []string
	cases, err := bisect.Compare(context.Background(), open(t, int8Folder(t, "a", "b")), open(t, floatFolder(t, refRows, "a", "b")),
		func(name string) { steps = append(steps, name) })
	require.NoError(t, err)
	require.Len(t, cases, 2)
	require.Equal(t, []string{"a", "b"}, steps)
	for i, c := range cases {
		require.NoError(t, c.Err)
		require.True(t, c.Compared())
		require.Equal(t, []string{"a", "b"}[i], c.Name)
		require.Equal(t, "prompt of "+c.Name, c.Prompt)
		checkRows(t, c.Rows)
	}
}

// edit changes bytes of a file.
func edit(t *testing.T, path string, f func([]byte) []byte) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, f(data), 0o644))
}

func putU64(off int, v uint64) func([]byte) []byte {
	return func(b []byte) []byte {
		binary.LittleEndian.PutUint64(b[off:], v)
		return b
	}
}

func chain(fs ...func([]byte) []byte) func([]byte) []byte {
	return func(b []byte) []byte {
		for _, f := range fs {
			b = f(b)
		}
		return b
	}
}

// Each fault on case b must name its side, kind, file and row or field, and must
// leave case a alone.
func TestOneBadCaseDoesNotLoseTheOthers(t *testing.T) {
	dropRow := func(b []byte) []byte { return chain(putU64(0, 2))(b[:len(b)-(16+4)]) } // an int8 row is m, e, 4 codes
	narrow := func(b []byte) []byte {                                                  // width 3
		out := append([]byte(nil), b[:32]...)
		for r := range 3 {
			out = append(out, b[32+r*20:32+r*20+19]...)
		}
		return putU64(8, 3)(out)
	}
	tests := []struct {
		name  string
		file  string
		side  bisect.Side
		edit  func([]byte) []byte
		kind  bisect.Kind
		field string
		row   int
	}{
		{"fewer rows", "b.layers.bin", bisect.Candidate, dropRow, bisect.Provenance, "rows", -1},
		{"another width", "b.layers.bin", bisect.Candidate, narrow, bisect.Provenance, "width", -1},
		{"another prompt", "b.layers.bin", bisect.Candidate, putU64(16, 77), bisect.Provenance, "prompt fingerprint", -1},
		{"another mode", "b.layers.bin", bisect.Candidate, putU64(24, 2), bisect.Provenance, "capture mode", -1},
		{"the reference is of another prompt", "b.layers.bin", bisect.Reference, putU64(16, 77), bisect.Provenance, "prompt fingerprint", -1},
		{"the reference has another mode", "b.layers.bin", bisect.Reference, putU64(24, 0), bisect.Provenance, "capture mode", -1},
		// The order is rows, width, fingerprint, mode.
		{"rows before everything", "b.layers.bin", bisect.Candidate, chain(dropRow, putU64(16, 77), putU64(24, 2)), bisect.Provenance, "rows", -1},
		{"width before fingerprint", "b.layers.bin", bisect.Candidate, chain(narrow, putU64(16, 77), putU64(24, 2)), bisect.Provenance, "width", -1},
		{"fingerprint before mode", "b.layers.bin", bisect.Candidate, chain(putU64(16, 77), putU64(24, 2)), bisect.Provenance, "prompt fingerprint", -1},
		{"truncated", "b.layers.bin", bisect.Candidate, func(b []byte) []byte { return b[:40] }, bisect.Format, "", 0},
		{"truncated in the last row", "b.layers.bin", bisect.Candidate, func(b []byte) []byte { return b[:len(b)-1] }, bisect.Format, "", 2},
		{"truncated reference", "b.layers.bin", bisect.Reference, func(b []byte) []byte { return b[:32+16+15] }, bisect.Format, "", 1},
		{"truncated in the header", "b.layers.bin", bisect.Candidate, func(b []byte) []byte { return b[:31] }, bisect.Format, "", -1},
		{"empty", "b.layers.bin", bisect.Candidate, func([]byte) []byte { return nil }, bisect.Format, "", -1},
		{"lying count", "b.layers.bin", bisect.Candidate, putU64(0, 1<<60), bisect.Format, "", 3},
		{"lying width", "b.layers.bin", bisect.Candidate, putU64(8, 1<<62), bisect.Format, "", -1},
		{"no rows", "b.layers.bin", bisect.Candidate, putU64(0, 0), bisect.Format, "", -1},
		{"a scale that is none", "b.layers.bin", bisect.Candidate, putU64(32+20, 0), bisect.Format, "", 1},
		{"trailing bytes of the reference", "b.layers.bin", bisect.Reference, func(b []byte) []byte { return append(b, 0) }, bisect.Format, "", -1},
		{"case file that is no JSON", "b.json", bisect.Candidate, func([]byte) []byte { return []byte("{") }, bisect.Format, "", -1},
		{"case file of the reference", "b.json", bisect.Reference, func([]byte) []byte { return []byte("{") }, bisect.Format, "", -1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dirs := map[bisect.Side]string{bisect.Candidate: int8Folder(t, "a", "b"), bisect.Reference: floatFolder(t, refRows, "a", "b")}
			path := filepath.Join(dirs[tt.side], tt.file)
			edit(t, path, tt.edit)
			cases, err := bisect.Compare(context.Background(), open(t, dirs[bisect.Candidate]), open(t, dirs[bisect.Reference]), nil)
			require.NoError(t, err)
			require.Len(t, cases, 2)
			require.NoError(t, cases[0].Err)
			checkRows(t, cases[0].Rows)

			var f *bisect.Fault
			require.ErrorAs(t, cases[1].Err, &f)
			require.Empty(t, cases[1].Rows)
			require.Equal(t, tt.side, f.Side)
			require.Equal(t, tt.kind, f.Kind)
			require.Equal(t, tt.field, f.Field)
			require.Equal(t, tt.row, f.Row)
			require.Equal(t, path, f.File)
			require.Contains(t, f.Error(), path)
		})
	}
}

func TestCasesThatOneSideLacks(t *testing.T) {
	cases, err := bisect.Compare(context.Background(), open(t, int8Folder(t, "a", "x")), open(t, floatFolder(t, refRows, "a", "b")), nil)
	require.NoError(t, err)
	require.Len(t, cases, 3)
	require.True(t, cases[0].Compared())
	var f *bisect.Fault
	require.ErrorAs(t, cases[1].Err, &f)
	require.Equal(t, bisect.Missing, f.Kind)
	require.Equal(t, bisect.Candidate, f.Side)
	require.Equal(t, "x", cases[2].Name)
	require.NoError(t, cases[2].Err)
	require.False(t, cases[2].Compared())
	require.NotEmpty(t, cases[2].Skipped)
}

// Both sides are well-formed and agree with their own case files, but the
// prompts differ.
func TestSameNameAnotherPrompt(t *testing.T) {
	ref, cand := floatFolder(t, refRows, "a", "b"), int8Folder(t, "a", "b")
	for _, ext := range []string{".json", ".layers.bin"} {
		require.NoError(t, os.Rename(filepath.Join(cand, "b"+ext), filepath.Join(cand, "a"+ext)))
	}
	cases, err := bisect.Compare(context.Background(), open(t, cand), open(t, ref), nil)
	require.NoError(t, err)
	var f *bisect.Fault
	require.ErrorAs(t, cases[0].Err, &f)
	require.Equal(t, "prompt fingerprint", f.Field)
	require.Equal(t, bisect.Candidate, f.Side)
}

func TestDegenerateRows(t *testing.T) {
	nan := float32(math.NaN())
	bad := [][]float32{{1, 2, nan, 4}, {5, 5, 5, 5}, {0, 0, 0, 0}}
	cases, err := bisect.Compare(context.Background(), open(t, floatFolder(t, bad, "a")), open(t, floatFolder(t, refRows, "a")), nil)
	require.NoError(t, err)
	require.NoError(t, cases[0].Err)
	rows := cases[0].Rows
	require.Len(t, rows, 3)
	for k, x := range figures(rows[0]) {
		if !math.IsNaN(x) {
			t.Errorf("NaN row, figure %d: got %v, want NaN", k, x)
		}
	}
	for i, kind := range []metric.Kind{metric.NonFinite, metric.Constant, metric.AllZero} {
		require.Equal(t, kind, rows[i].CandidateClass.Kind)
		require.Equal(t, metric.Ordinary, rows[i].ReferenceClass.Kind)
		require.True(t, math.IsNaN(rows[i].Spearman) && math.IsNaN(rows[i].Pearson))
	}
	// max |z| of 2 1 4 3 is 1.5/sqrt(1.25); a zero row is 1 away in relative L2.
	if got := rows[1].MaxZDiff; !(math.Abs(got-1.5/math.Sqrt(1.25)) <= 1e-12) {
		t.Errorf("constant row: max z-diff %v", got)
	}
	if rows[2].RelativeL2 != 1 || rows[2].NormRatio != 0 {
		t.Errorf("zero row: %+v", rows[2])
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := bisect.Compare(ctx, open(t, int8Folder(t, "a")), open(t, floatFolder(t, refRows, "a")), nil)
	require.ErrorIs(t, err, context.Canceled)
}
