package metric

import "math"

// lanes is the number of independent sums. Four keep the floating-point units
// busy (one chain of additions would wait on itself); each element goes to lane
// index mod 4 whatever the chunk it came in, so that a result doesn't depend on
// how the rows were cut.
const lanes = 4

// block is how many pairs are summed between two looks at the sums.
const block = 1024

// Accumulator compares two equally long streams of float32 in one pass and
// constant memory. The zero value is ready. It isn't safe for concurrent use.
//
// A non-finite value poisons the sums, on purpose: RelativeL2 is then NaN and
// MaxAbs is NaN at the first such pair.
type Accumulator struct {
	n                        int64
	diff, ref, cand, dot     [lanes]float64
	maxAbs                   float64
	maxAt                    int64
	candNonFinite, refNonFin int64
	firstNonFinite           int64
}

// Totals are the sums over everything an [Accumulator] was fed.
type Totals struct {
	// N is the number of pairs.
	N int64
	// MaxAbs is max |cand - ref|, MaxAt the smallest index where it is reached
	// (0-based over the whole stream; -1 when N is 0). If any value is
	// non-finite, MaxAbs is NaN and MaxAt the first such index.
	MaxAbs float64
	MaxAt  int64
	// SumSqDiff, SumSqRef and SumSqCand are sums of squares, Dot is the sum of
	// cand*ref, all in float64.
	SumSqDiff, SumSqRef, SumSqCand, Dot float64
	// CandNonFinite and RefNonFinite count NaNs and infinities on each side.
	CandNonFinite, RefNonFinite int64
}

// RelativeL2 is sqrt(SumSqDiff / SumSqRef), as the function [RelativeL2].
func (t Totals) RelativeL2() float64 { return math.Sqrt(t.SumSqDiff) / math.Sqrt(t.SumSqRef) }

// NormRatio is sqrt(SumSqCand / SumSqRef), as the function [NormRatio].
func (t Totals) NormRatio() float64 { return math.Sqrt(t.SumSqCand) / math.Sqrt(t.SumSqRef) }

// Cosine is Dot / sqrt(SumSqCand * SumSqRef), clamped to [-1, 1], as the
// function [Cosine].
func (t Totals) Cosine() float64 {
	return clampUnit(t.Dot / (math.Sqrt(t.SumSqCand) * math.Sqrt(t.SumSqRef)))
}

// Add feeds the next chunk of both streams. It panics with a [*LengthError]
// when the chunks differ in length, and then leaves the sums as they were.
func (a *Accumulator) Add(cand, ref []float32) {
	mustMatch("Accumulator.Add", len(cand), len(ref))
	for len(cand) > 0 {
		n := min(len(cand), block)
		a.addBlock(cand[:n], ref[:n])
		cand, ref = cand[n:], ref[n:]
	}
}

// Totals returns the sums so far.
func (a *Accumulator) Totals() Totals {
	t := Totals{
		N: a.n, MaxAbs: a.maxAbs, MaxAt: a.maxAt,
		SumSqDiff: total(a.diff), SumSqRef: total(a.ref), SumSqCand: total(a.cand), Dot: total(a.dot),
		CandNonFinite: a.candNonFinite, RefNonFinite: a.refNonFin,
	}
	if a.n == 0 {
		t.MaxAt = -1
	}
	if a.poisoned() {
		t.MaxAbs, t.MaxAt = math.NaN(), a.firstNonFinite
	}
	return t
}

func (a *Accumulator) poisoned() bool { return a.candNonFinite+a.refNonFin > 0 }

func (a *Accumulator) addBlock(cand, ref []float32) {
	start := a.n
	i := 0
	for ; i < len(cand) && a.n%lanes != 0; i++ {
		a.addOne(cand[i], ref[i])
	}
	whole := i + (len(cand)-i)/lanes*lanes
	a.addLanes(cand[i:whole], ref[i:whole])
	for i = whole; i < len(cand); i++ {
		a.addOne(cand[i], ref[i])
	}
	// No finite float32 pair overflows a float64 sum of squares, so non-finite
	// sums mean a non-finite value: only then is the block read again.
	if s := total(a.cand) + total(a.ref); a.poisoned() || !finite(s) {
		a.countNonFinite(start, cand, ref)
	}
}

func (a *Accumulator) addOne(c32, r32 float32) {
	c, r := float64(c32), float64(r32)
	lane, d := a.n%lanes, c-r
	a.diff[lane] += d * d
	a.ref[lane] += r * r
	a.cand[lane] += c * c
	a.dot[lane] += c * r
	if ad := math.Abs(d); ad > a.maxAbs {
		a.maxAbs, a.maxAt = ad, a.n
	}
	a.n++
}

// addLanes sums a multiple of lanes pairs, the first of which belongs to lane 0.
func (a *Accumulator) addLanes(cand, ref []float32) {
	d0, d1, d2, d3 := a.diff[0], a.diff[1], a.diff[2], a.diff[3]
	r0, r1, r2, r3 := a.ref[0], a.ref[1], a.ref[2], a.ref[3]
	c0, c1, c2, c3 := a.cand[0], a.cand[1], a.cand[2], a.cand[3]
	p0, p1, p2, p3 := a.dot[0], a.dot[1], a.dot[2], a.dot[3]
	m := a.maxAbs
	over := false
	ref = ref[:len(cand)]
	for i := 0; i+lanes <= len(cand); i += lanes {
		c, r := cand[i:i+lanes:i+lanes], ref[i:i+lanes:i+lanes]
		x0, x1, x2, x3 := float64(c[0]), float64(c[1]), float64(c[2]), float64(c[3])
		y0, y1, y2, y3 := float64(r[0]), float64(r[1]), float64(r[2]), float64(r[3])
		e0, e1, e2, e3 := x0-y0, x1-y1, x2-y2, x3-y3
		d0 += e0 * e0
		d1 += e1 * e1
		d2 += e2 * e2
		d3 += e3 * e3
		r0 += y0 * y0
		r1 += y1 * y1
		r2 += y2 * y2
		r3 += y3 * y3
		c0 += x0 * x0
		c1 += x1 * x1
		c2 += x2 * x2
		c3 += x3 * x3
		p0 += x0 * y0
		p1 += x1 * y1
		p2 += x2 * y2
		p3 += x3 * y3
		if math.Abs(e0) > m || math.Abs(e1) > m || math.Abs(e2) > m || math.Abs(e3) > m {
			over = true // rare once the maximum has settled
			for j := range lanes {
				if ad := math.Abs(float64(c[j]) - float64(r[j])); ad > m {
					m = ad
					a.maxAt = a.n + int64(i+j)
				}
			}
		}
	}
	if over {
		a.maxAbs = m
	}
	a.diff = [lanes]float64{d0, d1, d2, d3}
	a.ref = [lanes]float64{r0, r1, r2, r3}
	a.cand = [lanes]float64{c0, c1, c2, c3}
	a.dot = [lanes]float64{p0, p1, p2, p3}
	a.n += int64(len(cand))
}

func (a *Accumulator) countNonFinite(start int64, cand, ref []float32) {
	for i, c := range cand {
		badC, badR := !finite(float64(c)), !finite(float64(ref[i]))
		if !badC && !badR {
			continue
		}
		if !a.poisoned() {
			a.firstNonFinite = start + int64(i)
		}
		if badC {
			a.candNonFinite++
		}
		if badR {
			a.refNonFin++
		}
	}
}

func total(l [lanes]float64) float64 { return (l[0] + l[1]) + (l[2] + l[3]) }
