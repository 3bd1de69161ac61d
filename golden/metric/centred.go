package metric

import "math"

// CentredL2 is |(got - mean(got)) - (want - mean(want))| / |want - mean(want)|,
// Euclidean norms: [RelativeL2] of two rows of logits without what softmax
// doesn't see, a shift of the whole row. It sees direction and scale. The
// denominator is the reference's spread, sqrt(n) times its population standard
// deviation.
//
// A constant want gives +Inf, or NaN when got is constant too. NaN where a row
// holds a NaN or an infinity, or is empty.
func CentredL2(got, want []float64) float64 {
	mustMatch("CentredL2", len(got), len(want))
	m := moments(got, want)
	return math.Sqrt(m.diff) / math.Sqrt(m.want)
}

// Slope is the least-squares slope of the centred got on the centred want,
// sum(g w) / sum(w^2): the scale at which got holds want's logits, 1 for equal
// units. For logits without a unit (int32 of an integer engine), got / Slope is
// in the reference's. Noise in got doesn't bias it.
//
// NaN where want is constant, where a row holds a NaN or an infinity, or is
// empty; 0 where only got is constant.
func Slope(got, want []float64) float64 {
	mustMatch("Slope", len(got), len(want))
	m := moments(got, want)
	return m.dot / m.want
}

// centredSums are sums over two centred rows: of the squares of their
// difference and of want, and of the product of both.
type centredSums struct{ diff, want, dot float64 }

// moments are NaN for rows that aren't finite. The difference is centred by
// itself: two means apart would bring their own rounding into a small one.
func moments(got, want []float64) centredSums {
	n := float64(len(want))
	var sg, sw, sd float64
	sameG, sameW, sameD := true, true, true
	for i, w := range want {
		g := got[i]
		sg, sw, sd = sg+g, sw+w, sd+(g-w)
		sameG, sameW, sameD = sameG && g == got[0], sameW && w == want[0], sameD && g-w == got[0]-want[0]
	}
	if len(want) == 0 || !finite(sg) || !finite(sw) {
		nan := math.NaN()
		return centredSums{nan, nan, nan}
	}
	mg, mw, md := sg/n, sw/n, sd/n
	// The mean of n equal values needn't be that value.
	if sameG {
		mg = got[0]
	}
	if sameW {
		mw = want[0]
	}
	if sameD {
		md = got[0] - want[0]
	}
	var m centredSums
	for i, w := range want {
		g := got[i]
		cg, cw, cd := g-mg, w-mw, g-w-md
		m.diff += cd * cd
		m.want += cw * cw
		m.dot += cg * cw
	}
	return m
}
