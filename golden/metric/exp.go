package metric

import "math"

// expTable holds 2^(i/expSteps).
var expTable = func() (t [expSteps]float64) {
	for i := range t {
		t[i] = math.Exp2(float64(i) / expSteps)
	}
	return t
}()

const expSteps = 64

// exps fills dst with exp(x*unit - peak) of a finite row whose largest value
// times unit is peak, and returns their sum. The results are within a relative
// 4e-16 of exp's.
//
// A whole vocabulary of them is the cost of a KL, so they're computed here in
// half the time of math.Exp: exp(y) = 2^k * 2^(i/64) * exp(r) with |r| <=
// log(2)/128, exp(r) by its series (P. T. P. Tang, "Table-driven implementation
// of the exponential function in IEEE floating-point arithmetic", ACM TOMS 15,
// 1989).
func exps(dst, row []float64, unit, peak float64) float64 {
	const (
		perStep = expSteps / math.Ln2
		// log(2)/64 in two parts, the first with trailing zeros, so that a
		// multiple of it is exact.
		stepHigh = 0x1.62e42feep-1 / expSteps
		stepLow  = 0x1.a39ef35793c76p-33 / expSteps
		// Added and taken away again, it rounds to a whole number, which stands
		// in the lowest bits of the sum.
		round = 0x1.8p52
		least = -700 // further down 2^k has no exponent of a normal number
	)
	dst = dst[:len(row)]
	var sum float64
	for i, x := range row {
		x = x*unit - peak
		if x < least {
			dst[i] = math.Exp(x)
			sum += dst[i]
			continue
		}
		t := x*perStep + round
		n := math.Float64bits(t)
		k := t - round
		r := (x - k*stepHigh) - k*stepLow
		r2 := r * r
		p := r + r2*((1./2+r*(1./6))+r2*(1./24+r*(1./120)))
		s := math.Float64frombits(math.Float64bits(expTable[n%expSteps]) + uint64(int64(n<<12)>>(12+6))<<52)
		e := s + s*p
		dst[i] = e
		sum += e
	}
	return sum
}
