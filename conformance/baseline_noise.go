package conformance

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/plumbline-go/plumbline/golden"
)

// figure is one figure over the cases of two reports.
type figure struct {
	figureKey
	before, after float64 // geometric means over the cases; plain ones of a regret
	mean          float64 // of the changes
	bound         float64 // of mean
	cases         int
	source        string // of bound
}

// worse is true of a NaN too: such a figure is not within its bound.
func (f figure) worse() bool  { return !(f.mean <= f.bound) }
func (f figure) better() bool { return f.mean < -f.bound }

// logarithmic tells figures whose changes are logarithms from differences.
func (k figureKey) logarithmic() bool { return k.metric != figureRegret }

// factor is what the figure may grow by; for a regret 1 plus the tie bands.
func (f figure) factor() float64 {
	if f.logarithmic() {
		return math.Exp(f.bound)
	}
	return 1 + f.bound
}

func (f figure) change() Change {
	limit := f.before + f.bound
	if f.logarithmic() {
		limit = max(f.before, asExact.Value) * math.Exp(f.bound)
	}
	return Change{Check: f.check, Case: "*", Probe: f.probe, Metric: f.metric, Before: Number(f.before), After: Number(f.after),
		Limit: Limit{Number(limit), f.source}, Detail: fmt.Sprintf("mean over %d cases", f.cases)}
}

// comparison is all figures of two reports.
type comparison struct {
	figures []figure
	basis   string
}

// compareFigures compares the figures of r with those of b.
func compareFigures(b, r *Report) *comparison {
	ps := pairFigures(b, r)
	measured := noiseOf(b, r)
	var out comparison
	var keys []figureKey
	cases := 0
	for _, k := range ps.order {
		if enough(len(ps.byKey[k]), fewestPairs) || measured != nil {
			keys = append(keys, k)
			cases = max(cases, len(ps.byKey[k]))
		}
	}
	switch {
	case len(ps.order) == 0:
		out.basis = "no case has figures in both"
	case len(keys) == 0:
		out.basis = fmt.Sprintf("fewer than %g cases, and no second run of the build to measure its noise by", fewestPairs.Value)
	case measured == nil:
		out.basis = fmt.Sprintf("differences of up to %d cases from the baseline, Student's t at %g over %d figures", cases, baselineFalseAlarm.Value, len(keys))
	default:
		out.basis = fmt.Sprintf("%s; and differences of up to %d cases from the baseline, Student's t at %g over %d figures",
			measured.basis, cases, baselineFalseAlarm.Value, len(keys))
	}
	for _, k := range keys {
		out.figures = append(out.figures, judgeFigure(k, ps.byKey[k], len(keys), measured))
	}
	boundByPlaces(out.figures)
	return &out
}

// enough reports whether there are as many as a number set by hand asks for.
func enough(n int, fewest golden.Budget) bool { return float64(n) >= fewest.Value }

// quantile is Student's t at the false alarm rate of one figure among so many.
func quantile(figures int, freedom float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: freedom}.Quantile(1 - baselineFalseAlarm.Value/float64(figures))
}

// judgeFigure bounds the mean change of one figure. The largest of the bounds counts.
func judgeFigure(k figureKey, ps map[string]pair, figures int, measured *noise) figure {
	f := figure{figureKey: k, cases: len(ps)}
	n := float64(len(ps))
	var changes []float64
	floor := 0.0
	for _, name := range sortedNames(ps) { // sums don't depend on a map's order
		p := ps[name]
		changes = append(changes, p.change)
		floor += p.floor / n
		if k.logarithmic() {
			f.before += math.Log(max(p.before, asExact.Value)) / n
			f.after += math.Log(max(p.after, asExact.Value)) / n
		} else {
			f.before += p.before / n
			f.after += p.after / n
		}
	}
	if k.logarithmic() {
		f.before, f.after = math.Exp(f.before), math.Exp(f.after)
	}
	f.mean = stat.Mean(changes, nil)
	f.bound, f.source = floor, "the baseline, and "+crossCPU.Source
	if enough(len(ps), fewestPairs) {
		if x := quantile(figures, n-1) * stat.StdDev(changes, nil) / math.Sqrt(n); x > f.bound {
			f.bound, f.source = x, fmt.Sprintf("the baseline, and the spread of the change over %d cases", len(ps))
		}
	}
	if measured != nil {
		if x := measured.bound(k, figures, len(ps)); x > f.bound {
			f.bound, f.source = x, "the baseline, and what two runs of one build differ by"
		}
	}
	return f
}

func sortedNames(ps map[string]pair) []string {
	out := make([]string, 0, len(ps))
	for name := range ps {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// noise is what two runs of one build differ by, per figure and over all places of a
// metric.
type noise struct {
	basis  string
	own    map[figureKey]float64 // root mean square of the changes
	sum    map[string]float64    // of the squared changes of a metric
	counts map[string]int
}

// noiseOf is the measured noise of two reports, the larger of them at each figure; nil
// where neither measured any.
func noiseOf(reports ...*Report) *noise {
	var out *noise
	for _, r := range reports {
		if r.Repeat == nil {
			continue
		}
		if out == nil {
			out = &noise{own: map[figureKey]float64{}, sum: map[string]float64{}, counts: map[string]int{}}
		}
		out.basis = "two runs of one build, " + r.Repeat.says()
		for _, f := range r.Repeat.Noise {
			k := figureKey{f.Check, f.Metric, f.Probe}
			out.own[k] = max(out.own[k], float64(f.RMS))
			out.sum[k.metric] += float64(f.RMS*f.RMS) * float64(f.Cases)
			out.counts[k.metric] += f.Cases
		}
	}
	return out
}

// bound is what the mean change over so many cases may be by noise alone. Two cases of
// one figure say little of its noise; all places of a metric together say more.
func (n *noise) bound(k figureKey, figures, cases int) float64 {
	count := n.counts[k.metric]
	if count == 0 {
		return 0
	}
	rms := max(n.own[k], math.Sqrt(n.sum[k.metric]/float64(count)))
	if rms == 0 {
		return 0
	}
	return quantile(figures, float64(count)) * rms / math.Sqrt(float64(cases))
}
