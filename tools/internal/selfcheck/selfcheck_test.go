package selfcheck_test

import (
	"errors"
	"math"
	"testing"

	"github.com/plumbline-go/plumbline/tools/internal/selfcheck"
)

type rows = [][]float64

var good = rows{{1, 2}, {3, 4}, {5, 6}}

func wantRow(t *testing.T, err error, check string, row int) {
	t.Helper()
	var e *selfcheck.Error
	if row < 0 {
		if err != nil {
			t.Errorf("got %v, want no error", err)
		}
		return
	}
	if !errors.As(err, &e) || e.Check != check || e.Row != row {
		t.Errorf("got %v, want %s to fail at row %d", err, check, row)
	}
}

func TestFinite(t *testing.T) {
	wantRow(t, selfcheck.Finite(good), "", -1)
	wantRow(t, selfcheck.Finite(rows{{1, 2}, {3, math.NaN()}}), "capture", 1)
	wantRow(t, selfcheck.Finite(rows{{math.Inf(-1), 2}}), "capture", 0)
}

func TestEndpoint(t *testing.T) {
	nan, ulp := math.NaN(), math.Ldexp(1, -24) // of float32 at 0.5
	for _, tt := range []struct {
		name                string
		rows                rows
		hidden, norm, embed []float64
		row                 int
	}{
		{"good", good, []float64{0.5, 0.6}, []float64{0.5, 0.6}, []float64{1, 2}, -1},
		{"one element of the last row differs from the hidden state", good, []float64{5, 6.5}, []float64{5, 6.5}, []float64{1, 2}, -1},
		{"the last row is the hidden state", good, []float64{5, 6}, []float64{5, 6}, []float64{1, 2}, 2},
		{"row 0 is another token's embedding", good, []float64{0.5, 0.6}, []float64{0.5, 0.6}, []float64{1, 2.5}, 0},
		{"a shorter embedding", good, []float64{0.5, 0.6}, []float64{0.5, 0.6}, []float64{1}, 0},
		{"a shorter hidden state", good, []float64{5}, []float64{5}, []float64{1, 2}, 2},
		{"no layers", rows{{1, 2}}, []float64{5, 6}, []float64{5, 6}, []float64{1, 2}, 0},
		{"a hidden state with NaN", good, []float64{0.5, nan}, []float64{0.5, nan}, []float64{1, 2}, 2},
		{"a hidden state with an infinity", good, []float64{math.Inf(1), 1}, []float64{math.Inf(1), 1}, []float64{1, 2}, 2},
		{"a norm one rounding off", good, []float64{0.5, 0.6}, []float64{0.5 + ulp, 0.6}, []float64{1, 2}, -1},
		{"a norm two roundings off", good, []float64{-0.5, 0.6}, []float64{-0.5 - 2*ulp, 0.6}, []float64{1, 2}, 2},
		{"a norm with NaN", good, []float64{0.5, 0.6}, []float64{0.5, nan}, []float64{1, 2}, 2},
		{"a shorter norm", good, []float64{0.5, 0.6}, []float64{0.5}, []float64{1, 2}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wantRow(t, selfcheck.Endpoint(tt.rows, selfcheck.Ends{LastHidden: tt.hidden, NormOfLast: tt.norm, Embedding: tt.embed}), "endpoint_self_check", tt.row)
		})
	}
}

func TestInterior(t *testing.T) {
	nan := math.NaN()
	for _, tt := range []struct {
		name string
		a, b rows
		row  int
	}{
		{"same", good, rows{{1, 2}, {3, 4}, {5, 6}}, -1},
		{"an inner row", good, rows{{1, 2}, {3, math.Nextafter(4, 5)}, {5, 6}}, 1},
		{"the last row", good, rows{{1, 2}, {3, 4}, {5.5, 6}}, 2},
		{"a row less", good, good[:2], 2},
		{"NaN on both sides", rows{{nan}}, rows{{nan}}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wantRow(t, selfcheck.Interior(tt.a, tt.b), "interior_row_oracle", tt.row)
		})
	}
}
