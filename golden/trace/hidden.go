package trace

import (
	"fmt"
	"math"
	"slices"
)

// HiddenStats describes the hidden rows of one place, condition and scope.
// Formulas are the script's, over all values: the sums here run in float64, and
// each result is rounded to the float32 that the script's tensor would hold.
type HiddenStats struct {
	// Shape is tokens, width.
	Shape  []int
	DType  string
	SHA256 string
	// Mean, population standard deviation, root mean square, largest magnitude.
	Mean, Std, RMS, MaxAbs float64
}

// DescribeHidden computes the statistics of rows. at names them in errors.
func DescribeHidden(at string, h Hidden) (HiddenStats, error) {
	if err := h.check(at); err != nil {
		return HiddenStats{}, err
	}
	return describeHidden(h), nil
}

// describeHidden is DescribeHidden for rows that were checked.
func describeHidden(h Hidden) HiddenStats {
	var sum, squares, most float64
	for _, row := range h.Rows {
		for _, v := range row {
			x := float64(v)
			sum += x
			squares += x * x
			most = max(most, math.Abs(x))
		}
	}
	n := float64(len(h.Rows) * h.width())
	mean := sum / n
	var around float64
	for _, row := range h.Rows {
		for _, v := range row {
			d := float64(v) - mean
			around += d * d
		}
	}
	return HiddenStats{
		Shape: []int{len(h.Rows), h.width()}, DType: string(h.DType), SHA256: TensorHash(h.DType, h.Rows),
		Mean: single(mean), Std: single(math.Sqrt(around / n)), RMS: single(math.Sqrt(squares / n)), MaxAbs: most,
	}
}

// HiddenComparison compares the hidden rows of two conditions, token by token.
type HiddenComparison struct {
	Tokens int
	// ExactRows is how many rows are equal in every value.
	ExactRows int
	// MeanCosine and MinCosine are over the tokens' cosines, each clamped to
	// [-1, 1]; a norm below 1e-12 counts as 1e-12.
	MeanCosine, MinCosine float64
	// MeanRelativeL2 is the mean of |right - left| / max(|left|, 1e-12), MaxAbsDelta
	// the largest |right - left|.
	MeanRelativeL2, MaxAbsDelta float64
}

const tinyNorm = 1e-12

// CompareHidden compares the rows of two conditions. A difference is rounded to
// float32 before anything is made of it, as are a token's cosine and relative L2.
func CompareHidden(at string, left, right Hidden) (HiddenComparison, error) {
	for _, h := range []Hidden{left, right} {
		if err := h.check(at); err != nil {
			return HiddenComparison{}, err
		}
	}
	return compareHidden(at, left, right)
}

// compareHidden is CompareHidden for rows that were checked.
func compareHidden(at string, left, right Hidden) (HiddenComparison, error) {
	if len(left.Rows) != len(right.Rows) || left.width() != right.width() {
		return HiddenComparison{}, &InputError{at, "shape of the right side", fmt.Sprintf("[%d, %d]", len(right.Rows), right.width()),
			fmt.Sprintf("[%d, %d], as on the left", len(left.Rows), left.width())}
	}
	c := HiddenComparison{Tokens: len(left.Rows), MinCosine: math.Inf(1)}
	var cosines, relatives float64
	for t, l := range left.Rows {
		r := right.Rows[t]
		var dot, ll, rr, dd float64
		for i, v := range l {
			x, y := float64(v), float64(r[i])
			d := float64(r[i] - v)
			dot += x * y
			ll += x * x
			rr += y * y
			dd += d * d
			c.MaxAbsDelta = max(c.MaxAbsDelta, math.Abs(d))
		}
		nl, nr := math.Sqrt(ll), math.Sqrt(rr)
		cosine := single(dot / math.Max(nl, tinyNorm) / math.Max(nr, tinyNorm))
		cosine = math.Max(-1, math.Min(1, cosine))
		cosines += cosine
		c.MinCosine = math.Min(c.MinCosine, cosine)
		relatives += single(math.Sqrt(dd) / math.Max(nl, tinyNorm))
		if slices.Equal(l, r) {
			c.ExactRows++
		}
	}
	n := float64(c.Tokens)
	c.MeanCosine, c.MeanRelativeL2 = single(cosines/n), single(relatives/n)
	return c, finite(at, figure{"max_abs_delta", c.MaxAbsDelta}, figure{"mean_relative_l2", c.MeanRelativeL2})
}

// single rounds to float32.
func single(x float64) float64 { return float64(float32(x)) }

type figure struct {
	name  string
	value float64
}

// finite refuses figures that no JSON has.
func finite(at string, figures ...figure) error {
	for _, f := range figures {
		if math.IsNaN(f.value) || math.IsInf(f.value, 0) {
			return &InputError{at, f.name, fmt.Sprint(f.value), "a finite figure"}
		}
	}
	return nil
}
