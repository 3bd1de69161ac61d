package metric

import (
	"math"
	"testing"
)

func TestExps(t *testing.T) {
	var row []float64
	for x := 0.0; x > -760; x -= 0.00731 {
		row = append(row, x)
	}
	// Around every boundary of the table, and tiny arguments.
	for i := range 200 {
		edge := -(float64(i) + 0.5) * math.Ln2 / expSteps
		row = append(row, edge, math.Nextafter(edge, 0), math.Nextafter(edge, -1), -math.Ldexp(1, -i))
	}
	dst := make([]float64, len(row))
	sum := exps(dst, row, 1, 0)
	var want float64
	for i, x := range row {
		e := math.Exp(x)
		want += e
		if !(math.Abs(dst[i]-e) <= 5e-16*e) {
			t.Errorf("exp(%v): got %v, want %v", x, dst[i], e)
		}
	}
	if !(math.Abs(sum-want) <= 1e-13*want) {
		t.Errorf("sum: got %v, want %v", sum, want)
	}
	if exps(dst, []float64{5, 7}, 0.5, 3.5); dst[1] != 1 || math.Abs(dst[0]-math.Exp(-1)) > 1e-16 {
		t.Errorf("half of 5 and 7: got %v", dst[:2])
	}
}
