package quant

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas"
	blasgonum "gonum.org/v1/gonum/blas/gonum"
)

const (
	// maxReduction is the longest dot product of codes whose partial sums are
	// all integers below 2^24, hence exact in float32: 127*127*1040 < 2^24.
	maxReduction = 1040
	// tileRows is how many rows of a matrix are expanded to float32 at a time.
	tileRows = 64
	// maxWide is the largest matrix that is kept expanded as well: a step of a
	// decode would expand it for a single row of input.
	maxWide = 1 << 17
)

func expand(dst []float32, codes []int8) []float32 {
	for i, c := range codes {
		dst[i] = float32(c)
	}
	return dst
}

// matrix is a weight [rows, cols] as int8 codes with one scale per row.
type matrix struct {
	rows, cols int
	codes      []int8
	scales     []float64
	// wide are the codes as float32, of a small matrix alone.
	wide []float32
}

// newMatrix quantises a row-major weight, with one scale per row or, perTensor,
// the same scale for all rows.
func newMatrix(data []float32, rows, cols int, perTensor bool, r rounding) (*matrix, error) {
	m := &matrix{rows: rows, cols: cols, codes: make([]int8, len(data)), scales: make([]float64, rows)}
	for i := range rows {
		scale, ok := scaleOf32(data[i*cols : (i+1)*cols])
		if !ok {
			return nil, fmt.Errorf("a NaN or infinity in row %d", i)
		}
		m.scales[i] = scale
	}
	if perTensor {
		all := 0.0
		for _, s := range m.scales {
			all = math.Max(all, s)
		}
		for i := range m.scales {
			m.scales[i] = all
		}
	}
	for i := range rows {
		for j := i * cols; j < (i+1)*cols; j++ {
			m.codes[j] = int8(r.code(float64(data[j]), m.scales[i]))
		}
	}
	if len(m.codes) <= maxWide {
		m.wide = expand(make([]float32, len(m.codes)), m.codes)
	}
	return m, nil
}

// scaleOf32 is scaleOf for float32 data.
func scaleOf32(x []float32) (scale float64, ok bool) {
	largest := float32(0)
	for _, v := range x {
		if v < 0 {
			v = -v
		}
		if !(v <= math.MaxFloat32) {
			return 0, false
		}
		if v > largest {
			largest = v
		}
	}
	return float64(largest) / maxCode, true
}

// scratch is the working memory of products; not for concurrent use.
type scratch struct {
	codes   []float32 // [n, cols]: codes of the input
	scales  []float64 // [n]: their scales
	tile    []float32 // [tileRows, cols]: expanded codes of the weight
	product []float32 // [n, tileRows]
	sums    []float64 // [n, tileRows]: integer sums
}

// grow returns s with length n, with undefined content.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// quantise fills the scratch's codes and scales with x [n, cols], one scale per
// row. When a row holds a NaN or infinity it returns that row's index, else -1.
func (s *scratch) quantise(x []float64, n, cols int, r rounding) (badRow int) {
	s.codes, s.scales = grow(s.codes, n*cols), grow(s.scales, n)
	for t := range n {
		scale, ok := r.codes(s.codes[t*cols:(t+1)*cols], x[t*cols:(t+1)*cols])
		if !ok {
			return t
		}
		s.scales[t] = scale
	}
	return -1
}

// mul writes x*mᵀ + bias to dst [n, rows] for the x that quantise was last given.
func (s *scratch) mul(dst []float64, m *matrix, bias []float64, n int) {
	for lo := 0; lo < m.rows; lo += tileRows {
		hi := min(lo+tileRows, m.rows)
		s.integerSums(m, lo, hi, n)
		for t := range n {
			out, sums := dst[t*m.rows+lo:t*m.rows+hi], s.sums[t*(hi-lo):(t+1)*(hi-lo)]
			for j := range out {
				out[j] = sums[j] * (s.scales[t] * m.scales[lo+j])
				if bias != nil {
					out[j] += bias[lo+j]
				}
			}
		}
	}
}

// mulCodes writes the products of codes, without any scale, to dst [n, rows].
func (s *scratch) mulCodes(dst []float64, m *matrix, n int) {
	for lo := 0; lo < m.rows; lo += tileRows {
		hi := min(lo+tileRows, m.rows)
		s.integerSums(m, lo, hi, n)
		for t := range n {
			copy(dst[t*m.rows+lo:t*m.rows+hi], s.sums[t*(hi-lo):])
		}
	}
}

// integerSums writes the exact products of the input's codes with rows
// [lo, hi) of m to s.sums [n, hi-lo].
func (s *scratch) integerSums(m *matrix, lo, hi, n int) {
	width := hi - lo
	tile := m.wide
	if tile != nil {
		tile = tile[lo*m.cols : hi*m.cols]
	} else {
		s.tile = grow(s.tile, width*m.cols)
		tile = expand(s.tile, m.codes[lo*m.cols:hi*m.cols])
	}
	s.product, s.sums = grow(s.product, n*width), grow(s.sums, n*width)
	for k := 0; k < m.cols; k += maxReduction {
		length := min(maxReduction, m.cols-k)
		blasgonum.Implementation{}.Sgemm(blas.NoTrans, blas.Trans, n, width, length,
			1, s.codes[k:], m.cols, tile[k:], m.cols, 0, s.product, width)
		for i, v := range s.product {
			if k == 0 {
				s.sums[i] = float64(v)
			} else {
				s.sums[i] += float64(v)
			}
		}
	}
}
