package conformance

import (
	"fmt"
	"math"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// Margin is what a side's pick is worth on the reference's row.
type Margin string

// The classes of a pick.
const (
	// Match: the reference picks the same token.
	Match Margin = "MATCH"
	// TieFlip: another token, which the reference puts so near to its own that
	// the arithmetic alone can exchange them.
	TieFlip Margin = "TIE-FLIP"
	// Drift: another token, beyond the tie band and within a multiple of it.
	Drift Margin = "DRIFT"
	// Wrong: another token, and no rounding explains it.
	Wrong Margin = "WRONG"
)

// LogitRow is one output token of a candidate beside the reference's row, which
// was computed along the candidate's own tokens: row i has the same input on
// both sides, whatever was chosen before.
type LogitRow struct {
	// Error is the relative L2 error of the row, without its mean, which softmax
	// does not see: the candidate's, and the yardstick's.
	Error Measure
	// KL is KL(reference || side) in nats, of the candidate and the yardstick.
	KL Measure
	// Scale is the norm of the candidate's row over the reference's; for integer
	// logits, what one unit of them is worth in logits.
	Scale float64
	// Top is the reference's token and Pick the candidate's; Rank is Pick's place
	// in the reference's row, counted from 1.
	Top, Pick, Rank int
	// Margin is how far Top lies above the reference's second, Regret how far it
	// lies above Pick, both in nats.
	Margin, Regret float64
	// Noise is the error of a difference of two logits that the yardstick shows
	// on the same row; YardRegret is what the yardstick's own pick loses.
	Noise, YardRegret float64
	// Band is the largest regret of a tie.
	Band  float64
	Class Margin
}

// LogitProfile is what a case's logit dump shows.
type LogitProfile struct {
	Rows []LogitRow
	// Unscaled is true for integer logits: each row was brought to the norm of
	// the reference's.
	Unscaled bool
	// Offset and YardOffset are the sums over the rows of the deviation of each
	// id, as shares of the standard deviation of the reference's row.
	Offset, YardOffset []float64
	// Head is the error of row 0 from what the reference's final norm and head
	// make of the candidate's own last layer row. Missing without layer rows.
	Head Measure
	// HeadFault names what is wrong where Head is out of budget: final_norm or
	// logits. Empty where it was not asked.
	HeadFault engine.Probe
	// Factors are the bounds for this candidate's arithmetic.
	Factors Factors
	// Float is true for a candidate that is held to float32.
	Float bool
	// Told is true when the side said which tokens it chose; else the rows'
	// largest entries stand in for them.
	Told bool
	// SchemeUnknown says why the yardstick is not the candidate's arithmetic.
	SchemeUnknown string
	// File is the dump.
	File string
}

// scaled returns row, and for integer logits the row brought to the norm of want
// when both are taken without their mean. unit is the factor.
func scaled(row, want []float64, unscaled bool) (out []float64, unit float64) {
	unit = spread(want) / spread(row)
	if !unscaled {
		return row, spread(row) / spread(want)
	}
	out = make([]float64, len(row))
	for i, x := range row {
		out[i] = x * unit
	}
	return out, unit
}

// spread is the standard deviation of a row.
func spread(row []float64) float64 {
	mean := metric.Mean(row)
	sum := 0.0
	for _, x := range row {
		sum += (x - mean) * (x - mean)
	}
	return math.Sqrt(sum / float64(len(row)))
}

// logitTruth is what a row of logits is measured from.
type logitTruth struct {
	// rows are the reference's, yard the yardstick's, along the same tokens.
	rows, yard [][]float64
	// floor is the smallest relative error that the yardstick can be trusted to
	// show.
	floor float64
}

// measureLogits measures row i of a candidate and adds to the sums over the ids.
func (p *LogitProfile) measureLogits(t logitTruth, i int, row []float64, pick int, b Budgets) {
	ref, yard := t.rows[i], t.yard[i]
	got, unit := scaled(row, ref, p.Unscaled)
	if pick < 0 {
		pick = metric.ArgMax(row)
	}
	first, second := metric.Top2(ref)
	sigma := spread(ref)
	r := LogitRow{
		Error: Measure{Got: metric.CentredL2(got, ref), Yard: max(metric.CentredL2(yard, ref), t.floor)},
		// An error of the floor's size has a KL of about half its square.
		KL:    Measure{Got: metric.KL(ref, got), Yard: max(metric.KL(ref, yard), t.floor*t.floor*sigma*sigma/2)},
		Scale: unit, Top: first, Pick: pick, Rank: metric.Rank(ref, pick),
		Regret: metric.Regret(ref, pick), YardRegret: metric.Regret(ref, metric.ArgMax(yard)),
	}
	// A relative error e moves each of two logits by e*sigma, independently.
	r.Noise = math.Sqrt2 * r.Error.Yard * sigma
	r.Band = p.Factors.Single.Value * r.Noise
	if second >= 0 {
		r.Margin = ref[first] - ref[second]
	}
	r.Class = classOf(r, b)
	p.Rows = append(p.Rows, r)
	if p.Offset == nil {
		p.Offset, p.YardOffset = make([]float64, len(ref)), make([]float64, len(ref))
	}
	mean, gotMean, yardMean := metric.Mean(ref), metric.Mean(got), metric.Mean(yard)
	for k, x := range ref {
		p.Offset[k] += ((got[k] - gotMean) - (x - mean)) / sigma
		p.YardOffset[k] += ((yard[k] - yardMean) - (x - mean)) / sigma
	}
}

func classOf(r LogitRow, b Budgets) Margin {
	switch {
	case r.Pick == r.Top:
		return Match
	case r.Regret <= r.Band:
		return TieFlip
	case r.Regret <= b.WrongPick.Value*r.Band:
		return Drift
	}
	return Wrong
}

// clear reports whether the reference's margin is above the tie band.
func (r LogitRow) clear() bool { return r.Margin > r.Band }

// stepName names a logit row for people.
func stepName(i int) string { return fmt.Sprintf("output token %d", i) }
