package page_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
)

// A map has each figure of each case where it belongs, and says what was not measured.
func TestHeatMaps(t *testing.T) {
	r := sample(6, 7, 3)
	c := r.Cases["prompt_004_capital_of_country"]
	c.Depth[2].LocalRatio, c.Depth[2].Local = nil, nil
	c.Depth = c.Depth[:5]
	r.Cases["prompt_004_capital_of_country"] = c
	p := parse(t, written(t, r))
	local := p.id("map-local")
	rows := local.named("tbody")[0].named("tr")
	require.Len(t, rows, 8)
	for i, tr := range rows[1:] {
		v := r.Cases[tr.named("th")[0].words()]
		require.NotEmpty(t, v.Depth, "row %d", i)
		cells := tr.named("td")
		require.Len(t, cells, 6)
		for row, td := range cells {
			switch {
			case row >= len(v.Depth) || v.Depth[row].LocalRatio == nil:
				assert.Equal(t, "·", td.words())
				assert.Contains(t, td.attrs["class"], "n")
			default:
				x := float64(*v.Depth[row].LocalRatio)
				want := fmt.Sprintf("%.1f", x)
				if x >= 10 {
					want = fmt.Sprintf("%.0f", x)
				}
				assert.Equal(t, want, td.words())
				assert.Equal(t, x > 3, strings.ContainsAny(td.attrs["class"], "xyz"), "%g: %s", x, td.attrs["class"])
			}
			assert.Equal(t, row == 3, slices.Contains(strings.Fields(td.attrs["class"]), "w"), "the case's first bad row")
		}
	}
	flagged := local.class("flag")
	require.Len(t, flagged, 1)
	assert.Equal(t, "2", flagged[0].words(), "row 3 is layer 2's")
	assert.Equal(t, "row 3: blocks.2.resid_post", flagged[0].attrs["title"])
	for _, m := range []string{"map-local", "map-accumulated"} {
		assert.Equal(t, "0", p.id(m).class("heat")[0].attrs["tabindex"], "%s is reached by keyboard", m)
	}
}

// Not a number is over every limit, and no figure is no error.
func TestHeatMapOfNaN(t *testing.T) {
	r := sample(4, 1, -1)
	nan := conformance.Number(math.NaN())
	inf := conformance.Number(math.Inf(1))
	c := r.Cases["prompt_000_capital_of_country"]
	c.Depth[1].LocalRatio, c.Depth[2].LocalRatio = &nan, &inf
	c.Depth[1].Accumulated, c.Depth[1].AccumulatedRatio = nan, nan // a row that is missing
	p := parse(t, written(t, r))
	cells := p.id("map-local").named("tbody")[0].named("tr")[1].named("td")
	assert.Equal(t, []string{"·", "NaN", "∞"}, []string{cells[0].words(), cells[1].words(), cells[2].words()})
	assert.Equal(t, []string{"n", "z", "z"}, []string{cells[0].attrs["class"], cells[1].attrs["class"], cells[2].attrs["class"]})
	assert.Equal(t, "·", p.id("map-accumulated").named("tbody")[0].named("tr")[1].named("td")[1].words())
}

// The scatter has each class, the routers' histogram each outcome.
func TestPlots(t *testing.T) {
	r := sample(29, 9, 18)
	c := r.Cases["prompt_000_capital_of_country"]
	c.Logits = append(c.Logits, conformance.LogitStep{Class: conformance.Wrong, Margin: 4, Regret: 6, TieBand: 0.6}, conformance.LogitStep{Class: conformance.Drift, Margin: 1, Regret: 0.9, TieBand: 0.6})
	r.Cases["prompt_000_capital_of_country"] = c
	p := parse(t, written(t, r))
	for _, want := range []string{"WRONG: no rounding explains it (1)", "DRIFT: beyond the tie band (1)", "tie band, median over the rows"} {
		assert.Contains(t, p.id("logits").words(), want)
	}
	routes := p.id("routes").words()
	for _, want := range []string{"723 rows chose the same experts, 3 another set within the tie band, 1 another set beyond it; 12 rows lie behind another choice", "all routers 723 3 1 12", "blocks.3.route_ids 3 2 0 0"} {
		assert.Contains(t, routes, want)
	}
	depth := p.id("map").class("drawing")
	require.Len(t, depth, 2)
	assert.Contains(t, depth[0].words(), "limit of the median, 2")
	assert.Contains(t, depth[0].words(), "in row 18")
	few := sample(29, 4, 18)
	assert.NotContains(t, parse(t, written(t, few)).id("map").class("drawing")[0].words(), "limit of the median", "four cases have no median of their own")
}
