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
	peakR, okR := largest(ref)
	peakC, okC := largest(cand)
	if len(ref) == 0 || !okR || !okC {
		return math.NaN()
	}
	p := make([]float64, len(ref))
	var sum float64
	shift, gap := 0.0, 0.0 // shift: cand - ref at the reference's first peak
	for i, r := range ref {
		if r == peakR {
			shift = cand[i] - r
			break
		}
	}
	for i, r := range ref {
		e := math.Exp(r - peakR)
		p[i] = e
		sum += e
		if t := math.Abs(cand[i] - r - shift); t > gap {
			gap = t
		}
	}
	for i := range p {
		p[i] /= sum
	}
	if gap <= near {
		return klNear(p, ref, cand, shift)
	}
	return klFar(p, ref, cand, peakR+math.Log(sum), peakC)
}

// near is the largest |d| for which exp(d) - 1 - d is summed as a series; above
// it, the difference has lost at most six bits.
const near = 0.25

// klNear is KL where all logits are close once the shift is removed. The two
// normalisers differ by log(sum p exp(t)) = log1p(sum p expm1(t)), which is as
// exact as t, however small.
func klNear(p, ref, cand []float64, shift float64) float64 {
	var s float64
	for i, r := range ref {
		t := cand[i] - r - shift
		s += p[i] * (t + expTail(t))
	}
	delta := math.Log1p(s)
	var kl float64
	for i, r := range ref {
		kl += p[i] * expTail(cand[i]-r-shift-delta)
	}
	return kl
}

// klFar is KL for any finite rows. Terms with a large d use q itself, which
// can't overflow as exp(d) can.
func klFar(p, ref, cand []float64, normR, peakC float64) float64 {
	q := make([]float64, len(cand))
	var sum float64
	for i, c := range cand {
		q[i] = math.Exp(c - peakC)
		sum += q[i]
	}
	normC := peakC + math.Log(sum)
	var kl float64
	for i, r := range ref {
		d := (cand[i] - normC) - (r - normR)
		if math.Abs(d) <= near {
			kl += p[i] * expTail(d)
		} else {
			kl += q[i]/sum - p[i] - p[i]*d
		}
	}
	return kl
}

// expTail is exp(x) - 1 - x, by its Taylor series to x^15 (a relative error
// below 1e-17 for |x| <= 2*near).
func expTail(x float64) float64 {
	const (
		c3, c4, c5, c6, c7, c8, c9 = 1. / 3, 1. / 4, 1. / 5, 1. / 6, 1. / 7, 1. / 8, 1. / 9
		c10, c11, c12, c13, c14    = 1. / 10, 1. / 11, 1. / 12, 1. / 13, 1. / 14
		c15                        = 1. / 15
	)
	t := 1 + x*c15
	t = 1 + x*c14*t
	t = 1 + x*c13*t
	t = 1 + x*c12*t
	t = 1 + x*c11*t
	t = 1 + x*c10*t
	t = 1 + x*c9*t
	t = 1 + x*c8*t
	t = 1 + x*c7*t
	t = 1 + x*c6*t
	t = 1 + x*c5*t
	t = 1 + x*c4*t
	t = 1 + x*c3*t
	return x * x / 2 * t
}
