package quant

import "math"

// toHalf rounds to the nearest float16, ties to even: what a value or a scale is
// after it was stored as one. What is too large is infinite.
func toHalf(x float64) float64 {
	const (
		dropped  = 52 - 10   // fraction bits of a float64 that a float16 hasn't
		smallest = 0x1p-14   // the least normal float16
		snapHalf = 0x1.8p+28 // adding it rounds to multiples of 2^-24
		largest  = 65504
	)
	if math.Abs(x) < smallest {
		return (x + snapHalf) - snapHalf
	}
	bits := math.Float64bits(x)
	bits += 1<<(dropped-1) - 1 + bits>>dropped&1
	bits &^= 1<<dropped - 1
	r := math.Float64frombits(bits)
	if r > largest || r < -largest {
		return math.Copysign(math.Inf(1), x)
	}
	return r
}

// halves rounds x to float16 in place. It is not ok when an element isn't, or
// doesn't stay, finite.
func halves(x []float64) (ok bool) {
	for i, v := range x {
		x[i] = toHalf(v)
		if !(math.Abs(x[i]) <= math.MaxFloat64) {
			return false
		}
	}
	return true
}

// blockScale returns the scale that the codes of a block are made with, and the
// float16 that they are multiplied with later.
func blockScale(block []float64) (scale, stored float64, ok bool) {
	if scale, ok = scaleOf(block); !ok {
		return 0, 0, false
	}
	stored = toHalf(scale)
	return scale, stored, stored <= math.MaxFloat64
}

// blocks rounds x in place to int8 codes in blocks of so many values, each with
// a float16 scale; the last one may be shorter. It is not ok when an element is
// NaN or infinite, or a scale too large for a float16.
func (r rounding) blocks(x []float64, size int) (ok bool) {
	for ; len(x) > 0; x = x[min(size, len(x)):] {
		block := x[:min(size, len(x))]
		scale, stored, ok := blockScale(block)
		if !ok {
			return false
		}
		for i, v := range block {
			block[i] = r.code(v, scale) * stored
		}
	}
	return true
}

// blockValues is blocks into another slice. Nothing is lost: a code has 7 bits
// and a scale 11.
func (r rounding) blockValues(dst []float32, x []float64, size int) (ok bool) {
	for lo := 0; lo < len(x); lo += size {
		block := x[lo:min(lo+size, len(x))]
		scale, stored, ok := blockScale(block)
		if !ok {
			return false
		}
		for i, v := range block {
			dst[lo+i] = float32(r.code(v, scale) * stored)
		}
	}
	return true
}
