package metric

import "math"

// KL is the Kullback-Leibler divergence KL(P || Q) = sum_i p_i log(p_i / q_i) in
// nats, of P = softmax(ref) from Q = softmax(cand), both given as logits (S.
// Kullback and R. A. Leibler, "On Information and Sufficiency", Ann. Math. Stat.
// 22, 1951). The reference comes first here, as it stands in KL(P || Q): it is
// the distribution that the mean is taken over.
//
// It is summed as sum_i p_i (exp(d_i) - 1 - d_i), d = log q - log p, which is
// the same number because both distributions sum to 1, and has no term below
// zero. The plain sum has terms of either sign that all but cancel: between a
// float32 and a float64 run (KL 1e-13) it returns its rounding error. For the
// same reason d comes from the differences of the logits, not from two
// log-softmaxes. A shift of all logits of one side changes nothing.
//
// A token whose probability underflows on either side still counts with its
// log-probability, so two finite rows have a finite KL. NaN when a row holds a
// NaN or an infinity, or is empty.
func KL(ref, cand []float64) float64 {
	mustMatch("KL", len(cand), len(ref))
	return klAtUnits(ref, cand, []float64{1})[0]
}

// KLAtScales is [KL] of cand divided by each of the scales, at less than the cost
// of as many calls: for logits whose unit isn't known. NaN for a scale that isn't
// positive.
func KLAtScales(ref, cand []float64, scales ...float64) []float64 {
	mustMatch("KLAtScales", len(cand), len(ref))
	units := make([]float64, len(scales))
	for i, s := range scales {
		units[i] = math.NaN()
		if s > 0 {
			units[i] = 1 / s
		}
	}
	return klAtUnits(ref, cand, units)
}

// klAtUnits is KL of cand times each unit.
func klAtUnits(ref, cand, units []float64) []float64 {
	out := make([]float64, len(units))
	peak, okR := largest(ref)
	peakC, okC := largest(cand)
	if len(ref) == 0 || !okR || !okC {
		for i := range out {
			out[i] = math.NaN()
		}
		return out
	}
	at := 0 // the first peak of the reference
	for ref[at] != peak {
		at++
	}
	qs := make([]candidate, len(units))
	for i, u := range units {
		qs[i] = candidate{unit: u, peak: peakC * u, shift: cand[at]*u - peak}
	}
	quick := false
	for i := range qs {
		q := &qs[i]
		q.valid = finite(q.peak) // nor is it with a unit that isn't
		q.far = q.valid && q.isFar(ref, cand)
		quick = quick || q.far
	}
	if quick {
		klQuick(ref, cand, peak, qs)
	}
	var p *distribution
	for i := range qs {
		q := &qs[i]
		switch {
		case !q.valid:
			out[i] = math.NaN()
			continue
		case q.far && q.kl > large*max(1, math.Abs(q.delta)):
			out[i] = q.kl
			continue
		case p == nil:
			p = distributionOf(ref, peak)
			defer p.release()
		}
		if q.far {
			out[i] = p.klFar(cand, q.unit, q.shift, q.peak)
		} else {
			out[i] = p.klNear(cand, q.unit, q.shift)
		}
	}
	return out
}

// candidate is the candidate's row at one unit.
type candidate struct {
	unit, peak  float64 // peak is the largest logit, in the reference's unit
	shift       float64 // the row's distance from the reference at the reference's peak
	valid, far  bool    // far: a logit is further than near from the reference's
	sum, moment float64 // of exp(cand - peak), and of exp(ref - peak) times the distance
	delta, kl   float64 // the normalisers' distance less the shift, and klQuick's result
}

func (q *candidate) isFar(ref, cand []float64) bool {
	for i, r := range ref {
		if math.Abs(cand[i]*q.unit-r-q.shift) > near {
			return true
		}
	}
	return false
}

// klQuick sums sum p log(p/q) as it stands, for all candidates in one pass over
// the rows and without scratch. Its rounding error is about 1e-16 of 1 or of
// delta, which only shows in a small KL. The sums go by blocks, so that they
// don't gather a vocabulary's rounding.
func klQuick(ref, cand []float64, peak float64, qs []candidate) {
	const block = 512
	var e, f [block]float64
	var sum float64
	for from := 0; from < len(ref); from += block {
		to := min(from+block, len(ref))
		r, c := ref[from:to], cand[from:to]
		sum += exps(e[:], r, 1, peak)
		for i := range qs {
			q := &qs[i]
			if !q.far {
				continue
			}
			q.sum += exps(f[:], c, q.unit, q.peak)
			var m float64
			for k, x := range r {
				m += e[k] * (c[k]*q.unit - x - q.shift)
			}
			q.moment += m
		}
	}
	for i := range qs {
		q := &qs[i]
		q.delta = q.peak - peak - q.shift + math.Log(q.sum/sum)
		q.kl = q.delta - q.moment/sum
	}
}

// distribution is the softmax of a row of logits.
type distribution struct {
	logits, e []float64 // e is exp(logits - peak): p without its normaliser
	peak, sum float64
	scratch   *[]float64
}

// distributionOf wants a finite row and its largest value. The caller releases
// the result.
func distributionOf(logits []float64, peak float64) *distribution {
	d := &distribution{logits: logits, peak: peak, scratch: borrowRow(len(logits))}
	d.e = *d.scratch
	d.sum = exps(d.e, logits, 1, peak)
	return d
}

func (d *distribution) release() { giveRow(d.scratch) }

// near is the largest |d| for which exp(d) - 1 - d is summed as a series; above
// it, the difference has lost at most nine bits.
const near = 1. / 16

// large is a KL in which klQuick's rounding doesn't show: some 1e-13 of it.
const large = 1e-3

// klNear is KL where all logits are close once the shift is removed. The two
// normalisers differ by log(sum p exp(t)) = log1p(sum p expm1(t)), which is as
// exact as t, however small.
func (d *distribution) klNear(cand []float64, unit, shift float64) float64 {
	var s float64
	for i, r := range d.logits {
		t := cand[i]*unit - r - shift
		s += d.e[i] * (t + expTail(t))
	}
	shift += math.Log1p(s / d.sum)
	var kl float64
	for i, r := range d.logits {
		kl += d.e[i] * expTail(cand[i]*unit-r-shift)
	}
	return kl / d.sum
}

// klFar is KL for any finite rows. Terms with a large d use q itself, which
// can't overflow as exp(d) can. peak is the largest of cand times unit.
func (d *distribution) klFar(cand []float64, unit, shift, peak float64) float64 {
	scratch := borrowRow(len(cand))
	defer giveRow(scratch)
	f := *scratch // q without its normaliser
	sum := exps(f, cand, unit, peak)
	delta := peak - d.peak - shift + math.Log(sum/d.sum)
	perE, perF := 1/d.sum, 1/sum
	var kl float64
	for i, r := range d.logits {
		diff := cand[i]*unit - r - shift - delta
		p := d.e[i] * perE
		if math.Abs(diff) <= near {
			kl += p * expTail(diff)
		} else {
			kl += f[i]*perF - p - p*diff
		}
	}
	return kl
}

// expTail is exp(x) - 1 - x by its Taylor series to x^11: a relative error below
// 1e-17 for |x| <= 2*near. The terms are paired, so that they needn't wait for
// each other.
func expTail(x float64) float64 {
	const (
		c3  = 2. / 6
		c4  = c3 / 4
		c5  = c4 / 5
		c6  = c5 / 6
		c7  = c6 / 7
		c8  = c7 / 8
		c9  = c8 / 9
		c10 = c9 / 10
		c11 = c10 / 11
	)
	x2 := x * x
	x4 := x2 * x2
	return x2 / 2 * ((1 + c3*x) + (c4+c5*x)*x2 + ((c6+c7*x)+(c8+c9*x)*x2)*x4 + (c10+c11*x)*(x4*x4))
}
