package margins

import (
	"math"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// Position is one output token of both sides. Logits, and what is counted in
// them, have the reference's unit; z is in standard deviations of a row.
type Position struct {
	Index int
	// RefToken and CandToken are what the sides chose.
	RefToken, CandToken int
	// Top1 and Top2 are the reference's two largest logits, Margin their
	// difference.
	Top1, Top2, Margin, ZMargin float64
	// Choice is the reference's logit of CandToken, ChoiceMargin how far it lies
	// below Top1, Rank its place in the reference's order, counted from 1.
	Choice, ChoiceMargin, ZChoice float64
	Rank                          int
	// Spearman is over the vocabulary, SpearmanTop and MaxZDiffTop over the
	// reference's top N tokens (z over the vocabulary).
	Spearman, SpearmanTop, MaxZDiffTop float64

	// AfterFlip is true when a token before this one differs: the sides read
	// other inputs here, and the figures compare nothing.
	AfterFlip bool
	// Class is what CandToken is worth on the reference's row; empty after a flip.
	Class conformance.Margin
	// Regret is ChoiceMargin in nats; NaN where the reference's logits have no
	// unit.
	Regret float64
	// KL is KL(reference || candidate) in nats. KLRowScale is the same with the
	// candidate's row brought to the scale that fits the reference's best: for
	// int32 logits alone. NaN where it isn't defined.
	KL, KLRowScale float64
	// CentredL2 is the relative L2 error without a shift of the row, and Scale
	// the least-squares slope of the candidate's logits on the reference's: for
	// int32 logits CentredL2 is NaN and Scale in their steps per logit.
	CentredL2, Scale float64
	// Noise is the standard deviation of the error of a difference of two logits,
	// in z: sqrt(2) times the root mean square z-difference of the row.
	Noise float64

	dot, refSq float64 // sums of the common scale
}

// Agree reports whether both sides chose the same token.
func (p *Position) Agree() bool { return p.RefToken == p.CandToken }

// Comparable reports whether both sides had the same input.
func (p *Position) Comparable() bool { return !p.AfterFlip }

// meter measures positions. It keeps its memory between rows.
type meter struct {
	top              int
	refUnit, candInt bool
	a, b             []float64 // the top N of either row
}

// measure fills in what two rows say. top1 and top2 are the reference's largest.
func (m *meter) measure(p *Position, ref, cand []float64, top1, top2 int) {
	c := metric.Centre(cand, ref)
	p.Top1, p.Top2 = ref[top1], ref[top2]
	p.Margin = p.Top1 - p.Top2
	p.Choice = ref[p.CandToken]
	p.ChoiceMargin = p.Top1 - p.Choice
	p.ZMargin, p.ZChoice = p.Margin/c.WantStd, p.ChoiceMargin/c.WantStd
	p.Rank = metric.Rank(ref, p.CandToken)
	p.Spearman = metric.Spearman(cand, ref)
	p.Noise = math.Sqrt2 * c.RMSZDiff
	p.CentredL2, p.Scale = c.L2, c.Slope

	m.a, m.b = m.a[:0], m.b[:0]
	for _, id := range metric.TopN(ref, m.top) {
		m.a, m.b = append(m.a, cand[id]), append(m.b, ref[id])
		d := (cand[id]-c.GotMean)/c.GotStd - (ref[id]-c.WantMean)/c.WantStd
		p.MaxZDiffTop = math.Max(p.MaxZDiffTop, math.Abs(d))
	}
	p.SpearmanTop = metric.Spearman(m.a, m.b)

	nan := math.NaN()
	p.Regret, p.KL, p.KLRowScale = nan, nan, nan
	if m.refUnit {
		p.Regret = p.ChoiceMargin // the normaliser cancels, see metric.Regret
	}
	if m.refUnit && !m.candInt {
		p.KL = metric.KL(ref, cand)
	} else {
		p.CentredL2 = nan
	}
	p.refSq = c.WantStd * c.WantStd * float64(len(ref))
	p.dot = c.Slope * p.refSq
}
