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
	shift := 0.0 // cand - ref at the reference's first peak
	for i, r := range ref {
		if r == peakR {
			shift = cand[i] - r
			break
		}
	}
	e := make([]float64, len(ref)) // exp(ref - peak): p without its normaliser
	var sum, gap float64
	for i, r := range ref {
		x := math.Exp(r - peakR)
		e[i] = x
		sum += x
		if t := math.Abs(cand[i] - r - shift); t > gap {
			gap = t
		}
	}
	if gap <= near {
		return klNear(e, sum, ref, cand, shift)
	}
	return klFar(e, sum, ref, cand, shift, peakC, peakC-peakR-shift)
}

// near is the largest |d| for which exp(d) - 1 - d is summed as a series; above
// it, the difference has lost at most nine bits.
const near = 1. / 16

// klNear is KL where all logits are close once the shift is removed. The two
// normalisers differ by log(sum p exp(t)) = log1p(sum p expm1(t)), which is as
// exact as t, however small.
func klNear(e []float64, sum float64, ref, cand []float64, shift float64) float64 {
	var s float64
	for i, r := range ref {
		t := cand[i] - r - shift
		s += e[i] * (t + expTail(t))
	}
	shift += math.Log1p(s / sum)
	var kl float64
	for i, r := range ref {
		kl += e[i] * expTail(cand[i]-r-shift)
	}
	return kl / sum
}

// klFar is KL for any finite rows. peaks is the difference of the two largest
// logits, less the shift. Terms with a large d use q itself, which can't
// overflow as exp(d) can.
func klFar(e []float64, sumE float64, ref, cand []float64, shift, peakC, peaks float64) float64 {
	f := make([]float64, len(cand)) // exp(cand - peak): q without its normaliser
	var sumF float64
	for i, c := range cand {
		x := math.Exp(c - peakC)
		f[i] = x
		sumF += x
	}
	delta := peaks + math.Log(sumF/sumE)
	perE, perF := 1/sumE, 1/sumF
	var kl float64
	for i, r := range ref {
		d := cand[i] - r - shift - delta
		p := e[i] * perE
		if math.Abs(d) <= near {
			kl += p * expTail(d)
		} else {
			kl += f[i]*perF - p - p*d
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
