package conformance

import (
	"math"
	"slices"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden"
	"github.com/plumbline-go/plumbline/golden/metric"
	"github.com/plumbline-go/plumbline/golden/trace"
)

// gateChoice is what a gate makes of one row of recorded logits, in float64: its
// selection scores, and the sets of groups that it may choose from.
type gateChoice struct {
	experts engine.Experts
	scores  []float64
	// masked are the scores with -Inf in groups that weren't chosen: those of the best
	// groups, then, where the last of these is tied with the next, those with the next
	// in its place.
	masked [][]float64
	band   trace.TieBand
}

// choiceOf is the choice of a gate on logits that are off by at most noise, an L2
// norm, and that a router of type routing scores. bias is a sigmoid gate's.
func choiceOf(x engine.Experts, logits, bias []float64, noise float64, routing trace.DType, source string) gateChoice {
	c := gateChoice{experts: x, scores: selectionScores(x.Gate, logits, bias), band: trace.TieBand{Routing: routing}}
	c.masked = [][]float64{c.scores}
	if !allFinite(c.scores) {
		return c // nothing follows from scores that aren't numbers
	}
	first := c.scores
	if x.Gate.Groups > 0 {
		first = maskGroups(c.scores, x.Gate.Groups, bestGroups(c.worths(), x.Gate.TopGroups))
		c.masked[0] = first
	}
	top := metric.TopN(first, x.PerToken)
	last := first[top[len(top)-1]]
	c.band.Measured = golden.Of(scoreNoise(x.Gate, last, math.Sqrt2*noise), 1, source, "two logits that are off by as much together change places")
	if x.Gate.Groups > x.Gate.TopGroups {
		c.otherGroups()
	}
	return c
}

// scoreNoise is how far the difference of two scores near s moves when that of their
// logits moves by noise.
func scoreNoise(g engine.Gate, s, noise float64) float64 {
	if g.Scoring == engine.ScoringSigmoid {
		return noise / 4 // the steepest that a sigmoid is
	}
	return s * math.Expm1(noise) // ratios of scores are differences of logits
}

// selectionScores are what experts are chosen by, before groups are.
func selectionScores(g engine.Gate, logits, bias []float64) []float64 {
	scores := make([]float64, len(logits))
	if g.Scoring == engine.ScoringSigmoid {
		for i, l := range logits {
			scores[i] = 1/(1+math.Exp(-l)) + bias[i]
		}
		return scores
	}
	most, sum := slices.Max(logits), 0.0
	for i, l := range logits {
		scores[i] = math.Exp(l - most)
		sum += scores[i]
	}
	for i := range scores {
		scores[i] /= sum
	}
	return scores
}

// expertWeights are what the gate weighs experts by, given its logits.
func expertWeights(x engine.Experts, logits []float64, ids []int) []float64 {
	g := x.Gate
	scores := selectionScores(g, logits, make([]float64, len(logits))) // a bias chooses and doesn't weigh
	out, sum := make([]float64, len(ids)), 0.0
	for i, id := range ids {
		out[i] = scores[id]
		sum += scores[id]
	}
	normalised := g.Normalise && len(ids) > 1
	for i := range out {
		if normalised {
			out[i] /= sum
		}
		if g.Scoring == engine.ScoringSigmoid || !normalised {
			out[i] *= g.Scale
		}
	}
	return out
}

// worths are what groups are chosen by: their best score, or the sum of their best
// two.
func (c gateChoice) worths() []float64 {
	var out []float64
	for group := range slices.Chunk(c.scores, len(c.scores)/c.experts.Gate.Groups) {
		top := metric.TopN(group, 2)
		w := group[top[0]]
		if c.experts.Gate.Scoring == engine.ScoringSigmoid {
			w += group[top[1]]
		}
		out = append(out, w)
	}
	return out
}

func bestGroups(worths []float64, n int) []int { return metric.TopN(worths, n) }

func maskGroups(scores []float64, groups int, kept []int) []float64 {
	out, size := slices.Clone(scores), len(scores)/groups
	for i := range out {
		if !slices.Contains(kept, i/size) {
			out[i] = math.Inf(-1)
		}
	}
	return out
}

// otherGroups adds the choice from the next group, where that is tied with the last
// that was chosen.
func (c *gateChoice) otherGroups() {
	g, w := c.experts.Gate, c.worths()
	order := bestGroups(w, g.TopGroups+1)
	last, next := order[g.TopGroups-1], order[g.TopGroups]
	band := c.band.At(w[last])
	if g.Scoring == engine.ScoringSigmoid {
		band *= 2 // of two scores each
	}
	if w[last]-w[next] <= band {
		c.masked = append(c.masked, maskGroups(c.scores, g.Groups, append(slices.Clone(order[:g.TopGroups-1]), next)))
	}
}

// judge compares a route with the recorded one. A recorded route that the band
// doesn't explain is UNJUDGED: the record contradicts itself.
func (c gateChoice) judge(want, got []int) trace.RouteVerdict {
	v := c.against(want)
	if v.Class != trace.RouteMatch && v.Class != trace.RouteTie {
		v.Class = trace.RouteUnjudged
		return v
	}
	v = c.against(got)
	switch {
	case v.Class == trace.RouteUnjudged:
	case metric.SameRoute(want, got):
		v.Class = trace.RouteMatch
	case v.Class == trace.RouteMatch: // the record is the tie
		v.Class = trace.RouteTie
	}
	v.Missing, v.Extra = metric.Lacking(want, got), metric.Lacking(got, want)
	return v
}

// against is the verdict on a route beside the top of the scores, in the groups that
// suit it best.
func (c gateChoice) against(got []int) trace.RouteVerdict {
	var best trace.RouteVerdict
	for i, scores := range c.masked {
		v := trace.JudgeRoute(scores, metric.TopN(scores, c.experts.PerToken), got, c.band)
		if i == 0 {
			best = v
			continue
		}
		if best.Class == trace.RouteFlip && (v.Class == trace.RouteMatch || v.Class == trace.RouteTie) {
			best.Class, best.Gap, best.Margin = trace.RouteTie, v.Gap, 0
		}
	}
	return best
}

func allFinite(row []float64) bool {
	return !slices.ContainsFunc(row, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
}
