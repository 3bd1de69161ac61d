package trace

import (
	"math"

	"github.com/plumbline-go/plumbline/golden"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// RouteClass says how a token's route compares to the reference's.
type RouteClass string

// The classes. A route is a set: the order in which a router lists it means nothing.
const (
	// RouteMatch: the same set of experts.
	RouteMatch RouteClass = "MATCH"
	// RouteTie: another set, which scores within the band explain.
	RouteTie RouteClass = "TIE"
	// RouteFlip: another set, which they don't.
	RouteFlip RouteClass = "FLIP"
	// RouteUnjudged: the reference's scores hold a NaN, or its own route isn't the
	// top of them.
	RouteUnjudged RouteClass = "UNJUDGED"
)

// TieBand is how far two selection scores may be apart and still be a tie.
type TieBand struct {
	// Routing is the type in which the router scores: scores less than a step of it
	// apart can't be told from each other.
	Routing DType
	// Measured bounds the difference of two scores that are off by what the
	// arithmetic leaves, such as twice the largest error of a score in an emulated
	// run. The zero Budget adds nothing to the step.
	Measured golden.Budget
}

// At is the band for scores of that size.
func (b TieBand) At(score float64) float64 {
	step := 0.0
	if !math.IsInf(score, 0) {
		step = b.Routing.Step(score)
	}
	return math.Max(step, b.Measured.Value)
}

// RouteVerdict is the comparison of one token's route with the reference's.
type RouteVerdict struct {
	Class RouteClass
	// Margin is the reference's k-th largest score minus the next, Band the tie band
	// at the k-th; a row is a near tie when Margin <= Band, whatever the candidate chose.
	Margin, Band float64
	// Gap is what scores would have to be off by for the candidate's set: 0 for the
	// same, never below Margin for another one.
	Gap float64
	// Missing and Extra are the experts that the candidate lacks, and has instead.
	Missing, Extra []int
}

// NearTie reports whether the reference's choice was close.
func (v RouteVerdict) NearTie() bool { return v.Margin <= v.Band }

// JudgeRoute compares one token's route. scores are the reference's selection
// scores, as its top-k saw them (masked groups -Inf), want its route, got the
// candidate's. Any other set is a flip where the margin is above the band; below it,
// only one that the band explains is a tie: an expert far down the order is none.
func JudgeRoute(scores []float64, want, got []int, band TieBand) RouteVerdict {
	v := RouteVerdict{Margin: metric.RouteMargin(scores, len(want)), Class: RouteUnjudged}
	for _, id := range append(append([]int{}, want...), got...) {
		if id < 0 || id >= len(scores) {
			v.Margin = math.NaN()
		}
	}
	top := metric.TopN(scores, len(want))
	if math.IsNaN(v.Margin) || len(top) != len(want) || len(want) == 0 {
		return v
	}
	last := scores[top[len(top)-1]]
	v.Band = band.At(last)
	for _, id := range want {
		if !(scores[id] >= last) { // another choice among equal scores is as good
			return v
		}
	}
	v.Missing, v.Extra = metric.Lacking(want, got), metric.Lacking(got, want)
	v.Gap = metric.RouteGap(scores, want, got)
	switch {
	case metric.SameRoute(want, got):
		v.Class = RouteMatch
	case v.Gap <= v.Band:
		v.Class = RouteTie
	default:
		v.Class = RouteFlip
	}
	return v
}
