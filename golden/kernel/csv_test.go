package kernel_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/golden/kernel"
)

const header = "layer,pos,op,max_abs_diff,mean_abs_diff,mse,nrmse,rel_err_pct,dense_mean_abs,tq_mean_abs,note\r\n"

// Written by CPython's csv.DictWriter.
const pythonCSV = header +
	"0,1,q_normed,0.3454468846321106,0.05260377749800682,0.004754727706313133,0.1592903861072687,15.565454695323082,0.3379520773887634,0.3265562057495117,\r\n" +
	"0,1,k_normed,1.5e+16,1.5e+16,2.25e+32,1.0,100.0,1.5e+16,1e-05,\r\n" +
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

// Figures that no two tensors have are refused; rounding and overflow aren't.
func TestCSVImpossibleFigures(t *testing.T) {
	inv := small(t, rawFile, "") // q_normed of layer 0: 32 values
	for figures, want := range map[string]string{
		"0.5,0.25,0.1,0.2,1.0,1.0,1.0":                "",
		"0.5,0.500004,0.250002,0.2,1.0,1.0,1.0":       "", // float32 means
		"0.5,0.6,0.1,0.2,1.0,1.0,1.0":                 "mean_abs_diff: got \"0.6\", want at most max_abs_diff, 0.5",
		"0.0,0.1,0.0,0.0,1.0,1.0,1.0":                 "mean_abs_diff",
		"0.5,0.25,0.26,0.2,1.0,1.0,1.0":               "mse: got \"0.26\", want at most the square of max_abs_diff, 0.25",
		"0.5,0.25,inf,0.2,1.0,1.0,1.0":                "mse: got \"inf\"",
		"1.5e+19,1.5e+19,inf,0.2,1.0,1e+30,1e+30":     "",
		"1e+18,1e+18,1e+36,0.2,1.0,1e+30,1e+30":       "",
		"1e+18,1e+18,inf,0.2,1.0,1e+30,1e+30":         "mse: got \"inf\"", // 32 x 1e36 fits a float32
		"2.7e-23,2.7e-23,1.4e-45,0.2,1.0,1e-22,1e-22": "",                 // rounded up to the smallest float32
		"1e-30,1e-30,0.0,0.2,1.0,1e-29,1e-29":         "",
		"0.5,0.25,0.1,0.0,1.0,1.0,1.0":                "nrmse: got \"0.0\", want above 0 with a max_abs_diff of 0.5",
		"0.5,0.25,0.1,0.0,1.0,0.0,0.25":               "", // an all-zero reference has the script's 0
		"0.0,0.0,0.0,0.1,1.0,1.0,1.0":                 "nrmse: got \"0.1\", want 0 without a difference",
		"0.5,0.25,0.1,0.2,1.0,1.0,1.26":               "tq_mean_abs: got \"1.26\", want within mean_abs_diff, 0.25, of dense_mean_abs, 1.0",
		"0.5,0.25,0.1,0.2,1.0,1.26,1.0":               "tq_mean_abs",
		"0.5,0.25,0.1,0.2,1.0,1.250002,1.0":           "",
		"0.0,0.0,0.0,0.0,0.0,1.0,1.1":                 "tq_mean_abs",
		"nan,nan,nan,0.0,nan,nan,1.0":                 "", // a finding
	} {
		_, err := read(t, inv, header+"0,1,q_normed,"+figures+",\r\n")
		if want == "" {
			assert.NoError(t, err, figures)
			continue
		}
		var e *kernel.CSVError
		if assert.ErrorAs(t, err, &e, figures) {
			assert.ErrorContains(t, err, "kernel: csv x.csv: line 2: "+want, figures)
		}
	}
}

// What can't be read is not a malformed CSV.
func TestCSVUnread(t *testing.T) {
	inv := small(t, rawFile, "")
	for _, text := range []string{"", header} {
		broken := io.MultiReader(strings.NewReader(text), iotest.ErrReader(errors.New("torn away")))
		err := kernel.ReadCSV(broken, "x.csv", inv, func(kernel.Row) error { return nil })
		require.ErrorContains(t, err, "torn away")
		var e *kernel.CSVError
		require.False(t, errors.As(err, &e))
	}
	for _, text := range []string{"", "\x00", header + "0,1\r\n", header + "9,1,q_normed,1.0,1.0,1.0,1.0,1.0,1.0,1.0,\r\n"} {
		_, err := read(t, inv, text)
		var e *kernel.CSVError
		require.ErrorAs(t, err, &e)
	}
}
