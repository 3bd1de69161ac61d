package conformance

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/golden"
)

// TestLocalLimitNamesItsSource: one layer in ten has five times the error of the others.
// The limit is 1.6 times theirs, or times the yardstick's where theirs are smaller, or the
// factor where that is smaller still; the source says which, with the figure.
func TestLocalLimitNamesItsSource(t *testing.T) {
	b := DefaultBudgets()
	const outlier = "1.6 times the lower quartile of the local errors over the layers; that quartile is "
	for _, tc := range []struct {
		what          string
		level, factor float64
		unknown       bool
		limit         float64
		source        string
	}{
		{"above the yardstick", 1.25, 3, false, 2, outlier + "1.25 of the yardstick's errors"},
		{"below the yardstick", 0.5, 3, false, 1.6, outlier + "0.5 of the yardstick's errors, and taken as 1"},
		{"the factor is smaller", 1.25, 1.5, false, 1.5, "1.5 times the emulation's error"},
		{"unknown arithmetic", 1, 3, true, 2.445, "1.5 times the largest median, in lower quartiles over the layers, of a sound engine whose arithmetic is not emulated; " +
			"that quartile is 1 of the yardstick's errors"},
	} {
		c := curve{medians: true, unknown: tc.unknown}
		for range 10 {
			c.local = append(c.local, tc.level)
		}
		c.local[6] *= 5
		out := localFindings(c, Factors{Median: golden.Of(1, tc.factor, "the emulation's error", "")}, b)
		require.Len(t, out, 1, tc.what)
		assert.Equal(t, 7, out[0].At.Row, tc.what)
		assert.InEpsilon(t, tc.limit, float64(out[0].Limit.Value), 1e-12, tc.what)
		assert.Equal(t, tc.source, out[0].Limit.Source, tc.what)
	}
}
