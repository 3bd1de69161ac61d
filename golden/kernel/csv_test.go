package kernel_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/golden/kernel"
)

const header = "layer,pos,op,max_abs_diff,mean_abs_diff,mse,nrmse,rel_err_pct,dense_mean_abs,tq_mean_abs,note\r\n"

// Written by CPython's csv.DictWriter.
const pythonCSV = header +
	"0,1,q_normed,0.3454468846321106,0.05260377749800682,0.004754727706313133,0.1592903861072687,15.565454695323082,0.3379520773887634,0.3265562057495117,\r\n" +
	"0,1,k_normed,0.0,0.0,0.0,0.0,0.0,1e-05,1.5e+16,\r\n" +
	"0,1,v_normed,nan,inf,nan,0.0,nan,nan,1.0,\r\n" +
	"0,1,sdpa_out,MISSING,MISSING,MISSING,MISSING,MISSING,MISSING,MISSING,MISSING:a/b.bin\r\n" +
	"0,5,q_normed,MISSING,MISSING,MISSING,MISSING,MISSING,MISSING,MISSING,\"SIZE_MISMATCH:a, \"\"b\"\".bin:expected=8,got=4;MISSING:c\"\r\n"

func read(t *testing.T, inv *kernel.Inventory, text string) ([]kernel.Row, error) {
	t.Helper()
	var rows []kernel.Row
	err := kernel.ReadCSV(strings.NewReader(text), "x.csv", inv, func(r kernel.Row) error {
		rows = append(rows, r)
		return nil
	})
	return rows, err
}

func TestCSV(t *testing.T) {
	inv := small(t, rawFile, "")
	rows, err := read(t, inv, pythonCSV)
	require.NoError(t, err)
	require.Len(t, rows, inv.Len())
	require.Equal(t, kernel.Figures{MaxAbs: 0.3454468846321106, MeanAbs: 0.05260377749800682, MSE: 0.004754727706313133, NRMSE: 0.1592903861072687,
		RelErrPct: 15.565454695323082, RefMeanAbs: 0.3379520773887634, CandMeanAbs: 0.3265562057495117}, rows[0].Figures)
	require.True(t, math.IsNaN(rows[2].MaxAbs) && math.IsInf(rows[2].MeanAbs, 1))
	require.Equal(t, kernel.Missing, rows[3].Problem)
	require.Equal(t, kernel.WrongSize, rows[4].Problem, "the graver of two")
	require.Equal(t, `SIZE_MISMATCH:a, "b".bin:expected=8,got=4;MISSING:c`, rows[4].Note)
	for _, r := range rows[5:] {
		require.True(t, r.Absent)
		require.Equal(t, kernel.Missing, r.Problem)
	}
	require.Equal(t, "ABSENT:x.csv:no row for layer=0 pos=5 op=k_normed", rows[5].Note)

	var b bytes.Buffer
	w, err := kernel.NewCSVWriter(&b, inv)
	require.NoError(t, err)
	for _, r := range rows {
		require.NoError(t, w.Write(r))
	}
	require.Equal(t, pythonCSV, b.String())

	// In any order, with either kind of line ends.
	lines := strings.SplitAfter(pythonCSV, "\r\n")
	lines[1], lines[4] = lines[4], lines[1]
	again, err := read(t, inv, strings.ReplaceAll(strings.Join(lines, ""), "\r\n", "\n"))
	require.NoError(t, err)
	require.Equal(t, rows[0], again[0])
}

func TestCSVRefuses(t *testing.T) {
	inv := small(t, rawFile, "")
	good := "0,1,q_normed,1.0,1.0,1.0,1.0,1.0,1.0,1.0,\r\n"
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":                   {"", "got 0 bytes"},
		"another header":            {strings.Replace(header, "nrmse", "rmse", 1) + good, "header: got"},
		"a column too few":          {header + "0,1,q_normed,1.0\r\n", "wrong number of fields"},
		"a layer too many":          {header + strings.Replace(good, "0,", "3,", 1), `line 2: layer: got "3", want 0 to 2`},
		"a negative layer":          {header + strings.Replace(good, "0,", "-1,", 1), "line 2: layer"},
		"a step that isn't there":   {header + strings.Replace(good, ",1,", ",2,", 1), `line 2: pos: got "2"`},
		"an op that isn't there":    {header + strings.Replace(good, "q_normed", "q", 1), `line 2: op: got "q"`},
		"a row twice":               {header + good + good, "line 3: row: got \"layer=0 pos=1 op=q_normed twice\""},
		"no number":                 {header + strings.Replace(good, "1.0", "x", 1), `max_abs_diff: got "x"`},
		"a negative figure":         {header + strings.Replace(good, "1.0", "-1.0", 1), `max_abs_diff: got "-1.0"`},
		"MISSING without a note":    {header + strings.ReplaceAll(good, "1.0", "MISSING"), `max_abs_diff: got "MISSING"`},
		"a figure beside a note":    {header + strings.Replace(good, ",\r\n", ",MISSING:x\r\n", 1), `max_abs_diff: got "1.0", want MISSING`},
		"a quote that doesn't end":  {header + "\"0,1\r\n", "csv x.csv"},
		"binary data, not a header": {"\x00\x01\x02", "x.csv"},
	} {
		_, err := read(t, inv, tc.text)
		assert.ErrorContains(t, err, tc.want, name)
	}
	rows, err := read(t, inv, header)
	require.NoError(t, err, "no row at all is a verdict, not an error")
	require.Len(t, rows, inv.Len())
}

// An unknown note isn't taken for a tensor that was compared.
func TestCSVNoteOfAnotherKind(t *testing.T) {
	inv := small(t, rawFile, "")
	rows, err := read(t, inv, header+"0,1,q_normed,MISSING,MISSING,MISSING,MISSING,MISSING,MISSING,MISSING,who knows\r\n")
	require.NoError(t, err)
	require.Equal(t, kernel.Unreadable, rows[0].Problem)
}

func FuzzReadCSV(f *testing.F) {
	f.Add(pythonCSV)
	f.Add(header)
	f.Fuzz(func(t *testing.T, text string) {
		inv := small(t, rawFile, "")
		rows, err := read(t, inv, text)
		if err != nil {
			return
		}
		if len(rows) != inv.Len() {
			t.Fatalf("%d rows of %d", len(rows), inv.Len())
		}
		var b bytes.Buffer
		w, _ := kernel.NewCSVWriter(&b, inv)
		j := kernel.NewJudge(inv, kernel.DefaultThresholds())
		for _, r := range rows {
			if w.Write(r) != nil || j.Add(r) != nil {
				t.Fatal("not written")
			}
		}
		j.Verdicts()
		if _, err := read(t, inv, b.String()); err != nil {
			t.Fatalf("%v, of what was written: %q", err, b.String())
		}
	})
}
