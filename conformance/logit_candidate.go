package conformance

import (
	"fmt"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// logitCandidate holds the candidate's logits to the reference's, along the
// candidate's own tokens.
func logitCandidate() *Check {
	return &Check{
		ID: "LogitCandidate",
		Rule: "along the candidate's own tokens, its logits match the reference's: error, KL and regret within a multiple of the yardstick's, " +
			"no pick that no rounding explains, and another pick than the reference's hardly ever where that is clear",
		Catches: []string{
			"a wrong final norm or head", "logits scaled by a temperature", "a bias on one id, or a damaged row of the head",
			"a decode step with a wrong position or cache, where the prefill is right", "early divergence of many prompts at once",
		},
		Level:  Core,
		Sides:  []Side{SideCandidate},
		Needs:  NeedLogits,
		Bounds: []string{"Int8", "Float", "LogitRow", "LogitRowFloat", "WrongPick", "Drifts", "MeanRegret"},
		Basis:  "KL is bounded by the single factor squared, times the yardstick's",
		Controls: []Control{
			{Mutant: "temperature", Side: SideCandidate, Layer: -1, Floor: 2},
			{Mutant: "logit-row-permuted", Side: SideCandidate, Layer: -1, Floor: 2},
			{Mutant: "logit-bias", Side: SideCandidate, Layer: -1, Floor: 2},
			{Mutant: "flipped-clear-call", Side: SideCandidate, Layer: -1, Floor: 2},
			{Mutant: "early-divergence", Side: SideCandidate, Layer: -1, Floor: 2},
			{Mutant: "final-norm-ones", Side: SideCandidate, Layer: -1, Floor: 2},
			{Mutant: "final-norm-rolled", Side: SideCandidate, Layer: -1, Floor: 2},
			{Mutant: "wrong-head", Side: SideCandidate, Layer: -1, Floor: 2},
			{Mutant: "rope-base", Side: SideCandidate, Layer: -1, Floor: 2},
		},
		Judge:  judgeLogitCandidate,
		Across: acrossLogits,
	}
}

func judgeLogitCandidate(ev *Evidence, _ Side) Outcome {
	if ev.LogitForm == nil {
		return noLogitDump(ev)
	}
	p := ev.Logits
	if p == nil {
		return skip("not judged by value: " + ev.NoLogits)
	}
	if p.SchemeUnknown != "" {
		return unsupported("no absolute bound: " + p.SchemeUnknown)
	}
	var out []Finding
	rowBound := p.rowBound(ev.Budgets)
	total := Measure{}
	for i, r := range p.Rows {
		total.Got += r.Error.Got / float64(len(p.Rows))
		total.Yard += r.Error.Yard / float64(len(p.Rows))
		if over(r.Error.Ratio(), rowBound.Value) {
			out = append(out, Finding{Probe: engine.ProbeLogits, Metric: "relative L2 of the row without its mean", Got: Number(r.Error.Got),
				Limit: Limit{Number(rowBound.Value * r.Error.Yard), rowBound.Describe()}, At: AtStep(i, p.File), Detail: r.describe()})
		}
		if r.Class == Wrong {
			out = append(out, Finding{Probe: engine.ProbeLogits, Metric: "regret in nats", Got: Number(r.Regret),
				Limit: Limit{Number(ev.Budgets.WrongPick.Value * r.Band), ev.Budgets.WrongPick.Describe()}, At: AtStep(i, p.File),
				Detail: fmt.Sprintf("WRONG: token %d, the reference's is %d and %d stands at rank %d", r.Pick, r.Top, r.Pick, r.Rank)})
		}
	}
	bound := p.Factors.Single
	if over(total.Ratio(), bound.Value) {
		out = append(out, Finding{Probe: engine.ProbeLogits, Metric: "relative L2 of the rows without their mean, mean over the rows", Got: Number(total.Got),
			Limit: Limit{Number(bound.Value * total.Yard), bound.Describe()}, At: At{Row: -1, Channel: -1, File: p.File}})
	}
	if len(out) > 0 {
		return fail("", out...)
	}
	return pass()
}

func (p *LogitProfile) rowBound(b Budgets) golden.Budget {
	if p.Float {
		return b.LogitRowFloat
	}
	return b.LogitRow
}

func (r LogitRow) describe() string {
	return fmt.Sprintf("%.2f times the yardstick's error, KL %.3g nats, norm ratio or scale %.4g", r.Error.Ratio(), r.KL.Got, r.Scale)
}

// LogitSummary is what all logit rows of a run say together.
type LogitSummary struct {
	Cases int `json:"cases"`
	// Positions is how many rows were compared, of Offered; Clear is at how many
	// of them the reference's margin is above the tie band.
	Positions int `json:"positions"`
	Offered   int `json:"offered"`
	Clear     int `json:"clear"`
	Match     int `json:"match"`
	TieFlip   int `json:"tie_flip"`
	Drift     int `json:"drift"`
	Wrong     int `json:"wrong"`
	// Top1Agreement is Match over Positions.
	Top1Agreement Number `json:"top1_agreement"`
	// Error is the relative L2 of the rows without their mean, KL is
	// KL(reference || candidate) in nats; each with the yardstick's.
	ErrorRatioMedian Number `json:"error_ratio_median"`
	ErrorMean        Number `json:"relative_l2_mean"`
	KLMean           Number `json:"kl_mean"`
	KLP99            Number `json:"kl_p99"`
	KLMax            Number `json:"kl_max"`
	YardKLMean       Number `json:"yardstick_kl_mean"`
	YardKLP99        Number `json:"yardstick_kl_p99"`
	YardKLMax        Number `json:"yardstick_kl_max"`
	RegretMean       Number `json:"regret_mean"`
	RegretMax        Number `json:"regret_max"`
	YardRegretMean   Number `json:"yardstick_regret_mean"`
	// NoiseMean is the mean error of a difference of two logits that the yardstick
	// shows.
	NoiseMean Number `json:"noise_mean"`
	// WorstID is the id whose logits lie furthest off on average, by OffsetMax
	// standard deviations of a row; the yardstick's furthest by YardOffsetMax.
	WorstID       int    `json:"worst_id"`
	OffsetMax     Number `json:"offset_max"`
	YardOffsetMax Number `json:"yardstick_offset_max"`
}

// summarise is nil when no logits were compared.
func summarise(evs []*Evidence) *LogitSummary {
	s := LogitSummary{WorstID: -1}
	var ratios, klGot, klYard, regret, yardRegret, noise, errors []float64
	var offset, yardOffset []float64
	for _, ev := range evs {
		if f := ev.LogitForm; f != nil && f.unusable() == "" { // else the contract of the rows has failed
			s.Offered += f.judged(ev.Arch.Vocab)
		}
		p := ev.Logits
		if p == nil {
			continue
		}
		s.Cases++
		for _, r := range p.Rows {
			ratios, errors = append(ratios, r.Error.Ratio()), append(errors, r.Error.Got)
			klGot, klYard = append(klGot, r.KL.Got), append(klYard, r.KL.Yard)
			regret, yardRegret = append(regret, r.Regret), append(yardRegret, r.YardRegret)
			noise = append(noise, r.Noise)
			if r.clear() {
				s.Clear++
			}
			switch r.Class {
			case Match:
				s.Match++
			case TieFlip:
				s.TieFlip++
			case Drift:
				s.Drift++
			default:
				s.Wrong++
			}
		}
		offset, yardOffset = addTo(offset, p.Offset), addTo(yardOffset, p.YardOffset)
	}
	if s.Cases == 0 {
		return nil
	}
	n := float64(len(ratios))
	s.Positions, s.Top1Agreement = len(ratios), Number(float64(s.Match)/n)
	s.ErrorRatioMedian, s.ErrorMean = Number(metric.Median(ratios)), Number(metric.Mean(errors))
	s.KLMean, s.KLP99, s.KLMax = Number(metric.Mean(klGot)), Number(metric.P99(klGot)), Number(metric.Quantile(1, klGot))
	s.YardKLMean, s.YardKLP99, s.YardKLMax = Number(metric.Mean(klYard)), Number(metric.P99(klYard)), Number(metric.Quantile(1, klYard))
	s.RegretMean, s.RegretMax, s.YardRegretMean = Number(metric.Mean(regret)), Number(metric.Quantile(1, regret)), Number(metric.Mean(yardRegret))
	s.NoiseMean = Number(metric.Mean(noise))
	worst, at := furthest(offset)
	yardWorst, _ := furthest(yardOffset)
	s.WorstID, s.OffsetMax, s.YardOffsetMax = at, Number(worst/n), Number(yardWorst/n)
	return &s
}

func addTo(sum, x []float64) []float64 {
	if sum == nil {
		sum = make([]float64, len(x))
	}
	for i, v := range x {
		sum[i] += v
	}
	return sum
}

// furthest is the entry with the largest size and where it is; a NaN is.
func furthest(x []float64) (size float64, at int) {
	for i, v := range x {
		if v = max(v, -v); over(v, size) {
			size, at = v, i
		}
	}
	return size, at
}

// klRows and klP99Rows are how many rows it takes for a mean and a 99th percentile
// of KL to be held to a bound. KL goes with the square of an error and has a heavy
// tail: over 6 rows the means of two sound emulations differ by 37, over 48 by 4.
const (
	klRows    = 40
	klP99Rows = 100
)

// acrossLogits judges all rows together. From MedianCases cases on it holds the
// narrower factor on the errors. In the KL an error is squared, so its factor is
// the square of the wider one.
func acrossLogits(run *RunEvidence) *Outcome {
	s := summarise(run.Cases)
	if s == nil {
		return nil
	}
	var p *LogitProfile
	var b Budgets
	for _, ev := range run.Cases {
		if ev.Logits != nil {
			p, b = ev.Logits, ev.Budgets
		}
	}
	if p.SchemeUnknown != "" {
		return nil
	}
	factor := p.Factors.Single
	if s.Cases >= MedianCases {
		factor = p.Factors.Median
	}
	var out, passed []Finding
	hold := func(metric string, got Number, limit float64, source string) {
		f := Finding{Probe: engine.ProbeLogits, Metric: metric, Got: got, Limit: Limit{Number(limit), source}, At: Nowhere}
		if over(float64(got), limit) {
			out = append(out, f)
		} else {
			passed = append(passed, f)
		}
	}
	single := p.Factors.Single
	squared := func(of string) string { return fmt.Sprintf("%g squared, times %s", single.Value, of) }
	hold("error of the rows over the yardstick's, median over the rows", s.ErrorRatioMedian, factor.Value, factor.Describe())
	if s.Positions >= klRows {
		hold("KL in nats, mean over the rows", s.KLMean, single.Value*single.Value*float64(s.YardKLMean), squared("the yardstick's mean KL"))
	}
	if s.Positions >= klP99Rows {
		hold("KL in nats, p99 over the rows", s.KLP99, single.Value*single.Value*float64(s.YardKLP99), squared("the yardstick's p99"))
	}
	hold(fmt.Sprintf("mean deviation of id %d, the largest of all, in standard deviations of a row", s.WorstID), s.OffsetMax,
		single.Value*float64(s.YardOffsetMax), fmt.Sprintf("%g times the yardstick's largest", single.Value))
	if s.Cases >= MedianCases {
		hold("mean regret in nats", s.RegretMean, b.MeanRegret.Value*float64(s.NoiseMean), b.MeanRegret.Describe())
	}
	if s.Clear > 0 {
		hold("share of the clear positions with another pick", Number(float64(s.Drift+s.Wrong)/float64(s.Clear)),
			max(b.Drifts.Value, oneOf(s.Clear, s.Wrong)), b.Drifts.Describe())
	}
	hold("share of the logit rows that were not compared", Number(1-float64(s.Positions)/float64(s.Offered)), 0, "every row that was offered is compared")
	if len(out) > 0 {
		o := fail("", out...)
		return &o
	}
	return &Outcome{Status: Pass, Findings: passed}
}

// oneOf allows one drifted pick among few clear positions, none that is wrong.
func oneOf(clear, wrong int) float64 {
	if wrong > 0 {
		return 0
	}
	return 1 / float64(clear)
}
