package conformance

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/golden"
)

// floorsOf are the floors of rows and flips, of which the points and the examples are
// told.
func floorsOf(r *targetRun, set *golden.TeacherSet, flips ...TrajectoryFlip) (rows, along []float64) {
	r.ev.Flips = flips
	r.floors(&Teacher{Golden: set})
	for _, x := range r.ev.Rows {
		rows = append(rows, x.Floor)
	}
	for _, x := range r.ev.Flips {
		along = append(along, x.Floor)
	}
	return rows, along
}

// TestRecordedFloors: the floor is the recorded error, and never below half a unit in
// the last of bfloat16's 8 bits, 1/512. A trajectory has its own record.
func TestRecordedFloors(t *testing.T) {
	set := &golden.TeacherSet{Manifest: &golden.TeacherManifest{}}
	set.Manifest.Precision.Points = []float64{0.004, 1e-6, 0.25}
	set.Manifest.Precision.Trajectories = map[string]float64{"rough": 0.03, "exact": 1e-7}
	r := &targetRun{ev: &TeacherEvidence{Rows: make([]TargetRow, 3)}}
	rows, along := floorsOf(r, set, TrajectoryFlip{Point: 1, Example: "rough"}, TrajectoryFlip{Point: 2, Example: "exact"})
	require.Equal(t, []float64{0.004, 1.0 / 512, 0.25}, rows)
	require.Equal(t, []float64{0.03, 1.0 / 512}, along)
}

// TestOwnFloors: without a record the floor is the reference's own error, that of all
// rows, their root mean square, where the row's is below it.
func TestOwnFloors(t *testing.T) {
	plain := func(own ...float64) *targetRun {
		return &targetRun{ev: &TeacherEvidence{RowsPlain: true, Rows: make([]TargetRow, len(own))}, own: own}
	}
	// The mean of the squares is (9 + 16 + 0 + 144) / 4 = 6.5 squared.
	rows, along := floorsOf(plain(0.03, 0.04, 0, 0.12), nil, TrajectoryFlip{Point: 2}, TrajectoryFlip{Point: 3})
	require.InDeltaSlice(t, []float64{0.065, 0.065, 0.065, 0.12}, rows, 1e-15)
	require.InDeltaSlice(t, []float64{0.065, 0.12}, along, 1e-15)
	// All below a rounding.
	rows, along = floorsOf(plain(1e-4, 1e-5), nil, TrajectoryFlip{Point: 0})
	require.Equal(t, []float64{1.0 / 512, 1.0 / 512}, rows)
	require.Equal(t, []float64{1.0 / 512}, along)
}

// TestTargetTie: the band is sqrt 2 standard deviations times what the row may be
// off, and where that is less, two bfloat16 steps, at 16 an eighth each.
func TestTargetTie(t *testing.T) {
	b := golden.Budget{Value: 3}
	require.InDelta(t, math.Sqrt2*3*0.125*2, float64(targetTie(b, 0.125, 2, 16).Value), 1e-15)
	require.Equal(t, 0.25, float64(targetTie(b, 0.001, 2, 16).Value))
}
