package reference

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
)

// TestYarnRamp: pairs that turn 32 times and once, by hand: dim ln(original/2π turns) /
// (2 ln theta), rounded outwards, held within 0 and dim-1. Frequencies are those of a
// pair whose plain one is 1/2, over a factor of 4: 1/2 before the ramp, 1/8 behind it.
func TestYarnRamp(t *testing.T) {
	for name, c := range map[string]struct {
		original  int
		theta     float64
		dim       int
		low, high float64
		pair      int
		frequency float64
	}{
		"DeepSeek-V2: 10.47 and 22.51":      {4096, 1e4, 64, 10, 23, 23, 0.125},
		"below the first: -3.98 and 8.06":   {64, 1e4, 64, 0, 9, 3, 0.375},      // a third of the way
		"beyond the last: 2.40 and 8.42":    {800, 10, 8, 2, 7, 3, 0.425},       // a fifth
		"both below: -12.20 and -0.16":      {6, 1e4, 64, 0, 0.001, 1, 0.125},   // behind it
		"both below, the first pair":        {6, 1e4, 64, 0, 0.001, 0, 0.5},     // before it
		"both at the last: 3.39 and 6.40":   {10000, 10, 4, 3, 3.001, 3, 0.5},   // before it
		"both at the last, one pair behind": {10000, 10, 4, 3, 3.001, 4, 0.125}, // behind it
	} {
		t.Run(name, func(t *testing.T) {
			y := engine.Yarn{Factor: 4, BetaFast: 32, BetaSlow: 1, Original: c.original}
			low, high := yarnRamp(y, c.theta, c.dim)
			require.Equal(t, []float64{c.low, c.high}, []float64{low, high})
			spec := ropeSpec{theta: c.theta, dim: c.dim, yarn: y}
			require.InDelta(t, c.frequency, yarnFrequency(Float64, spec, c.pair, 2), 1e-12)
			require.InDelta(t, c.frequency, yarnFrequency(Float32, spec, c.pair, 2), 1e-6)
		})
	}
}
