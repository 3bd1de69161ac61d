package metric

import "math"

// Centred holds the figures of two rows of logits that don't see a shift of a
// whole row, as softmax doesn't. Every one is NaN where a row holds a NaN or an
// infinity, or is empty.
type Centred struct {
	// GotMean, GotStd, WantMean and WantStd are each row's mean and population
	// standard deviation (divisor n), in the row's unit: z = (x - mean) / std.
	GotMean, GotStd, WantMean, WantStd float64
	// L2 is |(got - mean(got)) - (want - mean(want))| / |want - mean(want)|,
	// Euclidean norms, as [CentredL2].
	L2 float64
	// Slope is the least-squares slope of got on want, as [Slope].
	Slope float64
	// RMSZDiff is the root of the mean of (z(got) - z(want))^2, in standard
	// deviations: sqrt(2(1 - r)) with r the rows' correlation, but exact for
	// rows that hardly differ. It doesn't see scale. NaN where a row is constant.
	RMSZDiff float64
}

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
	return sumsOf(got, want).l2()
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
	return sumsOf(got, want).slope()
}

// Centre returns all figures of [Centred] at the cost of little more than one.
func Centre(got, want []float64) Centred {
	mustMatch("Centre", len(got), len(want))
	s := sumsOf(got, want)
	n := float64(len(want))
	c := Centred{GotMean: s.gotMean, WantMean: s.wantMean, L2: s.l2(), Slope: s.slope(),
		GotStd: math.Sqrt(s.got / n), WantStd: math.Sqrt(s.want / n)}
	// z(got) - z(want) = (got - ratio*want - offset) / std(got).
	ratio := c.GotStd / c.WantStd
	offset := c.GotMean - ratio*c.WantMean
	var sum float64
	for i, w := range want {
		d := got[i] - ratio*w - offset
		sum += d * d
	}
	c.RMSZDiff = math.Sqrt(sum/n) / c.GotStd
	return c
}

// centredSums are sums over two centred rows: of the squares of got, of want and
// of their difference, and of the product of both.
type centredSums struct{ gotMean, wantMean, got, want, diff, dot float64 }

func (s centredSums) l2() float64    { return math.Sqrt(s.diff) / math.Sqrt(s.want) }
func (s centredSums) slope() float64 { return s.dot / s.want }

// sumsOf gives NaN for rows that aren't finite. The difference is centred by
// itself: two means apart would bring their own rounding into a small one.
func sumsOf(got, want []float64) centredSums {
	var sg, sw, sd float64
	for i, w := range want {
		g := got[i]
		sg, sw, sd = sg+g, sw+w, sd+(g-w)
	}
	if len(want) == 0 || !finite(sg) || !finite(sw) {
		nan := math.NaN()
		return centredSums{nan, nan, nan, nan, nan, nan}
	}
	n := float64(len(want))
	s := centredSums{gotMean: sg / n, wantMean: sw / n}
	md := sd / n
	// The mean of n equal values needn't be that value.
	if constant(got) {
		s.gotMean = got[0]
	}
	if constant(want) {
		s.wantMean = want[0]
	}
	if constantDifference(got, want) {
		md = got[0] - want[0]
	}
	for i, w := range want {
		g := got[i]
		cg, cw, cd := g-s.gotMean, w-s.wantMean, g-w-md
		s.got += cg * cg
		s.want += cw * cw
		s.diff += cd * cd
		s.dot += cg * cw
	}
	return s
}

func constantDifference(got, want []float64) bool {
	for i, w := range want {
		if got[i]-w != got[0]-want[0] {
			return false
		}
	}
	return true
}
