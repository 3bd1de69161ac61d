package main

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBisectWithModel plants a fault in layer 7, which row 8 is the first to
// show: the text marks that row, and has no local error where no layer wrote.
func TestBisectWithModel(t *testing.T) {
	t.Setenv(modelEnv, "")
	clean, broken, model := dumpInt8(t, 2, "", 0), dumpInt8(t, 2, "gate-up-swapped", 7), modelFolder(t)
	args := []string{"bisect", "--quiet", "--ref", clean, "--cand", broken, "--model", model}
	var out, stderr bytes.Buffer
	require.Equal(t, exitFails, run(args, &out, &stderr), stderr.String())
	text := out.String()

	marked := 0
	tables := strings.SplitN(text, "by group,", 2)
	ratio := regexp.MustCompile(` [0-9]+\.[0-9]{2} +[0-9]+\.[0-9]{2}  <- first bad row$`)
	for line := range strings.Lines(tables[0]) {
		line = strings.TrimRight(line, "\n")
		if strings.Contains(line, "first bad row") {
			marked++
			require.Contains(t, line, "   8  blocks.7.resid_post")
			require.Regexp(t, ratio, line)
		}
		if strings.Contains(line, "  0  embed") {
			require.Regexp(t, ` -  +- +[0-9]+\.[0-9]{2}$`, line)
		}
	}
	require.Equal(t, 2, marked, "once a case:\n%s", tables[0])
	require.NotContains(t, text, "NaN")
	require.Contains(t, tables[1], "max|dz|    rel L2  local err\n")

	out.Reset()
	require.Equal(t, exitFails, run(append(args, "--json"), &out, &stderr), stderr.String())
	var got struct {
		Cases map[string]struct {
			Rows []struct {
				LocalError *float64 `json:"local_error"`
			} `json:"rows"`
		} `json:"cases"`
		Groups []struct {
			RelativeL2    *float64   `json:"relative_l2"`
			RowLocalError []*float64 `json:"row_local_error"`
		} `json:"groups"`
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &got))
	require.Len(t, got.Cases, 2)
	for _, c := range got.Cases {
		require.Len(t, c.Rows, 29)
		require.Nil(t, c.Rows[0].LocalError)
		require.NotNil(t, c.Rows[1].LocalError)
	}
	require.Len(t, got.Groups, 1)
	require.NotNil(t, got.Groups[0].RelativeL2)
	require.Nil(t, got.Groups[0].RowLocalError[0])
	worst := 1
	for i, x := range got.Groups[0].RowLocalError {
		if x != nil && *x > *got.Groups[0].RowLocalError[worst] {
			worst = i
		}
	}
	require.Equal(t, 8, worst, "the layer with the fault introduces most")
}

func TestTableAligns(t *testing.T) {
	table := newTable("row", "probe", "error").alignLeft(1)
	table.add("", "0", "embed", none)
	table.add("  <- note", "10", "blocks.é", scientific(1.5e-7))
	table.add("", "100", "b", fixed(2, 4))
	var out bytes.Buffer
	table.print(&out)
	require.Equal(t, ""+
		"  row  probe        error\n"+
		"    0  embed            -\n"+
		"   10  blocks.é  1.50e-07  <- note\n"+
		"  100  b           2.0000\n", out.String())
	require.Equal(t, "1.23e+10", fixed(12345678901, 4), "too long for its column")
}

func TestPlural(t *testing.T) {
	require.Equal(t, []string{"0 rows", "1 row", "2 rows"}, []string{plural(0, "row"), plural(1, "row"), plural(2, "row")})
}
