package metric

import "math"

const signBit = 1 << 31

// sumLeaf sums a run of at most pairwiseBlock pairs.
func sumLeaf(cand, ref []float32, s *pairSums) {
	ref = ref[:len(cand)]
	whole := len(cand) &^ 7
	if whole > 0 {
		sumLanes(cand[:whole], ref[:whole], s)
	}
	for i := whole; i < len(cand); i++ {
		s.addOne(cand[i], ref[i])
	}
}

// addOne adds a pair. Products are converted so that no compiler fuses them with
// the addition, which would give other bits.
func (s *pairSums) addOne(c, r float32) {
	d := r - c
	c64, r64, d64 := float64(c), float64(r), float64(d)
	bd, bc, br := math.Float32bits(d)&^signBit, math.Float32bits(c)&^signBit, math.Float32bits(r)&^signBit
	s.absDiff += math.Float32frombits(bd)
	s.sqDiff += float32(d * d)
	s.absRef += math.Float32frombits(br)
	s.absCand += math.Float32frombits(bc)
	s.sqDiff64 += float64(d64 * d64)
	s.sqRef64 += float64(r64 * r64)
	s.sqCand64 += float64(c64 * c64)
	s.dot += float64(c64 * r64)
	s.maxDiff = max(s.maxDiff, bd)
	s.maxIn = max(s.maxIn, bc, br)
}

// sumLanesGeneric sums a multiple of 8 pairs in 8 lanes, with what the machine
// code of any CPU can do. One quantity at a time, so that its lanes stay in
// registers.
func sumLanesGeneric(cand, ref []float32, s *pairSums) {
	var diff [pairwiseBlock]float32
	d := diff[:len(cand)]
	var maxDiff, maxIn uint32
	for i, c := range cand {
		x := ref[i] - c
		d[i] = x
		maxDiff = max(maxDiff, math.Float32bits(x)&^signBit)
		maxIn = max(maxIn, math.Float32bits(c)&^signBit, math.Float32bits(ref[i])&^signBit)
	}
	s.maxDiff, s.maxIn = maxDiff, maxIn
	s.absDiff, s.absRef, s.absCand = sumAbs8(d), sumAbs8(ref), sumAbs8(cand)
	s.sqDiff = sumSq8(d)
	s.sqDiff64, s.sqRef64 = sumSq8x64(d), sumSq8x64(ref)
	s.sqCand64, s.dot = dot4x64(cand, cand), dot4x64(cand, ref)
}

func abs32(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ signBit) }

func sumAbs8(v []float32) float32 {
	var r0, r1, r2, r3, r4, r5, r6, r7 float32
	for ; len(v) >= 8; v = v[8:] {
		r0 += abs32(v[0])
		r1 += abs32(v[1])
		r2 += abs32(v[2])
		r3 += abs32(v[3])
		r4 += abs32(v[4])
		r5 += abs32(v[5])
		r6 += abs32(v[6])
		r7 += abs32(v[7])
	}
	return ((r0 + r1) + (r2 + r3)) + ((r4 + r5) + (r6 + r7))
}

func sumSq8(v []float32) float32 {
	var r0, r1, r2, r3, r4, r5, r6, r7 float32
	for ; len(v) >= 8; v = v[8:] {
		r0 += float32(v[0] * v[0])
		r1 += float32(v[1] * v[1])
		r2 += float32(v[2] * v[2])
		r3 += float32(v[3] * v[3])
		r4 += float32(v[4] * v[4])
		r5 += float32(v[5] * v[5])
		r6 += float32(v[6] * v[6])
		r7 += float32(v[7] * v[7])
	}
	return ((r0 + r1) + (r2 + r3)) + ((r4 + r5) + (r6 + r7))
}

func sumSq8x64(v []float32) float64 {
	sq := func(x float32) float64 { return float64(float64(x) * float64(x)) }
	var r0, r1, r2, r3, r4, r5, r6, r7 float64
	for ; len(v) >= 8; v = v[8:] {
		r0 += sq(v[0])
		r1 += sq(v[1])
		r2 += sq(v[2])
		r3 += sq(v[3])
		r4 += sq(v[4])
		r5 += sq(v[5])
		r6 += sq(v[6])
		r7 += sq(v[7])
	}
	return ((r0 + r1) + (r2 + r3)) + ((r4 + r5) + (r6 + r7))
}

// dot4x64 has four lanes: numpy computes nothing of the kind, so no order is
// given.
func dot4x64(a, b []float32) float64 {
	mul := func(x, y float32) float64 { return float64(float64(x) * float64(y)) }
	var r0, r1, r2, r3 float64
	b = b[:len(a)]
	for ; len(a) >= 4; a, b = a[4:], b[4:] {
		r0 += mul(a[0], b[0])
		r1 += mul(a[1], b[1])
		r2 += mul(a[2], b[2])
		r3 += mul(a[3], b[3])
	}
	return (r0 + r1) + (r2 + r3)
}
