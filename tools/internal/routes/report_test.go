package routes_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/golden/trace"
	"github.com/plumbline-go/plumbline/tools/internal/routes"
)

var plan = trace.Plan{
	Conditions: []trace.Condition{{Name: "a", Boundary: "eos"}, {Name: "b", Boundary: "bos"}},
	Edges:      []trace.Edge{{Name: "e", Left: "a", Right: "b"}},
}

// shape has gates in layers 1 and 3, and two of four experts for a token.
var shape = trace.Shape{Layers: 4, Gates: []int{1, 3}, Hidden: 2, Experts: 4, TopK: 2}

// rows are n rows of a condition with scores 8, 4, 3, 1, so with a margin of 1; in
// the judged run the score of the last one chosen is off by err in each.
func rows(n, condition int, err float64) []routes.Row {
	out := make([]routes.Row, n)
	for i := range out {
		out[i] = routes.Row{Condition: condition, Reference: []float64{8, 4, 3, 1}, Judged: []float64{8, 4 - err, 3, 1}, Route: []int{1, 0}}
	}
	return out
}

// The band is twice the 99th percentile of what scores are off by: 0.25 in 100 rows
// gives 0.5, whatever one row more does.
func TestVerdictsFollowTheBand(t *testing.T) {
	r := routes.New(plan, shape, trace.Float32, false)
	all := append(rows(100, 0, 0.25), rows(100, 1, 0.25)...)
	all[10].Judged = []float64{8, 54, 3, 1}
	// One row's choice is far from the reference's: 4 of one expert against 1 of another.
	all[3].Route = []int{0, 3}
	// Two experts 0.4 apart changed places, and two 0.6 apart.
	all[150].Reference, all[150].Judged, all[150].Route = []float64{8, 4, 3.6, 1}, []float64{8, 3.75, 3.6, 1}, []int{0, 2}
	all[151].Reference, all[151].Judged, all[151].Route = []float64{8, 4, 3.4, 1}, []float64{8, 3.75, 3.4, 1}, []int{0, 2}
	require.NoError(t, r.Gate(1, all))

	require.Equal(t, [3]int{197, 1, 2}, [3]int{r.All.Match, r.All.Tie, r.All.Flip})
	a, b := r.Map.Cells[1][0], r.Map.Cells[1][1]
	require.Equal(t, [3]int{99, 0, 1}, [3]int{a.Match, a.Tie, a.Flip})
	require.Equal(t, [3]int{98, 1, 1}, [3]int{b.Match, b.Tie, b.Flip})
	require.Zero(t, r.Map.Cells[0][0].Judged())
	require.Equal(t, routes.Noise{Rows: 200, Smallest: 0.5, Largest: 0.5}, r.Noise[1])
	require.Zero(t, r.Noise[0])
	require.Equal(t, 1, r.All.NearTies)
	require.Equal(t, 3, r.Others.Judged())
	require.Equal(t, []int{1, 3}, r.Gates())
}

// Two experts that are nearly one move together: their scores are off all the same.
func TestTwinsDontNarrowTheBand(t *testing.T) {
	r := routes.New(plan, shape, trace.Float32, false)
	all := rows(100, 0, 0)
	for i := range all {
		all[i].Judged = []float64{8, 4.2, 3.25, 1}
	}
	require.NoError(t, r.Gate(0, all))
	require.Equal(t, routes.Noise{Rows: 100, Smallest: 0.5, Largest: 0.5}, r.Noise[0])
}

// The band is that of the rows that came together.
func TestEachCallHasItsOwnBand(t *testing.T) {
	r := routes.New(plan, shape, trace.Float32, false)
	swapped := func(err float64) []routes.Row {
		all := rows(100, 0, err)
		all[7].Route = []int{0, 2} // 1 apart
		return all
	}
	require.NoError(t, r.Gate(0, swapped(0.25)))
	require.NoError(t, r.Gate(0, swapped(0.75)))
	require.Equal(t, [2]int{1, 1}, [2]int{r.All.Tie, r.All.Flip})
	require.Equal(t, routes.Noise{Rows: 200, Smallest: 0.5, Largest: 1.5}, r.Noise[0])
}

// Where both runs agree to the last bit, a step of the type is the band all the same.
func TestTheBandIsNeverBelowAStep(t *testing.T) {
	for scoring, want := range map[trace.DType]int{trace.Float32: 0, trace.BFloat16: 1} {
		r := routes.New(plan, shape, scoring, false)
		all := rows(2, 0, 0)
		all[0].Reference = []float64{8, 4, 4 - 0x1p-8, 1} // a bfloat16 at 4 has steps of 2^-5
		all[0].Judged, all[0].Route = all[0].Reference, []int{0, 2}
		require.NoError(t, r.Gate(0, all))
		require.Equal(t, want, r.All.Tie, scoring)
		require.Equal(t, 1-want, r.All.Flip, scoring)
	}
}

// Experts of a group that the judged run didn't choose have no score there.
func TestAMaskedScoreIsNoError(t *testing.T) {
	r := routes.New(plan, shape, trace.Float32, false)
	all := rows(50, 0, 0.25)
	all[0].Judged = []float64{8, math.Inf(-1), 3, 1}
	require.NoError(t, r.Gate(0, all))
	require.Equal(t, routes.Noise{Rows: 49, Smallest: 0.5, Largest: 0.5}, r.Noise[0])
}

func sole() *routes.Report {
	r := routes.New(plan, shape, trace.Float32, true)
	all := rows(3, 1, 0)
	for i := range all {
		all[i].Judged = nil
	}
	all[2].Reference = []float64{8, 4, 4, 1}
	if err := r.Gate(1, all); err != nil {
		panic(err)
	}
	return r
}

// One run alone has margins and nothing else.
func TestOneRunAlone(t *testing.T) {
	r := sole()
	require.Equal(t, []routes.Bin{{Label: "0", Rows: 1}, {Label: "2^1", Rows: 2}}, r.Bins())
	text := r.Text(routes.Names{Judged: "bfloat16"})
	require.Contains(t, text, "in bfloat16: 3 rows of 2 gates.")
	require.NotContains(t, text, "FLIP")
	require.NotContains(t, r.Markdown(routes.Names{Judged: "bfloat16"}, "m.svg", "f.svg"), "f.svg")
}

func TestText(t *testing.T) {
	r := routes.New(plan, shape, trace.Float32, false)
	all := append(rows(100, 0, 0.25), rows(60, 1, 0.25)...)
	all[3].Route = []int{0, 3}
	all[150].Reference, all[150].Judged, all[150].Route = []float64{8, 4, 3.6, 1}, []float64{8, 3.75, 3.6, 1}, []int{0, 2}
	all[120].Reference = []float64{8, math.NaN(), 3, 1}
	require.NoError(t, r.Gate(1, all))
	names := routes.Names{Judged: "bf", Reference: "f32"}
	text := r.Text(names)
	require.Equal(t, `Route margins, the score of the last expert chosen minus that of the next, in f32: 159 rows of 2 gates.

margin below     rows  other experts
2^-1                1              1  #
2^0                 0              0
2^1               158              1  ########################################

Experts of bf and of f32: the same in 157 of 159 rows, others in 2: 1 TIE, 1 FLIP. 1 row has no order of scores and isn't judged. Of 1 near tie 100.0 % have others. Near is a margin within the band: 2 times what scores at its ends are off by at a gate in bf, 99th percentile. 99.4 % of rows lie above it, 0.63 % are a FLIP. As the band follows a percentile, a sound run has some, a few in a thousand rows, spread out; suspicious is a layer or a condition that stands out.

layer  rows     band    a  b
   01     0  0.0e+00    -  -
   03   159  5.0e-01  0+1  1
Cells: rows with other experts, TIE, then FLIP behind a plus.
`, text)
	page := r.Markdown(names, "m.svg", "f.svg")
	for _, want := range []string{"# Routes\n", "![Route margins](m.svg)", "(f.svg)", "   03   159  5.0e-01  0+1  1\n"} {
		require.Contains(t, page, want)
	}
	require.Zero(t, strings.Count(page, "```")%2)
	names.Noise = "two others"
	require.Contains(t, r.Text(names), "at a gate in two others, 99th")
}

func TestRefusesRowsOfAnotherShape(t *testing.T) {
	good := rows(1, 0, 0)[0]
	for name, change := range map[string]func(*routes.Row){
		"condition":     func(r *routes.Row) { r.Condition = 2 },
		"few scores":    func(r *routes.Row) { r.Reference = r.Reference[:3] },
		"few judged":    func(r *routes.Row) { r.Judged = r.Judged[:3] },
		"no second run": func(r *routes.Row) { r.Judged = nil },
		"few experts":   func(r *routes.Row) { r.Route = r.Route[:1] },
	} {
		row := good
		row.Reference, row.Judged, row.Route = slices.Clone(row.Reference), slices.Clone(row.Judged), slices.Clone(row.Route)
		change(&row)
		require.ErrorContains(t, routes.New(plan, shape, trace.Float32, false).Gate(1, []routes.Row{row}), "routes: layer 3, row 0: got", name)
	}
	require.Error(t, routes.New(plan, shape, trace.Float32, true).Gate(1, []routes.Row{good}))
	require.ErrorContains(t, sole().Gate(2, nil), "routes: gate: got 2, want 0 to 1")
}
