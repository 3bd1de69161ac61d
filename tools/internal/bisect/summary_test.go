package bisect_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/tools/internal/bisect"
)

func TestParseGroups(t *testing.T) {
	got, err := bisect.ParseGroups("g.json", []byte(`{"z": ["c2", "c1"], "a": ["c3"]}`))
	require.NoError(t, err)
	require.Equal(t, []bisect.Group{{"z", []string{"c2", "c1"}}, {"a", []string{"c3"}}}, got)

	for _, bad := range []string{
		``, `null`, `[]`, `{}`, `{"a": []}`, `{"a": null}`, `{"a": ["x"]`, `{"a": ["x"]} 1`, `{"a": "x"}`, `{"a": [1]}`,
		`{"a": ["x"], "a": ["y"]}`, `{"a": ["x"], "b": ["x"]}`, `{"a": ["x", "x"]}`, `{"a"}`, `{1: ["x"]}`,
	} {
		if _, err := bisect.ParseGroups("g.json", []byte(bad)); err == nil {
			t.Errorf("%s: no error", bad)
		} else {
			require.Contains(t, err.Error(), "g.json")
		}
	}
}

func FuzzParseGroups(f *testing.F) {
	f.Add([]byte(`{"a": ["x"], "b": ["y", "z"]}`))
	f.Add([]byte(`{"a": [null]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		groups, err := bisect.ParseGroups("g", data)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, g := range groups {
			for _, c := range g.Cases {
				if seen[c] {
					t.Errorf("%q stands in two groups", c)
				}
				seen[c] = true
			}
		}
		if len(seen) == 0 {
			t.Error("accepted without a case")
		}
	})
}

func rowsOf(zs ...float64) []bisect.Row {
	var out []bisect.Row
	for i, z := range zs {
		out = append(out, bisect.Row{Index: i, MaxZDiff: z})
	}
	return out
}

func TestSummariseGroups(t *testing.T) {
	cases := []bisect.Case{
		{Name: "a", Rows: rowsOf(1, 2, 3)},
		{Name: "b", Rows: rowsOf(3, 4)},
		{Name: "c", Rows: rowsOf(10)},
		{Name: "broken", Err: &bisect.Fault{}},
		{Name: "skipped", Skipped: "why"},
	}
	groups := []bisect.Group{{"ab", []string{"a", "b", "broken", "skipped"}}, {"none", []string{"broken"}}}
	got := bisect.SummariseGroups(groups, cases)
	require.Len(t, got, 2)
	// 1 2 3 3 4: median 3, p95 at 0.95*4 = 3.8, so 3 + 0.8*(4-3), mean 13/5.
	ab := got[0]
	if ab.Cases != 2 || ab.N != 5 || ab.Min != 1 || ab.Median != 3 || !(math.Abs(ab.P95-3.8) <= 1e-12) || ab.Max != 4 || ab.Mean != 2.6 {
		t.Errorf("got %+v", ab)
	}
	// Row 2 is there in one case only.
	if len(ab.RowMeans) != 3 || ab.RowMeans[0] != 2 || ab.RowMeans[1] != 3 || ab.RowMeans[2] != 3 {
		t.Errorf("row means %v, want 2 3 3", ab.RowMeans)
	}
	if n := got[1]; n.N != 0 || n.Cases != 0 || !math.IsNaN(n.Mean) || !math.IsNaN(n.P95) {
		t.Errorf("a group without a compared case: got %+v", n)
	}
	if zs := bisect.MaxZDiffs(cases); len(zs) != 6 {
		t.Errorf("got %d rows over all cases, want 6", len(zs))
	}
}

func TestMedianOf(t *testing.T) {
	l2 := func(xs ...float64) []bisect.Row {
		rows := rowsOf(make([]float64, len(xs))...)
		for i, x := range xs {
			rows[i].RelativeL2 = x
		}
		return rows
	}
	cases := []bisect.Case{
		{Name: "a", Rows: l2(1, 2, 3)},
		{Name: "b", Rows: l2(5, 4)},
		{Name: "c", Rows: l2(6, math.NaN())},
		{Name: "broken", Err: &bisect.Fault{}, Rows: l2(100)},
	}
	groups := []bisect.Group{{"abc", []string{"a", "b", "c", "broken"}}, {"a", []string{"a"}}, {"none", []string{"broken", "unknown"}}}
	got := bisect.MedianOf(bisect.RelativeL2, groups, cases)
	require.Len(t, got, 3)
	// Row 0 of a, b, c is 1, 5, 6; row 1 holds a NaN; row 2 is a's alone.
	abc := got[0]
	if len(abc.Rows) != 3 || abc.Rows[0] != (bisect.Median{3, 5}) || abc.Rows[2] != (bisect.Median{1, 3}) {
		t.Errorf("rows %v", abc.Rows)
	}
	if m := abc.Rows[1]; m.N != 3 || !math.IsNaN(m.Value) {
		t.Errorf("row 1 is %v: the NaN is lost", m)
	}
	if m := abc.All; m.N != 7 || !math.IsNaN(m.Value) {
		t.Errorf("over all %v: the NaN is lost", m)
	}
	if got[1].All != (bisect.Median{3, 2}) {
		t.Errorf("got %v, want the median of 1 2 3", got[1].All)
	}
	if m := got[2]; m.All.N != 0 || len(m.Rows) != 0 {
		t.Errorf("a group without a compared case: got %v", m)
	}

	// A row that can't have the figure is left out, which isn't NaN.
	behindRow0 := func(_ *bisect.Case, r bisect.Row) (float64, bool) { return r.RelativeL2, r.Index > 0 }
	local := bisect.MedianOf(behindRow0, groups[1:2], cases)[0]
	if local.All != (bisect.Median{2, 2.5}) || local.Rows[0].N != 0 || local.Rows[1] != (bisect.Median{1, 2}) {
		t.Errorf("got %v", local)
	}
}

func TestANaNRowIsNotLostInASummary(t *testing.T) {
	s := bisect.Summarise([]float64{1, math.NaN(), 2})
	if s.N != 3 || !math.IsNaN(s.Max) || !math.IsNaN(s.Median) || !math.IsNaN(s.Mean) {
		t.Errorf("got %+v", s)
	}
}

func TestCheckGroups(t *testing.T) {
	cases := []bisect.Case{{Name: "a"}}
	require.NoError(t, bisect.CheckGroups([]bisect.Group{{"g", []string{"a"}}}, cases))
	require.ErrorContains(t, bisect.CheckGroups([]bisect.Group{{"g", []string{"a", "typo"}}}, cases), `"typo"`)
	require.NoError(t, bisect.CheckGroups(bisect.Everything(cases), cases))
}
