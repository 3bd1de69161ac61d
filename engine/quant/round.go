package quant

import "math"

// maxCode is the largest code: the range is symmetric, -128 is not used.
const maxCode = 127

// rounding says how ties are rounded.
type rounding bool

const (
	halfEven rounding = false
	halfAway rounding = true
)

// snap is 1.5*2^22: adding and subtracting it rounds |x| < 2^21 to a multiple of
// 2^-30.
const snap = 3 << 21

// round rounds x, |x| < 2^21, to an integer. What is within 2^-31 of a tie is a
// tie: int8 rows times bfloat16 gains make exact ties common, and the last bits
// of a float64 quotient, which differ between platforms, must not decide them.
func (r rounding) round(x float64) float64 {
	x = (x + snap) - snap
	if r == halfAway {
		return math.Round(x)
	}
	return math.RoundToEven(x)
}

// code returns round(x/scale) clamped to ±maxCode. A zero scale, which only a
// row of zeros has, gives 0.
func (r rounding) code(x, scale float64) float64 {
	if scale == 0 {
		return 0
	}
	c := r.round(x / scale)
	if c > maxCode {
		return maxCode
	}
	if c < -maxCode {
		return -maxCode
	}
	return c
}

// scaleOf returns max|x|/127. It is not ok when an element is NaN or infinite.
func scaleOf(x []float64) (scale float64, ok bool) {
	largest := 0.0
	for _, v := range x {
		a := math.Abs(v)
		if !(a <= math.MaxFloat64) {
			return 0, false
		}
		if a > largest {
			largest = a
		}
	}
	return largest / maxCode, true
}

// codes writes the codes of x to dst and returns their scale.
func (r rounding) codes(dst []float32, x []float64) (scale float64, ok bool) {
	scale, ok = scaleOf(x)
	if !ok {
		return 0, false
	}
	for i, v := range x {
		dst[i] = float32(r.code(v, scale))
	}
	return scale, true
}

// row rounds x in place to int8 with one scale and returns it. With short
// scales the scale has 31 significant bits.
func (r rounding) row(x []float64, short bool) (scale float64, ok bool) {
	scale, ok = scaleOf(x)
	if !ok {
		return 0, false
	}
	if short {
		scale = round31(scale)
	}
	for i, v := range x {
		x[i] = r.code(v, scale) * scale
	}
	return scale, true
}

// round31 rounds a scale to 31 significant bits: the m of m*2^e in an int8
// layer dump is in [2^30, 2^31), and every code*m*2^e is then exact in float64.
func round31(scale float64) float64 {
	frac, exp := math.Frexp(scale)
	return math.Ldexp(math.RoundToEven(math.Ldexp(frac, 31)), exp-31)
}
