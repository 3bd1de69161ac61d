package quant

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas"
	blasgonum "gonum.org/v1/gonum/blas/gonum"

	"github.com/plumbline-go/plumbline/engine"
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
	// maxBatch is how many rows of an input are multiplied at a time where the
	// order of summation shows: larger products are summed in parts by gonum, so
	// that a row would depend on how many there are.
	maxBatch = 128
)

func expand(dst []float32, codes []int8) []float32 {
	for i, c := range codes {
		dst[i] = float32(c)
	}
	return dst
}

// matrix is a weight [rows, cols] as int8 codes with one scale per row, or the
// weight itself.
type matrix struct {
	rows, cols int
	codes      []int8
	scales     []float64
	// wide are the codes as float32, of a small matrix alone; or a float weight,
	// whose scales are 1.
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

// floatMatrix is a weight as it is, in the caller's memory.
func floatMatrix(data []float32, rows, cols int) (*matrix, error) {
	if _, ok := scaleOf32(data); !ok {
		return nil, fmt.Errorf("a NaN or infinity")
	}
	m := &matrix{rows: rows, cols: cols, wide: data, scales: make([]float64, rows)}
	for i := range m.scales {
		m.scales[i] = 1
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
	codes   []float32 // [n, cols]: codes of the input, or what they stand for
	scales  []float64 // [n]: their scales
	inexact bool      // the products of the input aren't integers: their order matters
	tiles   []tile    // one per goroutine
}

// tile is the working memory of products with tileRows rows of a weight.
type tile struct {
	weight  []float32 // [tileRows, cols]: expanded codes
	product []float32 // [n, tileRows]
	sums    []float64 // [n, tileRows]: sums of the products
}

// grow returns s with length n, with undefined content.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// quantise fills the scratch's codes and scales with x [n, cols], one scale per
// row, or as values in the scheme's blocks. When a row holds what can't be rounded
// it returns that row's index, else -1.
func (s *scratch) quantise(x []float64, n, cols int, r rounding, scheme engine.Scheme) (badRow int) {
	s.codes, s.scales = grow(s.codes, n*cols), grow(s.scales, n)
	s.inexact = scheme.FloatWeights || scheme.ActivationBlock > 0
	for t := range n {
		dst, row := s.codes[t*cols:(t+1)*cols], x[t*cols:(t+1)*cols]
		if scheme.ActivationBlock > 0 {
			if !r.blockValues(dst, row, blockFor(scheme.ActivationBlock, len(row))) {
				return t
			}
			s.scales[t] = 1
			continue
		}
		scale, ok := r.codes(dst, row)
		if !ok {
			return t
		}
		s.scales[t] = scale
	}
	return -1
}

// mul writes x*mᵀ + bias to dst [n, rows] for the x that quantise was last given.
func (s *scratch) mul(dst []float64, m *matrix, bias []float64, n int) {
	s.each(m, n, func(w *tile, lo, hi int) {
		for t := range n {
			out, sums := dst[t*m.rows+lo:t*m.rows+hi], w.sums[t*(hi-lo):(t+1)*(hi-lo)]
			for j := range out {
				out[j] = sums[j] * (s.scales[t] * m.scales[lo+j])
				if bias != nil {
					out[j] += bias[lo+j]
				}
			}
		}
	})
}

// mulCodes writes the products of codes, without any scale, to dst [n, rows].
func (s *scratch) mulCodes(dst []float64, m *matrix, n int) {
	s.each(m, n, func(w *tile, lo, hi int) {
		for t := range n {
			copy(dst[t*m.rows+lo:t*m.rows+hi], w.sums[t*(hi-lo):])
		}
	})
}

// each gives use the products with rows [lo, hi) of m, all of them in parts. It is
// called from several goroutines at once.
func (s *scratch) each(m *matrix, n int, use func(w *tile, lo, hi int)) {
	parts := (m.rows + tileRows - 1) / tileRows
	count := workers(parts, n*m.rows*m.cols)
	for len(s.tiles) < count {
		s.tiles = append(s.tiles, tile{})
	}
	spread(count, parts, func(worker, part int) {
		lo := part * tileRows
		hi := min(lo+tileRows, m.rows)
		w := &s.tiles[worker]
		s.products(w, m, lo, hi, n)
		use(w, lo, hi)
	})
}

// products writes the products of the input with rows [lo, hi) of m to w.sums
// [n, hi-lo]: those of codes are exact, others float32 over at most maxReduction
// factors.
func (s *scratch) products(w *tile, m *matrix, lo, hi, n int) {
	width := hi - lo
	weight := m.wide
	if weight != nil {
		weight = weight[lo*m.cols : hi*m.cols]
	} else {
		w.weight = grow(w.weight, width*m.cols)
		weight = expand(w.weight, m.codes[lo*m.cols:hi*m.cols])
	}
	w.product, w.sums = grow(w.product, n*width), grow(w.sums, n*width)
	for k := 0; k < m.cols; k += maxReduction {
		length := min(maxReduction, m.cols-k)
		step := n
		if s.inexact {
			step = maxBatch
		}
		for t := 0; t < n; t += step {
			blasgonum.Implementation{}.Sgemm(blas.NoTrans, blas.Trans, min(step, n-t), width, length,
				1, s.codes[t*m.cols+k:], m.cols, weight[k:], m.cols, 0, w.product[t*width:], width)
		}
		for i, v := range w.product {
			if k == 0 {
				w.sums[i] = float64(v)
			} else {
				w.sums[i] += float64(v)
			}
		}
	}
}

// blockFor is the block that inputs of a width are rounded in. ggml's K types need
// rows of whole blocks; a matrix with other rows is stored in a type of blocks of
// 32, and its inputs are rounded likewise.
func blockFor(block, width int) int {
	if block > 32 && width%block != 0 {
		return 32
	}
	return block
}
