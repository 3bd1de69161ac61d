package conformance

import (
	"slices"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// probeBounds are the bounds on the ratios of a kind of place over the layers.
type probeBounds struct {
	// pooled bounds the ratio over all positions, single that of one position.
	pooled, single golden.Budget
	// level is what all layers have in common.
	level float64
}

// normsInFloat reports whether the candidate is known to compute norms in float32.
func (p *ProbeProfile) normsInFloat() bool { return p.float || p.weightsKnown }

// normBounds are the bounds on a norm. The yardstick's is one of float32, and
// nobody is better than that.
func (p *ProbeProfile) normBounds(as probeBounds) probeBounds {
	if p.normsInFloat() {
		return probeBounds{p.floatFactors.Median, p.floatFactors.Single, 1}
	}
	if as.level < 1 {
		return probeBounds{p.Factors.Median, p.Factors.Single, 1}
	}
	return as
}

// boundsOf derives the bounds for a kind of place from its pooled ratios over the
// layers: a layer may stand out from the lower quartile by as much as those of
// sound engines do. Of an unknown arithmetic that is all that is known; of a known
// one the quartile itself must be near the yardstick.
func (p *ProbeProfile) boundsOf(ratios []float64, b Budgets) probeBounds {
	level := metric.Quantile(0.25, measured(ratios))
	if p.SchemeUnknown == "" {
		level = min(max(level, 1), b.Level.Value)
	}
	out := probeBounds{p.Factors.Median, p.Factors.Single, level}
	if p.Positions-1 < minGainPositions { // few positions are not better than one
		out.pooled = out.single
	}
	out.pooled.Multiple *= level
	out.pooled.Value *= level
	out.single.Multiple *= level
	out.single.Value *= level
	return out
}

// probeFault is one place that is out of budget.
type probeFault struct {
	layer int
	part  engine.Part
	m     PositionMeasure
	bound probeBounds
	// first is the first position out of budget by itself, -1 when only all
	// together are.
	first int
	// heads is the order of the place's heads, nil where it is right or says nothing.
	heads []int
	// source is false where a place before it in the same layer, which it is
	// computed from, is out of budget too.
	source bool
}

// ratio is the figure that is out of budget, and its bound.
func (f probeFault) ratio() (ratio float64, m Measure, bound golden.Budget) {
	if r := f.m.All.Ratio(); over(r, f.bound.pooled.Value) {
		return r, f.m.All, f.bound.pooled
	}
	at, r := f.m.worst()
	return r, f.m.At[at], f.bound.single
}

// upstream are the places of the same layer that a place is computed from, apart
// from the input rows. split says that the MLP half was fed the candidate's own
// resid_mid.
func upstream(part engine.Part, split bool) []engine.Part {
	qkv := []engine.Part{engine.PartAttnNorm, engine.PartQ, engine.PartK, engine.PartV, engine.PartQRope, engine.PartKRope}
	switch part {
	case engine.PartQ, engine.PartK, engine.PartV:
		return []engine.Part{engine.PartAttnNorm}
	case engine.PartQRope:
		return []engine.Part{engine.PartAttnNorm, engine.PartQ}
	case engine.PartKRope:
		return []engine.Part{engine.PartAttnNorm, engine.PartK}
	case engine.PartAttnOut:
		return qkv
	case engine.PartResidMid:
		return append(qkv, engine.PartAttnOut)
	case engine.PartMLPOut:
		if !split {
			return append(qkv, engine.PartAttnOut)
		}
	case engine.PartResidPost:
		if !split {
			return append(qkv, engine.PartAttnOut, engine.PartMLPOut)
		}
		return []engine.Part{engine.PartMLPOut}
	}
	return nil
}

// faults lists the places out of budget, in depth order and in a layer in the
// order of computation.
func (p *ProbeProfile) faults(b Budgets) []probeFault {
	var out []probeFault
	bounds := map[engine.Part]probeBounds{}
	for _, part := range engine.Parts() {
		bounds[part] = p.boundsOf(p.column(partOf(part)), b)
		if part == engine.PartAttnNorm {
			bounds[part] = p.normBounds(bounds[part])
		}
	}
	for n, l := range p.Layers {
		bad := map[engine.Part]bool{}
		for _, part := range engine.Parts() {
			m, ok := l.Parts[part]
			if !ok || !m.measured() {
				continue
			}
			f := probeFault{layer: n, part: part, m: m, bound: bounds[part], first: m.first(bounds[part].single.Value), heads: l.Heads[part]}
			if f.first < 0 && !over(m.All.Ratio(), f.bound.pooled.Value) {
				continue
			}
			bad[part] = true
			f.source = !slices.ContainsFunc(upstream(part, l.Split), func(q engine.Part) bool { return bad[q] })
			out = append(out, f)
		}
	}
	return out
}

// gainFault is a half of a layer whose error follows its own update.
type gainFault struct {
	layer  int
	part   engine.Part
	g      Gain
	whole  bool // the gain of the whole update; else one channel
	bound  float64
	source golden.Budget
}

// gainFaults lists the halves whose update is scaled, or has a dead or flipped
// channel.
func (p *ProbeProfile) gainFaults(b Budgets) []gainFault {
	if p.SchemeUnknown != "" || p.float {
		return nil
	}
	gain := b.Gain
	if p.weightsKnown {
		gain = b.GainKnown
	}
	var out []gainFault
	for _, part := range []engine.Part{engine.PartResidMid, engine.PartResidPost} {
		var surest float64
		for _, l := range p.Layers {
			if t := l.Gains[part].YardT; t < worstRatio { // a perfect fit says nothing of the others
				surest = max(surest, t)
			}
		}
		for n, l := range p.Layers {
			g, ok := l.Gains[part]
			if !ok {
				continue
			}
			// A bias of the yardstick's is not the candidate's.
			if over(abs(g.Got-g.Yard), gain.Value) && over(abs(g.Got), gain.Value) {
				out = append(out, gainFault{layer: n, part: part, g: g, whole: true, bound: gain.Value, source: gain})
			} else if bound := b.GainChannel.Value * surest; g.Channel >= 0 && g.YardT < worstRatio && over(abs(g.T), bound) && abs(g.Slope) > b.ChannelSlope.Value {
				out = append(out, gainFault{layer: n, part: part, g: g, bound: bound, source: b.GainChannel})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b gainFault) int { return a.layer - b.layer })
	return out
}

func abs(x float64) float64 { return max(x, -x) }
