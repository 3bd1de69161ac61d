package metric

import "math"

// Routes: what a mixture-of-experts layer chose. A token's route is the ids of its
// top-k experts with a weight each; ids lie in [0, experts), each once. Sums run in
// float64. Source of the formulas: v2_lite_trace.py.

// Loads is how many (token, slot) decisions went to each expert.
func Loads(ids [][]int, experts int) []int64 {
	loads := make([]int64, experts)
	for _, token := range ids {
		for _, id := range token {
			loads[id]++
		}
	}
	return loads
}

// WeightedLoads is the sum of the weights that each expert got, token by token.
func WeightedLoads(ids [][]int, weights [][]float32, experts int) []float64 {
	mustMatch("WeightedLoads", len(ids), len(weights))
	loads := make([]float64, experts)
	for t, token := range ids {
		mustMatch("WeightedLoads", len(token), len(weights[t]))
		for s, id := range token {
			loads[id] += float64(weights[t][s])
		}
	}
	return loads
}

// Decisions is the sum of the loads.
func Decisions(loads []int64) int64 {
	var total int64
	for _, n := range loads {
		total += n
	}
	return total
}

// UsedExperts is how many experts got any decision.
func UsedExperts(loads []int64) int {
	used := 0
	for _, n := range loads {
		if n > 0 {
			used++
		}
	}
	return used
}

// LoadCV is the coefficient of variation of the loads: their population standard
// deviation over their mean, 0 for no decision.
func LoadCV(loads []int64) float64 {
	total := Decisions(loads)
	if total <= 0 {
		return 0
	}
	mean := float64(total) / float64(len(loads))
	var sq float64
	for _, n := range loads {
		d := float64(n) - mean
		sq += d * d
	}
	return math.Sqrt(sq/float64(len(loads))) / mean
}

// LoadEntropy is the entropy of the shares of the loads over that of equal shares,
// ln(experts): 1 for an even spread, 0 for one expert that has all, and for no
// decision. NaN for a single expert, which has no choice.
func LoadEntropy(loads []int64) float64 {
	total := Decisions(loads)
	if total <= 0 {
		return 0
	}
	var h float64
	for _, n := range loads {
		if n > 0 {
			p := float64(n) / float64(total)
			h -= p * math.Log(p)
		}
	}
	return h / math.Log(float64(len(loads)))
}

// MaxLoadShare is the largest share of the decisions that an expert has, 0 for no
// decision.
func MaxLoadShare(loads []int64) float64 {
	var most int64
	for _, n := range loads {
		most = max(most, n)
	}
	return float64(most) / float64(max(Decisions(loads), 1))
}

// LoadTV is the total variation distance between two loads as shares,
// sum |a_i/A - b_i/B| / 2, from 0 to 1.
func LoadTV(a, b []int64) float64 {
	mustMatch("LoadTV", len(a), len(b))
	share := func(n, total int64) float64 { return float64(n) / math.Max(float64(total), 1e-12) }
	ta, tb := Decisions(a), Decisions(b)
	var sum float64
	for i := range a {
		sum += math.Abs(share(a[i], ta) - share(b[i], tb))
	}
	return sum / 2
}

// SetJaccard is |a ∩ b| / |a ∪ b| of one token's experts, whatever their order; 0
// for two empty sets.
func SetJaccard(a, b []int) float64 {
	both := 0
	for _, id := range a {
		if contains(b, id) {
			both++
		}
	}
	return float64(both) / float64(max(len(a)+len(b)-both, 1))
}

// RouteTV is half the sum over experts of |weight in a - weight in b| for one
// token, an expert that wasn't chosen having weight 0. With weights that sum to 1 it
// is the total variation distance; weights that don't aren't normalised.
func RouteTV(idsA []int, weightsA []float32, idsB []int, weightsB []float32) float64 {
	mustMatch("RouteTV", len(idsA), len(weightsA))
	mustMatch("RouteTV", len(idsB), len(weightsB))
	var sum float64
	for i, id := range idsA {
		sum += math.Abs(float64(weightsA[i]) - weightOf(id, idsB, weightsB))
	}
	for i, id := range idsB {
		if !contains(idsA, id) {
			sum += math.Abs(float64(weightsB[i]))
		}
	}
	return sum / 2
}

// SameRoute reports whether the two routes are the same set of experts.
func SameRoute(a, b []int) bool {
	return len(a) == len(b) && within(a, b) && within(b, a)
}

// Lacking are the experts of a that b doesn't have, in a's order; nil for none.
func Lacking(a, b []int) []int {
	var out []int
	for _, id := range a {
		if !contains(b, id) {
			out = append(out, id)
		}
	}
	return out
}

// within reports whether all of a is in b.
func within(a, b []int) bool {
	for _, id := range a {
		if !contains(b, id) {
			return false
		}
	}
	return true
}

// weightOf is an expert's weight in a route, 0 where it wasn't chosen.
func weightOf(id int, ids []int, weights []float32) float64 {
	for i, x := range ids {
		if x == id {
			return float64(weights[i])
		}
	}
	return 0
}

// RouteMargin is the k-th largest selection score minus the next one: how far a
// score may move before the set of experts changes. Masked experts have score -Inf;
// +Inf where there is no other expert to choose, NaN where a score is.
func RouteMargin(scores []float64, k int) float64 {
	if k >= len(scores) {
		for _, s := range scores {
			if s != s {
				return math.NaN()
			}
		}
		return math.Inf(1)
	}
	top := TopN(scores, k+1)
	if top == nil || k < 1 {
		return math.NaN()
	}
	last, next := scores[top[k-1]], scores[top[k]]
	if last == next {
		return 0 // also of two masked ones, whose difference is NaN
	}
	return last - next
}

// RouteGap is what the scores would have to be off by, together, for got to be
// chosen in place of want: the best score that got leaves out minus the worst that
// it has instead. 0 for the same set, and +Inf where one of them only lacks experts,
// which no score explains. It is never below the margin when want is the top-k. NaN
// where a score is.
func RouteGap(scores []float64, want, got []int) float64 {
	for _, s := range scores {
		if s != s {
			return math.NaN()
		}
	}
	best, worst := math.Inf(-1), math.Inf(1)
	missing, extra := false, false
	for _, id := range want {
		if !contains(got, id) {
			best, missing = math.Max(best, scores[id]), true
		}
	}
	for _, id := range got {
		if !contains(want, id) {
			worst, extra = math.Min(worst, scores[id]), true
		}
	}
	switch {
	case missing != extra:
		return math.Inf(1)
	case !missing || best == worst:
		return 0
	}
	return best - worst
}

func contains(ids []int, id int) bool {
	for _, x := range ids {
		if x == id {
			return true
		}
	}
	return false
}
