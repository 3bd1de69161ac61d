package page_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
)

// A map's colours are those of the limits that the check applied, where it applied lower
// ones than usual.
func TestMapsShowTheLimitsThatWereApplied(t *testing.T) {
	const name = "prompt_000_capital_of_country"
	build := func(median, single float64) *conformance.Report {
		r := sample(4, 5, -1)
		for n, c := range r.Cases { // layer 1: 1.5 times, a share of 0.3
			share, ratio := conformance.Number(0.3), conformance.Number(1.5)
			c.Depth[2].Local, c.Depth[2].LocalRatio = &share, &ratio
			r.Cases[n] = c
		}
		add := func(name, metric string, got, limit float64) {
			r.Checks = append(r.Checks, conformance.Result{ID: "LocalError", Case: name, Side: conformance.SideCandidate, Status: conformance.Fail, Findings: []conformance.Finding{
				{Probe: engine.ResidPost(1), Metric: metric, Got: conformance.Number(got), At: conformance.AtRow(2),
					Limit: conformance.Limit{Value: conformance.Number(limit), Source: "1.6 times the lower quartile"}}}})
		}
		if median > 0 {
			add("*", "local error over the yardstick's, median over the cases", 1.5, median)
		}
		if single > 0 {
			add(name, "local error", 0.3, single)
		}
		return r
	}
	classes := func(r *conformance.Report) (med, one, other string) {
		rows := parse(t, written(t, r)).id("map-local").named("tbody")[0].named("tr")
		at := func(i int) string { return strings.Fields(rows[i].named("td")[2].attrs["class"])[0] }
		require.Equal(t, name, rows[1].named("th")[0].words())
		return at(0), at(1), at(2)
	}
	med, one, other := classes(build(0, 0))
	assert.Equal(t, []string{"b", "a", "a"}, []string{med, one, other}, "limits 2 and 3")
	med, one, other = classes(build(1.2, 0))
	assert.Equal(t, []string{"x", "a", "a"}, []string{med, one, other}, "medians held to 1.2")
	med, one, other = classes(build(0, 0.25))
	assert.Equal(t, []string{"b", "x", "a"}, []string{med, one, other}, "one case held to 0.25, which is 1.25 times")

	p := parse(t, written(t, build(1.2, 0)))
	assert.Contains(t, p.id("map-local").words(), "The medians were held to 1.2: 1.6 times the lower quartile.")
	assert.NotContains(t, parse(t, written(t, build(2, 0))).id("map-local").words(), "were held to", "that is what is said above")
	assert.Contains(t, p.id("map").class("drawing")[0].words(), "limit of the median, 1.2")
	assert.Contains(t, p.id("map").class("drawing")[1].words(), "limit of the median, 2")
	assert.Equal(t, "x", p.id("verdict").class("cells")[0].named("i")[2].attrs["class"], "the strip too")
}

// The legend has no figures: what a colour means depends on the limit.
func TestLegendHasNoFigures(t *testing.T) {
	legend := parse(t, written(t, sample(6, 6, 3))).id("map").class("legend")[0]
	for _, s := range legend.named("span") {
		assert.Contains(t, []string{"", "·"}, s.words())
	}
	for _, c := range []string{"a", "b", "c", "x", "y", "z", "n"} {
		assert.NotEmpty(t, legend.class(c), c)
	}
}
