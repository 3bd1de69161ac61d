package margins

import (
	"fmt"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/golden"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// bandCap bounds a tie band that is derived from the candidate itself, in
// standard deviations, until expiry: a noisier candidate would excuse more of its
// own picks.
const (
	bandCap = 0.5
	capWhy  = "a candidate's own noise can't excuse its picks without bound; a clean int8 engine's gives 0.51 (9 prompts, 49 positions)"
	expiry  = "2027-12-31"
)

// noiseMultiple is how many standard deviations of the noise a tie may take.
const noiseMultiple = 3

// WrongMultiple is how many tie bands away a pick is wrong, not drifted.
const WrongMultiple = 3

// DefaultTieBand is the tie band, in standard deviations of the reference's row,
// that the comparable positions give: three standard deviations of the noise of
// a difference of two logits, as the candidate shows it on the median row, up to
// a bound set by hand. Value is NaN without a comparable position.
func (res *Result) DefaultTieBand() golden.Budget {
	var noise []float64
	for i := range res.Cases {
		for j := range res.Cases[i].Positions {
			if p := &res.Cases[i].Positions[j]; p.Comparable() {
				noise = append(noise, p.Noise)
			}
		}
	}
	median := metric.Median(noise)
	band := golden.Of(median, noiseMultiple,
		fmt.Sprintf("the candidate's own noise of a difference of two logits (%.3g z, median of %d comparable rows)", median, len(noise)),
		"two tokens change places when the noise of their difference exceeds the margin; beyond three standard deviations of it that isn't chance")
	if band.Value > bandCap {
		return golden.ByHand(bandCap, fmt.Sprintf("%s; here %s gives %.3g", capWhy, band.Describe(), band.Value), expiry)
	}
	return band
}

// Classify sets each comparable position's class by a tie band in standard
// deviations of the reference's row.
func (res *Result) Classify(band float64) {
	for i := range res.Cases {
		for j := range res.Cases[i].Positions {
			if p := &res.Cases[i].Positions[j]; p.Comparable() {
				p.Class = classOf(p, band)
			}
		}
	}
}

// classOf is written so that a figure that is NaN is wrong.
func classOf(p *Position, band float64) conformance.Margin {
	switch {
	case p.Agree():
		return conformance.Match
	case p.ZChoice <= band:
		return conformance.TieFlip
	case p.ZChoice <= WrongMultiple*band:
		return conformance.Drift
	}
	return conformance.Wrong
}

// Wrong counts the comparable positions of a class that no rounding explains.
func (res *Result) Wrong() int {
	n := 0
	for i := range res.Cases {
		for j := range res.Cases[i].Positions {
			if res.Cases[i].Positions[j].Class == conformance.Wrong {
				n++
			}
		}
	}
	return n
}
