package quant

import (
	"math/rand/v2"
	"testing"
)

// The integer product must be exact at the extremes: all factors ±127, on both
// sides of the reduction's block length, and with partial sums that cancel late.
func TestIntegerProductIsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, cols := range []int{1, 2, 63, 64, maxReduction - 1, maxReduction, maxReduction + 1, 2*maxReduction + 7, 2*maxReduction + 8, 14336} {
		const n, rows = 3, tileRows + 5
		for name, draw := range map[string]func(i int) int8{
			"all 127":         func(int) int8 { return 127 },
			"all -127":        func(int) int8 { return -127 },
			"late cancelling": func(i int) int8 { return map[bool]int8{true: 127, false: -127}[i%cols < cols/2] },
			"random":          func(int) int8 { return int8(rng.IntN(255) - 127) },
		} {
			m := &matrix{rows: rows, cols: cols, codes: make([]int8, rows*cols), scales: make([]float64, rows)}
			for i := range m.codes {
				m.codes[i] = draw(i)
			}
			if cols%2 == 1 { // either way to the same sums
				m.wide = expand(make([]float32, len(m.codes)), m.codes)
			}
			s := &scratch{codes: make([]float32, n*cols)}
			for i := range s.codes {
				s.codes[i] = 127
				if i >= cols {
					s.codes[i] = float32(rng.IntN(255) - 127)
				}
			}
			var w tile
			for lo := 0; lo < rows; lo += tileRows {
				hi := min(lo+tileRows, rows)
				s.products(&w, m, lo, hi, n)
				for i := range n {
					for j := lo; j < hi; j++ {
						var want int64
						for k := range cols {
							want += int64(m.codes[j*cols+k]) * int64(s.codes[i*cols+k])
						}
						if got := w.sums[i*(hi-lo)+j-lo]; got != float64(want) {
							t.Fatalf("%s, %d columns, element (%d, %d): got %v, want %d", name, cols, i, j, got, want)
						}
					}
				}
			}
		}
	}
}

// Only a small matrix is kept twice.
func TestSmallMatricesAreKeptExpanded(t *testing.T) {
	for size, kept := range map[int]bool{maxWide: true, maxWide + 1: false} {
		data := make([]float32, size)
		for i := range data {
			data[i] = float32(i%255 - 127)
		}
		m, err := newMatrix(data, 1, size, false, halfEven)
		if err != nil {
			t.Fatal(err)
		}
		if (m.wide != nil) != kept {
			t.Errorf("%d weights: expanded: %v, want %v", size, m.wide != nil, kept)
		}
		for i, v := range m.wide {
			if v != float32(m.codes[i]) {
				t.Fatalf("weight %d: got %v, want %d", i, v, m.codes[i])
			}
		}
	}
}

// The block length must be the longest one that is safe.
func TestReductionBound(t *testing.T) {
	if sum := 127 * 127 * maxReduction; sum >= 1<<24 {
		t.Errorf("127*127*%d = %d, want below 2^24", maxReduction, sum)
	}
	if sum := 127 * 127 * (maxReduction + 1); sum < 1<<24 {
		t.Errorf("127*127*%d = %d is still below 2^24: the bound is slack", maxReduction+1, sum)
	}
}

func TestScalesPerRowAndPerTensor(t *testing.T) {
	data := []float32{127, 1, 2, 0, 0, 0, -254, 3, 1} // rows: scale 1, 0, 2
	m, err := newMatrix(data, 3, 3, false, halfEven)
	if err != nil {
		t.Fatal(err)
	}
	check := func(name string, got *matrix, codes []int8, scales []float64) {
		t.Helper()
		for i, c := range codes {
			if got.codes[i] != c {
				t.Errorf("%s: code %d: got %d, want %d", name, i, got.codes[i], c)
			}
		}
		for i, s := range scales {
			if got.scales[i] != s {
				t.Errorf("%s: scale %d: got %v, want %v", name, i, got.scales[i], s)
			}
		}
	}
	check("per row", m, []int8{127, 1, 2, 0, 0, 0, -127, 2, 0}, []float64{1, 0, 2})
	m, err = newMatrix(data, 3, 3, true, halfEven)
	if err != nil {
		t.Fatal(err)
	}
	check("per tensor", m, []int8{64, 0, 1, 0, 0, 0, -127, 2, 0}, []float64{2, 2, 2})
}
