package metric

import "math"

// TensorDiff compares two equally long float32 tensors in one pass and constant
// memory, in the order in which numpy adds: means in float32, nRMSE in float64,
// each by pairwise summation, so that the figures agree with a numpy script's to
// the last digit, whatever the chunks. [Accumulator] is for figures that nobody
// else computed. It isn't safe for concurrent use.
//
// numpy's pairwise sum (loops_utils.h.src, pairwise_sum): a run of more than 128
// elements is cut at half its length, rounded down to a multiple of 8; a shorter
// one is summed in 8 interleaved lanes that are added as a tree, and what is left
// of a multiple of 8 is added one by one. The cuts depend on the whole length, so
// that is told first.
type TensorDiff struct {
	n, done int64
	stack   [64]pairFrame // every level at least halves what is left
	depth   int
	leaf    int // pairs in the leaf being filled
	held    int // of them in carry
	carry   [2][pairwiseBlock]float32
	root    pairSums
	stats   TensorStats
	maxBits uint32
}

// pairwiseBlock is numpy's PW_BLOCKSIZE.
const pairwiseBlock = 128

// pairSums are the sums over a run of pairs. The order of the fields is known to
// the assembly.
type pairSums struct {
	absDiff, sqDiff, absRef, absCand float32
	sqDiff64, sqRef64, sqCand64, dot float64
	// The largest bits of |cand-ref|, and of |cand| and |ref|: as unsigned
	// integers they order like the values, infinities and then NaN above all.
	maxDiff, maxIn uint32
}

func (a *pairSums) add(b *pairSums) {
	a.absDiff += b.absDiff
	a.sqDiff += b.sqDiff
	a.absRef += b.absRef
	a.absCand += b.absCand
	a.sqDiff64 += b.sqDiff64
	a.sqRef64 += b.sqRef64
	a.sqCand64 += b.sqCand64
	a.dot += b.dot
}

// pairFrame is a cut whose left half is summed (right is 0 then) or being summed.
type pairFrame struct {
	right int64
	left  pairSums
}

// infBits are the bits of float32's infinity; NaNs have larger ones.
const infBits = 0x7f800000

// CompareTensors compares two tensors in memory. It panics with a [*LengthError]
// when the lengths differ.
func CompareTensors(cand, ref []float32) TensorStats {
	mustMatch("CompareTensors", len(cand), len(ref))
	var d TensorDiff
	d.Reset(int64(len(ref)))
	d.Add(cand, ref)
	return d.Stats()
}

// CompareHeads compares two tensors head by head: both are [heads, width],
// row-major. It panics with a [*LengthError] when the lengths differ, or don't
// divide by heads.
func CompareHeads(cand, ref []float32, heads int) []TensorStats {
	mustMatch("CompareHeads", len(cand), len(ref))
	if heads <= 0 || len(ref)%heads != 0 {
		panic(&LengthError{Func: "CompareHeads: heads in a row", Cand: heads, Ref: len(ref)})
	}
	width := len(ref) / heads
	out := make([]TensorStats, heads)
	for h := range out {
		out[h] = CompareTensors(cand[h*width:(h+1)*width], ref[h*width:(h+1)*width])
	}
	return out
}

// Reset begins a comparison of n pairs; n must not be negative.
func (d *TensorDiff) Reset(n int64) {
	d.n, d.done, d.depth, d.held, d.maxBits = n, 0, 0, 0, 0
	d.root = pairSums{}
	d.stats = TensorStats{N: n, MaxAt: -1, FirstNonFinite: -1}
	d.descend(n)
}

// Add feeds the next chunk of both tensors. It panics with a [*LengthError] when
// the chunks differ in length or go beyond what Reset announced.
func (d *TensorDiff) Add(cand, ref []float32) {
	mustMatch("TensorDiff.Add", len(cand), len(ref))
	if left := d.n - d.done; int64(len(cand)) > left {
		panic(&LengthError{Func: "TensorDiff.Add, against what is left", Cand: len(cand), Ref: int(left)})
	}
	for len(cand) > 0 {
		k := min(len(cand), d.leaf-d.held)
		if d.held == 0 && k == d.leaf {
			d.finishLeaf(cand[:k], ref[:k])
		} else { // a chunk ends inside a leaf
			copy(d.carry[0][d.held:], cand[:k])
			copy(d.carry[1][d.held:], ref[:k])
			if d.held += k; d.held == d.leaf {
				d.held = 0
				d.finishLeaf(d.carry[0][:d.leaf], d.carry[1][:d.leaf])
			}
		}
		cand, ref = cand[k:], ref[k:]
	}
}

// descend cuts a run of n pairs down to its first leaf.
func (d *TensorDiff) descend(n int64) {
	for n > pairwiseBlock {
		left := n / 2
		left -= left % 8
		d.stack[d.depth].right = n - left
		d.depth++
		n = left
	}
	d.leaf = int(n)
}

// finishLeaf sums a leaf and everything that it completes.
func (d *TensorDiff) finishLeaf(cand, ref []float32) {
	var s pairSums
	sumLeaf(cand, ref, &s)
	if s.maxIn >= infBits {
		d.countNonFinite(cand, ref)
	}
	if s.maxDiff > d.maxBits || d.done == 0 {
		d.maxBits = s.maxDiff
		d.locate(cand, ref)
	}
	d.done += int64(len(cand))
	for d.depth > 0 {
		top := &d.stack[d.depth-1]
		if top.right > 0 {
			top.left = s
			n := top.right
			top.right = 0
			d.descend(n)
			return
		}
		top.left.add(&s)
		s = top.left
		d.depth--
	}
	d.root = s
	d.leaf = 0
}

// locate finds the first pair of the leaf that reaches its maximum.
func (d *TensorDiff) locate(cand, ref []float32) {
	for i, c := range cand {
		if math.Float32bits(ref[i]-c)&^signBit == d.maxBits {
			d.stats.MaxAt = d.done + int64(i)
			return
		}
	}
}

func (d *TensorDiff) countNonFinite(cand, ref []float32) {
	for i, c := range cand {
		bc, br := math.Float32bits(c)&^signBit, math.Float32bits(ref[i])&^signBit
		if bc < infBits && br < infBits {
			continue
		}
		if d.stats.FirstNonFinite < 0 {
			d.stats.FirstNonFinite = d.done + int64(i)
		}
		count := func(bits uint32, nan, inf *int64) {
			switch {
			case bits > infBits:
				*nan++
			case bits == infBits:
				*inf++
			}
		}
		count(bc, &d.stats.CandNaN, &d.stats.CandInf)
		count(br, &d.stats.RefNaN, &d.stats.RefInf)
	}
}

// Stats returns the figures. It panics with a [*LengthError] before all pairs
// that Reset announced were added.
func (d *TensorDiff) Stats() TensorStats {
	if d.done != d.n {
		panic(&LengthError{Func: "TensorDiff.Stats, before the end", Cand: int(d.done), Ref: int(d.n)})
	}
	s := d.stats
	if d.n == 0 {
		nan := math.NaN()
		s.MaxAbs, s.MeanAbs, s.MSE, s.RefMeanAbs, s.CandMeanAbs = nan, nan, nan, nan, nan
		return s
	}
	// numpy divides a float32 sum by an integer in float64, and rounds.
	mean := func(sum float32) float64 { return float64(float32(float64(sum) / float64(d.n))) }
	s.MeanAbs, s.MSE = mean(d.root.absDiff), mean(d.root.sqDiff)
	s.RefMeanAbs, s.CandMeanAbs = mean(d.root.absRef), mean(d.root.absCand)
	s.SumSqDiff, s.SumSqRef, s.SumSqCand, s.Dot = d.root.sqDiff64, d.root.sqRef64, d.root.sqCand64, d.root.dot
	s.MaxAbs = float64(math.Float32frombits(d.maxBits))
	if d.maxBits > infBits {
		s.MaxAbs = math.NaN()
	}
	return s
}
