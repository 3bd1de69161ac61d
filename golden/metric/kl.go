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
	p, ok := distributionOf(ref)
	if !ok {
		return math.NaN()
	}
	defer p.release()
	return p.kl(cand, 1)
}

// KLAtScales is [KL] of cand divided by each of the scales, at less than the cost
// of as many calls: for logits whose unit isn't known. NaN for a scale that isn't
// positive.
func KLAtScales(ref, cand []float64, scales ...float64) []float64 {
	mustMatch("KLAtScales", len(cand), len(ref))
	out := make([]float64, len(scales))
	p, ok := distributionOf(ref)
	if ok {
		defer p.release()
	}
	for i, s := range scales {
		out[i] = math.NaN()
		if ok && s > 0 {
			out[i] = p.kl(cand, 1/s)
		}
	}
	return out
}

// distribution is the softmax of a row of logits.
type distribution struct {
	logits, e []float64 // e is exp(logits - peak): p without its normaliser
	peak, sum float64
	at        int // the first index of the peak
	scratch   *[]float64
}

// distributionOf returns false for a row that has none. The caller releases it.
func distributionOf(logits []float64) (d distribution, ok bool) {
	d.logits = logits
	if d.peak, ok = largest(logits); !ok || len(logits) == 0 {
		return d, false
	}
	for logits[d.at] != d.peak {
		d.at++
	}
	d.scratch = borrowRow(len(logits))
	d.e = *d.scratch
	d.sum = exps(d.e, logits, 1, d.peak)
	return d, true
}

func (d *distribution) release() { giveRow(d.scratch) }

// kl is the divergence from the softmax of cand times unit.
func (d *distribution) kl(cand []float64, unit float64) float64 {
	peak, ok := largest(cand)
	peak *= unit
	if !ok || !finite(peak) {
		return math.NaN()
	}
	shift := cand[d.at]*unit - d.peak
	for i, r := range d.logits {
		if math.Abs(cand[i]*unit-r-shift) > near {
			return d.klFar(cand, unit, shift, peak)
		}
	}
	return d.klNear(cand, unit, shift)
}

// near is the largest |d| for which exp(d) - 1 - d is summed as a series; above
// it, the difference has lost at most nine bits.
const near = 1. / 16

// large is a KL in which the rounding of terms with a small d, about 1e-16 in
// all, doesn't show: 1e-12 of it.
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
		p := d.e[i] * perE
		kl += f[i]*perF - p - p*(cand[i]*unit-r-shift-delta)
	}
	if kl > large {
		return kl
	}
	kl = 0
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
