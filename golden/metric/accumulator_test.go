package metric_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plumbline-go/plumbline/golden/metric"
)

var inf32 = float32(math.Inf(1))

func TestAccumulatorSums(t *testing.T) {
	var a metric.Accumulator
	a.Add([]float32{1, -2, 3}, []float32{1.5, -2, 2})
	a.Add([]float32{0.5, 7}, []float32{0.5, -7})
	got := a.Totals()
	// diffs -0.5 0 1 0 14; 0.25+1+196; 2.25+4+4+0.25+49; 1+4+9+0.25+49; 1.5+4+6+0.25-49.
	want := metric.Totals{N: 5, MaxAbs: 14, MaxAt: 4, SumSqDiff: 197.25, SumSqRef: 59.5, SumSqCand: 63.25, Dot: -37.25}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestAccumulatorOfNothing(t *testing.T) {
	var a metric.Accumulator
	a.Add(nil, nil)
	got := a.Totals()
	if got != (metric.Totals{MaxAt: -1}) {
		t.Errorf("got %+v", got)
	}
	if !math.IsNaN(got.RelativeL2()) || !math.IsNaN(got.NormRatio()) || !math.IsNaN(got.Cosine()) {
		t.Errorf("ratios of nothing: %v %v %v, want NaN", got.RelativeL2(), got.NormRatio(), got.Cosine())
	}
}

func TestAccumulatorMaxIsTheFirst(t *testing.T) {
	for at := range 40 {
		cand, ref := make([]float32, 50), make([]float32, 50)
		cand[at], cand[at+7] = -3, 3
		var a metric.Accumulator
		a.Add(cand, ref)
		if got := a.Totals(); got.MaxAbs != 3 || got.MaxAt != int64(at) {
			t.Errorf("max at %d: got %v at %d", at, got.MaxAbs, got.MaxAt)
		}
	}
}

// A chunked pass must give the very bits of one pass, and agree with the row
// formulas, wherever the stream is cut.
func TestAccumulatorDoesNotDependOnChunks(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 9))
	const n = 5000
	cand, ref := make([]float32, n), make([]float32, n)
	c64, r64 := make(row, n), make(row, n)
	for i := range ref {
		ref[i] = float32(rng.NormFloat64())
		cand[i] = ref[i] + float32(0.01*rng.NormFloat64())
		c64[i], r64[i] = float64(cand[i]), float64(ref[i])
	}
	var whole metric.Accumulator
	whole.Add(cand, ref)
	want := whole.Totals()
	for trial := range 50 {
		var a metric.Accumulator
		for lo := 0; lo < n; {
			hi := min(n, lo+rng.IntN(1+40*(trial+1)))
			a.Add(cand[lo:hi], ref[lo:hi])
			lo = hi
		}
		if got := a.Totals(); got != want {
			t.Fatalf("trial %d: got %+v, want %+v", trial, got, want)
		}
	}
	for _, tt := range []struct {
		name      string
		got, want float64
	}{
		{"relative l2", want.RelativeL2(), metric.RelativeL2(c64, r64)},
		{"norm ratio", want.NormRatio(), metric.NormRatio(c64, r64)},
		{"cosine", want.Cosine(), metric.Cosine(c64, r64)},
	} {
		if !(math.Abs(tt.got-tt.want) <= 1e-12*math.Abs(tt.want)) {
			t.Errorf("%s: got %v, the row formula gives %v", tt.name, tt.got, tt.want)
		}
	}
}

func TestAccumulatorCountsNonFinite(t *testing.T) {
	nan32 := float32(math.NaN())
	for _, at := range []int{0, 3, 1023, 1024, 2047, 2999} {
		for _, bad := range []float32{nan32, inf32, -inf32} {
			for side := range 3 { // candidate, reference, both
				cand, ref := make([]float32, 3000), make([]float32, 3000)
				for i := range ref {
					cand[i], ref[i] = 1, 2
				}
				wantC, wantR := int64(0), int64(0)
				if side != 1 {
					cand[at], cand[2999] = bad, bad
					wantC = 2
				}
				if side != 0 {
					ref[at], ref[2999] = bad, bad
					wantR = 2
				}
				if at == 2999 {
					wantC, wantR = wantC/2, wantR/2
				}
				var a metric.Accumulator
				a.Add(cand[:1500], ref[:1500])
				a.Add(cand[1500:], ref[1500:])
				got := a.Totals()
				if got.CandNonFinite != wantC || got.RefNonFinite != wantR {
					t.Errorf("%v at %d, side %d: got %d and %d non-finite, want %d and %d",
						bad, at, side, got.CandNonFinite, got.RefNonFinite, wantC, wantR)
				}
				if !math.IsNaN(got.MaxAbs) || got.MaxAt != int64(at) {
					t.Errorf("%v at %d, side %d: max %v at %d, want NaN at %d", bad, at, side, got.MaxAbs, got.MaxAt, at)
				}
				if got.RelativeL2() <= 1e6 {
					t.Errorf("%v at %d, side %d: relative l2 %v passes a bound", bad, at, side, got.RelativeL2())
				}
			}
		}
	}
}

// The largest float32 values don't overflow the sums, so a finite stream is
// never reported as broken.
func TestAccumulatorHoldsTheLargestFloats(t *testing.T) {
	cand, ref := make([]float32, 4096), make([]float32, 4096)
	for i := range ref {
		cand[i], ref[i] = math.MaxFloat32, -math.MaxFloat32
	}
	var a metric.Accumulator
	a.Add(cand, ref)
	got := a.Totals()
	if got.CandNonFinite != 0 || got.RefNonFinite != 0 || got.MaxAbs != 2*math.MaxFloat32 || got.RelativeL2() != 2 {
		t.Errorf("got %+v, relative l2 %v", got, got.RelativeL2())
	}
}

func TestAccumulatorLengthsThatDifferPanic(t *testing.T) {
	var a metric.Accumulator
	defer func() {
		if _, ok := recover().(*metric.LengthError); !ok {
			t.Error("no *LengthError")
		}
		if n := a.Totals().N; n != 0 {
			t.Errorf("%d pairs were counted", n)
		}
	}()
	a.Add([]float32{1, 2}, []float32{1})
}
