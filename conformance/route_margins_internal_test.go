package conformance

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/golden/trace"
)

// Bins by hand: 0.25 is the lower edge of its own, exact ties and rows without
// another expert count at the ends, unjudged rows in no bin.
func TestCountMargins(t *testing.T) {
	inf := math.Inf(1)
	m := countMargins("a set", "a router", []marginRow{
		{0.25, 0.1, trace.RouteMatch}, {0.49, 0.1, trace.RouteMatch}, {0.5, 0.2, trace.RouteFlip}, {1.9, 0.3, trace.RouteMatch},
		{0, 0.3, trace.RouteTie}, {inf, 0.3, trace.RouteMatch}, {1e300, 9, trace.RouteUnjudged}, {math.NaN(), 9, trace.RouteUnjudged},
	})
	assert.Equal(t, []Number{0.25, 0.5, 1, 2}, m.Edges)
	assert.Equal(t, []int{2, 0, 2}, m.Match)
	assert.Equal(t, []int{1, 0, 0}, m.Tie)
	assert.Equal(t, []int{0, 1, 0}, m.Flip)
	assert.Equal(t, 2, m.Unjudged)
	assert.InDelta(t, 0.25, float64(m.Band), 1e-12, "the middle of 0.1 0.1 0.2 0.3 0.3 0.3")
}

func TestCountMarginsWithoutARow(t *testing.T) {
	m := countMargins("a set", "a router", []marginRow{{math.NaN(), math.NaN(), trace.RouteUnjudged}})
	assert.Equal(t, []Number{1, 2}, m.Edges)
	assert.Equal(t, []int{0}, m.Match)
	assert.Equal(t, 1, m.Unjudged)
	assert.True(t, math.IsNaN(float64(m.Band)))
}

func TestCountMarginsOfAnyExponent(t *testing.T) {
	m := countMargins("a set", "a router", []marginRow{{math.SmallestNonzeroFloat64, 0, trace.RouteMatch}, {math.MaxFloat64, 0, trace.RouteMatch}})
	require.LessOrEqual(t, len(m.Match), 64)
	assert.Equal(t, 1, m.Match[0])
	assert.Equal(t, 1, m.Match[len(m.Match)-1])
}

func TestMarginsOfAllTogetherFirst(t *testing.T) {
	var a, b marginSet
	a.name, b.name = "a", "b"
	row := trace.RouteVerdict{Margin: 1, Class: trace.RouteMatch}
	a.add("blocks.1.route_ids", row)
	a.add("blocks.2.route_ids", row)
	a.add("blocks.1.route_ids", row)
	b.add("a gate", row)
	var got [][2]string
	var rows []int
	for _, m := range marginsOf([]*marginSet{&a, &b}) {
		got, rows = append(got, [2]string{m.Name, m.Router}), append(rows, m.Match[0])
	}
	assert.Equal(t, [][2]string{{"a", "*"}, {"b", "*"}, {"a", "blocks.1.route_ids"}, {"a", "blocks.2.route_ids"}, {"b", "a gate"}}, got)
	assert.Equal(t, []int{3, 1, 2, 1, 1}, rows)
}
