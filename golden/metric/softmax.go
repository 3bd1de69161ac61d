package metric

import "math"

// LogSoftmax is log(exp(x_i) / sum_j exp(x_j)) of a row of logits, in nats:
// log-probabilities, at most 0. It is x_i - m - log(sum_j exp(x_j - m)) with m
// the largest logit, which neither overflows nor loses the largest term (P.
// Blanchard, D. J. Higham and N. J. Higham, "Accurately computing the
// log-sum-exp and softmax functions", IMA J. Numer. Anal. 41, 2021).
//
// The result has the length of row and the memory of dst where dst has room for
// it; dst may be row itself. A row that holds a NaN or an infinity gives all NaN.
func LogSoftmax(dst, row []float64) []float64 {
	if cap(dst) < len(row) {
		dst = make([]float64, len(row))
	}
	dst = dst[:len(row)]
	peak, finite := largest(row)
	if !finite {
		for i := range dst {
			dst[i] = math.NaN()
		}
		return dst
	}
	var sum float64 // not by exps: dst may be row
	for _, x := range row {
		sum += math.Exp(x - peak)
	}
	log := math.Log(sum)
	for i, x := range row {
		// Two steps: peak + log would round away what tells tiny differences.
		dst[i] = x - peak - log
	}
	return dst
}

// largest is the largest value of a row and whether all of it is finite. The
// value means nothing when it isn't, and is -Inf for an empty row.
func largest(row []float64) (peak float64, ok bool) {
	peak = math.Inf(-1)
	for _, x := range row {
		if !finite(x) {
			return peak, false
		}
		if x > peak {
			peak = x
		}
	}
	return peak, true
}
