package metric

import "math"

// ArgMax is the index of the largest logit, the lowest one on ties: the token
// that greedy decode picks. -1 for an empty row and for one that holds a NaN.
func ArgMax(row []float64) int {
	first, _ := Top2(row)
	return first
}

// Top2 are the indices of the largest and the second largest logit, the lowest
// index first on ties. second is -1 in a row of one element; both are -1 for an
// empty row and for one that holds a NaN, which has no order.
func Top2(row []float64) (first, second int) {
	first, second = -1, -1
	a, b := math.Inf(-1), math.Inf(-1)
	for i, x := range row {
		if x <= b && second >= 0 { // nearly all; a NaN isn't
			continue
		}
		switch {
		case x != x:
			return -1, -1
		case x > a || first < 0:
			second, b = first, a
			first, a = i, x
		default:
			second, b = i, x
		}
	}
	return first, second
}

// TopN are the indices of the n largest logits, largest first, the lowest index
// first on ties; all of them where the row has fewer. nil when it holds a NaN.
func TopN(row []float64, n int) []int {
	n = min(n, len(row))
	if n <= 0 {
		return nil
	}
	top := make([]int, 0, n)
	last := math.Inf(-1) // the smallest logit in the list
	for i, x := range row {
		if x <= last && len(top) == n { // nearly all; a NaN isn't
			continue
		}
		if x != x {
			return nil
		}
		if len(top) < n {
			top = append(top, i)
		}
		at := len(top) - 1
		for at > 0 && row[top[at-1]] < x {
			top[at] = top[at-1]
			at--
		}
		top[at] = i
		last = row[top[len(top)-1]]
	}
	return top
}

// Rank is the place of token id in the order of the row: 1 + the number of
// logits strictly greater, so that tied tokens share the better rank. 0, which
// is no rank, when the row holds a NaN. id lies in the row.
func Rank(row []float64, id int) int {
	pick, rank, broken := row[id], 1, false
	for _, x := range row {
		if x > pick {
			rank++
		}
		if x != x {
			broken = true
		}
	}
	if broken {
		return 0
	}
	return rank
}

// Regret is what picking a token costs against the reference's best, in nats of
// the reference's log-probability: ref[argmax] - ref[pick], for the normaliser
// cancels. 0 for the reference's own pick, never below. pick lies in the row.
// NaN when the row holds a NaN.
func Regret(ref []float64, pick int) float64 {
	x := ref[pick]
	best := ArgMax(ref)
	if best < 0 {
		return math.NaN()
	}
	if ref[best] == x {
		return 0 // also of two infinities, whose difference is NaN
	}
	return ref[best] - x
}
