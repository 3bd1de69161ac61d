package quant

import (
	"math"
	"testing"
)

func TestRoundingOfTies(t *testing.T) {
	for _, c := range []struct{ in, even, away float64 }{
		{0.5, 0, 1}, {1.5, 2, 2}, {2.5, 2, 3}, {-0.5, 0, -1}, {-2.5, -2, -3}, {126.5, 126, 127},
		{0.4999, 0, 0}, {0.5001, 1, 1}, {-1.5001, -2, -2}, {127, 127, 127}, {0, 0, 0},
		// within 2^-31 of a tie is a tie
		{2.5 + 1e-12, 2, 3}, {2.5 - 1e-12, 2, 3}, {3.5 - 1e-12, 4, 4},
		// 2^-29 away is not
		{2.5 + 1.0/(1<<29), 3, 3}, {3.5 - 1.0/(1<<29), 3, 3},
	} {
		if got := halfEven.round(c.in); got != c.even {
			t.Errorf("half to even: %v: got %v, want %v", c.in, got, c.even)
		}
		if got := halfAway.round(c.in); got != c.away {
			t.Errorf("half away from zero: %v: got %v, want %v", c.in, got, c.away)
		}
	}
}

func TestCodesByHand(t *testing.T) {
	for _, c := range []struct {
		name  string
		in    []float64
		scale float64
		want  []float32
	}{
		// largest 254: scale 2; 1/2, 3/2, 5/2 are ties
		{"ties", []float64{254, 1, 3, 5, -1, -3, -5}, 2, []float32{127, 0, 2, 2, 0, -2, -2}},
		{"negative largest", []float64{-127, 63.4, 63.6}, 1, []float32{-127, 63, 64}},
		{"zeros", []float64{0, 0}, 0, []float32{0, 0}},
		{"one value", []float64{-3}, 3.0 / 127, []float32{-127}},
	} {
		got := make([]float32, len(c.in))
		scale, ok := halfEven.codes(got, c.in)
		if !ok || scale != c.scale {
			t.Errorf("%s: scale %v, %v, want %v", c.name, scale, ok, c.scale)
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s: code %d: got %v, want %v", c.name, i, got[i], c.want[i])
			}
		}
	}
}

func TestCodesAreClamped(t *testing.T) {
	for _, c := range []struct{ x, want float64 }{{1e9, 127}, {-1e9, -127}, {127.9, 127}, {-128, -127}} {
		if got := halfEven.code(c.x, 1); got != c.want {
			t.Errorf("code(%v): got %v, want %v", c.x, got, c.want)
		}
	}
}

func TestNonFiniteIsNotQuantised(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if _, ok := scaleOf([]float64{1, bad, 2}); ok {
			t.Errorf("scaleOf with %v: got ok", bad)
		}
		if _, ok := scaleOf32([]float32{1, float32(bad), 2}); ok {
			t.Errorf("scaleOf32 with %v: got ok", bad)
		}
	}
}

func TestRowScaleFitsADump(t *testing.T) {
	x := []float64{math.Pi, -math.E, 0.1, 1.0 / 3}
	step, ok := halfEven.row(x, true)
	if !ok {
		t.Fatal("finite row refused")
	}
	frac, _ := math.Frexp(step)
	if m := frac * (1 << 31); m != math.Trunc(m) || m < 1<<30 || m > 1<<31 {
		t.Errorf("step %v: significand %v is no integer in [2^30, 2^31]", step, m)
	}
	if e := math.Abs(step - math.Pi/127); !(e <= step*0x1p-31) {
		t.Errorf("step %v is %v off pi/127", step, e)
	}
	// codes: 127, -e*127/pi = -109.889, 4.0425, 13.475
	for i, code := range []float64{127, -110, 4, 13} {
		if x[i] != code*step {
			t.Errorf("element %d: got %v codes, want %v", i, x[i]/step, code)
		}
	}
}

func TestRound31(t *testing.T) {
	for _, c := range []struct{ in, want float64 }{
		{1, 1}, {0, 0}, {1 + 0x1p-30, 1 + 0x1p-30},
		{1 + 0x1p-31, 1},                   // tie, to even
		{1 + 3*0x1p-31, 1 + 2*0x1p-30},     // tie, to even
		{2 - 0x1p-40, 2},                   // carries
		{0x1p-40 * (1 + 0x1p-33), 0x1p-40}, // whatever the exponent
	} {
		if got := round31(c.in); got != c.want {
			t.Errorf("round31(%v): got %v, want %v", c.in, got, c.want)
		}
	}
}
