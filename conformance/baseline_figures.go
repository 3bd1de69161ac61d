package conformance

import (
	"math"

	"github.com/plumbline-go/plumbline/engine"
)

// Metrics of the figures.
const (
	figureAccumulated = "accumulated error, over the yardstick's"
	figureLocal       = "local error, over the yardstick's"
	figurePositions   = "error at all positions, over the yardstick's"
	figureLogits      = "error of the logits, over the yardstick's"
	figureKL          = "KL of the logits, over the yardstick's"
	figureRegret      = "regret in tie bands"
)

// figureKey names a figure: what is measured, and where.
type figureKey struct{ check, metric, probe string }

// pair is a figure of one case in two reports.
type pair struct {
	before, after float64
	// change is ln(after/before), and after-before for a regret.
	change float64
	// floor is by how much change may be moved by the reference alone, run on another
	// CPU.
	floor float64
}

// pairs are the figures of two reports, by case.
type pairs struct {
	// float is true for a candidate that is measured from float64.
	float bool
	byKey map[figureKey]map[string]pair
	order []figureKey
}

func (p *pairs) add(k figureKey, name string, x pair) {
	if math.IsNaN(x.before) || math.IsNaN(x.after) || x.before < 0 || x.after < 0 {
		return // unmeasured in one of the two: the checks of form say why
	}
	if p.byKey[k] == nil {
		p.byKey[k] = map[string]pair{}
		p.order = append(p.order, k)
	}
	p.byKey[k][name] = x
}

// yardRatio is an error with its ratio to the yardstick's.
type yardRatio struct{ err, ratio float64 }

func (m yardRatio) yard() float64 { return m.err / max(m.ratio, math.SmallestNonzeroFloat64) }

// ratioPair pairs two ratios. share is the norm of the reference's row over what the
// errors are shares of.
//
// The floor follows from the triangle inequality. Run on another CPU, the reference
// moves a quantised candidate's error and the yardstick's by at most crossCPU*share each,
// so that a ratio of error e and yardstick y moves by a factor of at most
// (1 + crossCPU*share/e)*(1 + crossCPU*share/y): 1.0002 for int8 rows, whose errors are
// some 1e-2. A float candidate's error is measured from float64, which doesn't move, and
// its yardstick is the float32 run's own error y from there, which another CPU draws anew
// at the same size: the factor is at most 1 + min(crossCPU*share, y)/y, at most 2.
func (p *pairs) ratioPair(before, after yardRatio, share float64) pair {
	b, a := max(before.ratio, asExact.Value), max(after.ratio, asExact.Value)
	out := pair{before: before.ratio, after: after.ratio, change: math.Log(a / b)}
	yard := math.Inf(1)
	for _, m := range []yardRatio{before, after} {
		if y := m.yard(); m.ratio > 0 && y < yard {
			yard = y
		}
	}
	delta := crossCPU.Value * share
	switch {
	case math.IsInf(yard, 0):
	case p.float:
		out.floor = math.Log1p(min(delta, yard) / yard)
	default:
		out.floor = math.Log1p(delta/(min(a, b)*yard)) + math.Log1p(delta/yard)
	}
	return out
}

// pairFigures pairs the figures of the cases that both reports judged.
func pairFigures(b, r *Report) *pairs {
	out := &pairs{float: arithmeticOf(r.Candidate).float, byKey: map[figureKey]map[string]pair{}}
	for _, name := range casesBoth(b, r) {
		was, is := b.Cases[name], r.Cases[name]
		out.depth(name, was.Depth, is.Depth)
		out.probes(name, was, is)
		out.logits(name, was.Logits, is.Logits)
	}
	return out
}

func (p *pairs) depth(name string, was, is []DepthRow) {
	for i := 0; i < len(was) && i < len(is); i++ {
		b, a := was[i], is[i]
		p.add(figureKey{"ResidualCandidate", figureAccumulated, string(a.Probe)}, name,
			p.ratioPair(yardRatio{float64(b.Accumulated), float64(b.AccumulatedRatio)}, yardRatio{float64(a.Accumulated), float64(a.AccumulatedRatio)}, 1))
		if b.Local == nil || a.Local == nil || a.Update == nil || a.LocalAllPositions != b.LocalAllPositions {
			continue
		}
		p.add(figureKey{"LocalError", figureLocal, string(a.Probe)}, name,
			p.ratioPair(yardRatio{float64(*b.Local), float64(*b.LocalRatio)}, yardRatio{float64(*a.Local), float64(*a.LocalRatio)}, 1/float64(*a.Update)))
	}
}

func (p *pairs) probes(name string, was, is CaseVerdict) {
	before := map[engine.Probe]ProbeRow{}
	for _, b := range was.Probes {
		before[b.Probe] = b
	}
	for _, a := range is.Probes {
		b, ok := before[a.Probe]
		if !ok {
			continue
		}
		share := 1.0
		if n, part, ok := a.Probe.Block(); ok && (part == engine.PartResidPost || part == engine.PartResidMid) && n+1 < len(is.Depth) && is.Depth[n+1].Update != nil {
			share = 1 / float64(*is.Depth[n+1].Update)
		}
		p.add(figureKey{"ProbeCandidate", figurePositions, string(a.Probe)}, name,
			p.ratioPair(yardRatio{float64(b.Error), float64(b.Ratio)}, yardRatio{float64(a.Error), float64(a.Ratio)}, share))
	}
}

// logits pairs the steps that have the same tokens before them: behind another pick the
// rows have another input.
func (p *pairs) logits(name string, was, is []LogitStep) {
	steps := 0
	for steps < len(was) && steps < len(is) {
		steps++
		if was[steps-1].Pick != is[steps-1].Pick {
			break
		}
	}
	if steps == 0 {
		return
	}
	b, a := sumSteps(was[:steps]), sumSteps(is[:steps])
	probe := string(engine.ProbeLogits)
	p.add(figureKey{"LogitCandidate", figureLogits, probe}, name, p.ratioPair(b.err, a.err, 1))
	kl := p.ratioPair(b.kl, a.kl, 0)
	kl.floor = 2 * p.ratioPair(b.err, a.err, 1).floor // a KL goes with the square of an error
	p.add(figureKey{"LogitCandidate", figureKL, probe}, name, kl)
	p.add(figureKey{"LogitCandidate", figureRegret, probe}, name,
		pair{before: b.regret, after: a.regret, change: a.regret - b.regret, floor: crossCPU.Value / max(min(b.err.yard(), a.err.yard()), crossCPU.Value)})
}

// stepSums are means over rows of logits.
type stepSums struct {
	err, kl yardRatio
	regret  float64
}

func sumSteps(steps []LogitStep) stepSums {
	var s stepSums
	var yard, yardKL float64
	n := float64(len(steps))
	for _, x := range steps {
		s.err.err += float64(x.Error) / n
		yard += yardRatio{float64(x.Error), float64(x.ErrorRatio)}.yard() / n
		s.kl.err += float64(x.KL) / n
		yardKL += float64(x.YardKL) / n
		if x.TieBand > 0 {
			s.regret += float64(x.Regret/x.TieBand) / n
		}
	}
	s.err.ratio, s.kl.ratio = ratioOf(s.err.err, yard), ratioOf(s.kl.err, yardKL)
	return s
}

func ratioOf(got, yard float64) float64 {
	if got == 0 && yard == 0 {
		return 0
	}
	return got / yard
}

// FigureMean is one figure of a report over its cases.
type FigureMean struct {
	Check  string `json:"check"`
	Probe  string `json:"probe,omitempty"`
	Metric string `json:"metric"`
	// Mean is geometric, but for a regret.
	Mean  Number `json:"mean"`
	Cases int    `json:"cases"`
}

// FigureMeans are the figures that a comparison with the report has.
func FigureMeans(r *Report) []FigureMean {
	ps := pairFigures(r, r)
	out := make([]FigureMean, 0, len(ps.order))
	for _, k := range ps.order {
		f := judgeFigure(k, ps.byKey[k], len(ps.order), nil)
		out = append(out, FigureMean{Check: k.check, Probe: k.probe, Metric: k.metric, Mean: Number(f.before), Cases: f.cases})
	}
	return out
}
