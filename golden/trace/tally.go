package trace

import (
	"math"
)

// RouteTally counts verdicts. The zero value is ready.
type RouteTally struct {
	Match, Tie, Flip, Unjudged int
	// NearTies are the judged rows whose margin lies within the band, NearMismatches
	// those of them with another set.
	NearTies, NearMismatches int
	// Margins counts judged rows by margin.
	Margins MarginHistogram
}

// MarginHistogram counts margins by power of two: bin i has those in
// [2^(i-63), 2^(i-62)), the first one what lies below as well, the last what lies
// above. Zero are exact ties, Without the rows that had no other expert to choose.
type MarginHistogram struct {
	Zero, Without int
	Bins          [64]int
}

// Bounds are the ends of a bin.
func (h *MarginHistogram) Bounds(bin int) (from, to float64) {
	return math.Ldexp(1, bin-63), math.Ldexp(1, bin-62)
}

func (h *MarginHistogram) add(margin float64) {
	switch {
	case margin == 0:
		h.Zero++
	case math.IsInf(margin, 1):
		h.Without++
	default:
		_, exp := math.Frexp(margin) // margin = f * 2^exp, f in [0.5, 1)
		h.Bins[min(max(exp-1+63, 0), len(h.Bins)-1)]++
	}
}

// Add counts a verdict.
func (t *RouteTally) Add(v RouteVerdict) {
	switch v.Class {
	case RouteMatch:
		t.Match++
	case RouteTie:
		t.Tie++
	case RouteFlip:
		t.Flip++
	default:
		t.Unjudged++
		return
	}
	t.Margins.add(v.Margin)
	if v.NearTie() {
		t.NearTies++
		if v.Class != RouteMatch {
			t.NearMismatches++
		}
	}
}

// Merge adds what another tally counted.
func (t *RouteTally) Merge(o RouteTally) {
	t.Match += o.Match
	t.Tie += o.Tie
	t.Flip += o.Flip
	t.Unjudged += o.Unjudged
	t.NearTies += o.NearTies
	t.NearMismatches += o.NearMismatches
	t.Margins.Zero += o.Margins.Zero
	t.Margins.Without += o.Margins.Without
	for i, n := range o.Margins.Bins {
		t.Margins.Bins[i] += n
	}
}

// Judged is how many rows were judged.
func (t *RouteTally) Judged() int { return t.Match + t.Tie + t.Flip }

// NearTieRate is the rate of mismatches among near ties; NaN without any.
func (t *RouteTally) NearTieRate() float64 {
	return float64(t.NearMismatches) / float64(t.NearTies)
}

// Excess is the probability, in a calibration whose near ties mismatch at the same
// rate, of as many mismatches or more among this tally's near ties: Fisher's exact
// test, one-sided. A router that breaks ties in another way, last instead of first,
// mismatches at about one half of exact ties and has an excess near 0, though each
// of its rows alone is a tie. NaN where either side has no near tie: nothing to
// compare. Rows of one prompt aren't independent, so the bound on it is the caller's
// to measure.
func (t *RouteTally) Excess(calibration RouteTally) float64 {
	n, all := t.NearTies, t.NearTies+calibration.NearTies
	if n == 0 || calibration.NearTies == 0 {
		return math.NaN()
	}
	bad := t.NearMismatches + calibration.NearMismatches
	var p float64
	for x := t.NearMismatches; x <= min(n, bad); x++ {
		if all-bad < n-x {
			continue
		}
		p += math.Exp(logChoose(bad, x) + logChoose(all-bad, n-x) - logChoose(all, n))
	}
	return math.Min(p, 1)
}

func logChoose(n, k int) float64 {
	lg := func(x int) float64 { l, _ := math.Lgamma(float64(x + 1)); return l }
	return lg(n) - lg(k) - lg(n-k)
}

// Front is how far into one sequence values can be judged. A token with another set
// of experts has another output from that layer on, and so have, one layer later, the
// tokens behind it, which attend to it. Rows beyond the front have other inputs: a
// difference there says nothing of the layer. With forced routes there is no front.
type Front struct {
	rows, gates []int // per token the first layer whose output, or route, isn't judged
}

// NewFront is that of a sequence of so many tokens without a mismatch.
func NewFront(tokens int) *Front {
	f := &Front{make([]int, tokens), make([]int, tokens)}
	for t := range tokens {
		f.rows[t], f.gates[t] = math.MaxInt, math.MaxInt
	}
	return f
}

// Mismatch takes note of another set of experts, a tie or a flip, at a layer and a
// token.
func (f *Front) Mismatch(layer, token int) {
	f.rows[token] = min(f.rows[token], layer)
	for t := token; t < len(f.rows); t++ {
		f.rows[t] = min(f.rows[t], layer+1)
		f.gates[t] = min(f.gates[t], layer+1)
	}
}

// JudgesRow reports whether the output of a layer is judged at a token.
func (f *Front) JudgesRow(layer, token int) bool { return layer < f.rows[token] }

// JudgesRoute reports whether the route of a layer is judged at a token.
func (f *Front) JudgesRoute(layer, token int) bool { return layer < f.gates[token] }

// FlipMap has a tally for each gate and condition.
type FlipMap struct {
	Gates      []int
	Conditions []string
	// Cells is by gate, then condition.
	Cells [][]RouteTally
}

// NewFlipMap returns an empty one for a plan on a shape.
func NewFlipMap(p Plan, s Shape) *FlipMap {
	return &FlipMap{s.Gates, p.Names(), table[RouteTally](len(s.Gates), len(p.Conditions))}
}

// Total is the tally of all cells.
func (m *FlipMap) Total() RouteTally {
	var t RouteTally
	for _, row := range m.Cells {
		for _, c := range row {
			t.Merge(c)
		}
	}
	return t
}
