package conformance

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestCrossCPUIsRounding: two CPU models' recordings lie as far apart as the recordings'
// own rounding makes them, which the manifest has: neither a fourth of it nor more than
// the four times that a golden recorded anew may differ by.
func TestCrossCPUIsRounding(t *testing.T) {
	data, err := os.ReadFile("../golden/qwen2-trained.manifest.json")
	require.NoError(t, err)
	var m struct {
		Precision struct {
			Cases map[string]struct{ Layers, Logits []float64 }
		}
	}
	require.NoError(t, json.Unmarshal(data, &m))
	own := 0.0
	for _, c := range m.Precision.Cases {
		own = max(own, slices.Max(c.Layers), slices.Max(c.Logits))
	}
	require.Positive(t, own)
	assert.Greater(t, crossCPU.Value, own/4)
	assert.Less(t, crossCPU.Value, 4*own)
}

// TestBoundsSetByHandExpire: what was set by hand is told once its date has passed, by a
// run that is held to a baseline.
func TestBoundsSetByHandExpire(t *testing.T) {
	day := time.Date(2027, 12, 31, 12, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		what     string
		baseline *Report
		today    time.Time
		want     int
	}{
		{"the last day", &Report{}, day, 0},
		{"the day after", &Report{}, day.AddDate(0, 0, 1), 4},
		{"no baseline", nil, day.AddDate(0, 0, 1), 0},
	} {
		r := newReport("")
		require.NoError(t, r.settle(nil, settling{baseline: tc.baseline, baselineName: "b.json", today: tc.today}))
		n := 0
		for _, note := range r.Notes {
			if assert.Contains(t, note, "set by hand") {
				n++
			}
		}
		assert.Equal(t, tc.want, n, tc.what)
	}
}
