package trace

import (
	"fmt"
	"slices"

	"github.com/plumbline-go/plumbline/golden/metric"
)

// RouteDistribution describes the routes of one gate, condition and scope. Sums are
// float64.
type RouteDistribution struct {
	Tokens, TopK int
	// Decisions is Tokens * TopK.
	Decisions int64
	// OrderedSHA256 is the hash of the ids as the router ordered them. An unsorted
	// top-k gives another hash for the same sets: compare sets.
	OrderedSHA256, WeightSHA256 string
	// Loads and WeightedLoads are by expert: how many decisions, and the sum of their
	// weights.
	Loads         []int64
	WeightedLoads []float64
	UniqueExperts int
	// LoadCV is the loads' standard deviation over their mean, Entropy their
	// entropy over that of equal ones, MaxShare the largest expert's share.
	LoadCV, Entropy, MaxShare float64
}

// DescribeRoutes computes the distribution of routes. at names them in errors.
func DescribeRoutes(at string, r Routes, experts int) (RouteDistribution, error) {
	if err := r.check(at, experts); err != nil {
		return RouteDistribution{}, err
	}
	return describeRoutes(at, r, experts)
}

// describeRoutes is DescribeRoutes for routes that were checked.
func describeRoutes(at string, r Routes, experts int) (RouteDistribution, error) {
	d := RouteDistribution{
		Tokens: len(r.IDs), TopK: len(r.IDs[0]),
		OrderedSHA256: RoutesHash(r.IDs), WeightSHA256: TensorHash(r.DType, r.Weights),
		Loads: metric.Loads(r.IDs, experts), WeightedLoads: metric.WeightedLoads(r.IDs, r.Weights, experts),
	}
	d.ofLoads()
	return d, finite(at, figure{"normalized_load_entropy", d.Entropy})
}

// ofLoads sets what follows from the loads.
func (d *RouteDistribution) ofLoads() {
	d.Decisions = metric.Decisions(d.Loads)
	d.UniqueExperts = metric.UsedExperts(d.Loads)
	d.LoadCV, d.Entropy, d.MaxShare = metric.LoadCV(d.Loads), metric.LoadEntropy(d.Loads), metric.MaxLoadShare(d.Loads)
}

// RouteComparison compares the routes of two conditions, token by token.
type RouteComparison struct {
	Tokens int
	// OrderedExact and SetExact are how many tokens have the same experts, in the
	// same slots and in any.
	OrderedExact, SetExact int
	// MeanJaccard is the mean overlap of the sets, MeanWeightedTV that of half the
	// difference of the weights, LoadTV the distance between the loads.
	MeanJaccard, MeanWeightedTV, LoadTV float64
}

// CompareRoutes compares the routes of two conditions.
func CompareRoutes(at string, left, right Routes, experts int) (RouteComparison, error) {
	for _, r := range []Routes{left, right} {
		if err := r.check(at, experts); err != nil {
			return RouteComparison{}, err
		}
	}
	return compareRoutes(at, left, right, experts)
}

// compareRoutes is CompareRoutes for routes that were checked.
func compareRoutes(at string, left, right Routes, experts int) (RouteComparison, error) {
	if len(left.IDs) != len(right.IDs) || len(left.IDs[0]) != len(right.IDs[0]) {
		return RouteComparison{}, &InputError{at, "shape of the right side", fmt.Sprintf("[%d, %d]", len(right.IDs), len(right.IDs[0])),
			fmt.Sprintf("[%d, %d], as on the left", len(left.IDs), len(left.IDs[0]))}
	}
	c := RouteComparison{Tokens: len(left.IDs)}
	for t, l := range left.IDs {
		r := right.IDs[t]
		if slices.Equal(l, r) {
			c.OrderedExact++
		}
		if metric.SameRoute(l, r) {
			c.SetExact++
		}
		c.MeanJaccard += metric.SetJaccard(l, r)
		c.MeanWeightedTV += metric.RouteTV(l, left.Weights[t], r, right.Weights[t])
	}
	n := float64(c.Tokens)
	c.MeanJaccard /= n
	c.MeanWeightedTV /= n
	c.LoadTV = metric.LoadTV(metric.Loads(left.IDs, experts), metric.Loads(right.IDs, experts))
	return c, nil
}
