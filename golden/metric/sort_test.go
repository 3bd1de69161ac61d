package metric

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// plainSpearman is the textbook form: average ranks by comparing, then Pearson.
func plainSpearman(cand, ref []float64) float64 {
	ranks := func(row []float64) []float64 {
		order := make([]int, len(row))
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(a, b int) int { return cmp.Compare(row[a], row[b]) })
		out := make([]float64, len(row))
		for lo := 0; lo < len(order); {
			hi := lo + 1
			for hi < len(order) && row[order[hi]] == row[order[lo]] {
				hi++
			}
			for _, i := range order[lo:hi] {
				out[i] = float64(lo+1+hi) / 2
			}
			lo = hi
		}
		return out
	}
	return pearson(ranks(cand), ranks(ref))
}

// Long rows are sorted by counting. Every kind of value that decides how is here.
func TestSpearmanOfLongRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(29, 31))
	kinds := map[string]func() float64{
		"float32":                         func() float64 { return float64(float32(rng.NormFloat64())) },
		"float64":                         rng.NormFloat64,
		"float32, masked":                 func() float64 { return []float64{-math.MaxFloat32, float64(rng.Float32())}[rng.IntN(2)] },
		"subnormal float32":               func() float64 { return float64(math.Float32frombits(rng.Uint32N(1 << 20))) },
		"infinities":                      func() float64 { return []float64{-math.Inf(1), math.Inf(1), rng.NormFloat64()}[rng.IntN(3)] },
		"zeros of either sign, fractions": func() float64 { return []float64{0, math.Copysign(0, -1), 0.5, -0.5}[rng.IntN(4)] },
		"zeros of either sign":            func() float64 { return []float64{0, math.Copysign(0, -1), 1, -1}[rng.IntN(4)] },
		"few values":                      func() float64 { return float64(rng.IntN(5)) - 2.5 },
		"small int32":                     func() float64 { return float64(rng.IntN(2000) - 1000) },
		"all of int32":                    func() float64 { return float64(int32(rng.Uint32())) },
		"the ends of int32":               func() float64 { return []float64{math.MinInt32, math.MaxInt32, 0}[rng.IntN(3)] },
		"integers beyond int32":           func() float64 { return float64(rng.Int64N(1<<40)) + 0x1p33 },
		"integers above 2^24, +1":         func() float64 { return float64(1<<24 + rng.IntN(4)) },
		"one digit differs":               func() float64 { return float64(rng.IntN(100) << 11) },
	}
	for name, value := range kinds {
		for _, n := range []int{fewest - 1, fewest, 3*fewest + 7} {
			a, b := make([]float64, n), make([]float64, n)
			for i := range a {
				a[i] = value()
				b[i] = a[i]
				if rng.IntN(2) == 0 {
					b[i] = value()
				}
			}
			got, want := Spearman(a, b), plainSpearman(a, b)
			if !(math.Abs(got-want) <= 1e-12) {
				t.Errorf("%s, %d values: got %v, want %v", name, n, got, want)
			}
			mixed := make([]float64, n)
			for i := range mixed {
				mixed[i] = rng.NormFloat64()
			}
			if got, want := Spearman(a, mixed), plainSpearman(a, mixed); !(math.Abs(got-want) <= 1e-12) {
				t.Errorf("%s against float64, %d values: got %v, want %v", name, n, got, want)
			}
		}
	}
	long, flat := make([]float64, 2*fewest), make([]float64, 2*fewest)
	for i := range long {
		long[i], flat[i] = float64(i), 0.1
	}
	if got := Spearman(flat, long); !math.IsNaN(got) {
		t.Errorf("a long constant row: got %v, want NaN", got)
	}
	long[fewest] = math.NaN()
	if got := Spearman(flat, long); !math.IsNaN(got) {
		t.Errorf("a NaN in a long row: got %v, want NaN", got)
	}
}

// The order is checked by itself, since a correlation hides a swap of neighbours.
func TestSort(t *testing.T) {
	rng := rand.New(rand.NewPCG(37, 41))
	var s sorter
	s.resize(5 * fewest)
	for _, scale := range []float64{1, 1e-30, 3e9} {
		row := make([]float64, 5*fewest)
		for i := range row {
			row[i] = float64(float32(scale * rng.NormFloat64()))
			if scale == 3e9 {
				row[i] = math.Trunc(math.Mod(row[i], math.MaxInt32))
			}
		}
		s.sort(row, nil)
		seen := make([]bool, len(row))
		for i, e := range s.sorted {
			if seen[e.load()] {
				t.Fatalf("scale %g: element %d stands there twice", scale, e.load())
			}
			seen[e.load()] = true
			if i > 0 {
				last := s.sorted[i-1]
				if a, b := row[last.load()], row[e.load()]; a > b || a == b != (last.key() == e.key()) {
					t.Fatalf("scale %g: place %d: %v with key %d after %v with key %d", scale, i, b, e.key(), a, last.key())
				}
			}
		}
	}
}
