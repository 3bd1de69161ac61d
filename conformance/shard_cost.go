package conformance

import (
	"math"

	"github.com/plumbline-go/plumbline/engine"
)

// planCosts is what the work of a run costs, in any one unit.
type planCosts struct {
	cases []float64
	// batches is what running cases as one batch adds to them.
	batches float64
	parts   map[runPart]float64
}

// partBatches and partPrefixes are the names of further work in [Report.Costs]: it is
// done in the shard that has its cases.
const (
	partBatches  runPart = "*batches"
	partPrefixes runPart = "*prefixes"
)

// What work costs where nothing was recorded, in tokens of a prompt. The figures are
// those of the embedded model; with another the proportions are near, and a shard more or
// less loaded is all that hangs on them.
const (
	caseOverhead  = 40  // an output is decoded whatever the prompt
	closelyFactor = 3.0 // the reference is run again in other ways
)

var partTokens = map[runPart]float64{partAttention: 15, partTeacher: 15, partRoutes: 150, partTrace: 10, partProvenance: 2}

// costsOf takes recorded costs, and estimates what they lack from those that there are.
func costsOf(cfg *Config, checks []*Check, p *runPlan) planCosts {
	out := planCosts{cases: make([]float64, len(p.cases)), parts: map[runPart]float64{}}
	var recorded, guessed float64
	for i, c := range p.cases {
		out.cases[i] = guess(c, p.closely[i])
		if x := cfg.Costs[c.Name]; usableCost(x) {
			recorded, guessed = recorded+x, guessed+out.cases[i]
		}
	}
	unit := 1.0 // seconds per guessed token
	if recorded > 0 {
		unit = recorded / guessed
	}
	cost := func(name string, guess float64) float64 {
		if x := cfg.Costs[name]; usableCost(x) {
			return x
		}
		return unit * guess
	}
	for i, c := range p.cases {
		out.cases[i] = cost(c.Name, out.cases[i])
	}
	if len(p.together) > 0 {
		batch := 0.0
		for _, i := range p.together {
			batch += guess(p.cases[i], false)
		}
		out.batches = cost(string(partBatches), batch)
	}
	for _, part := range runParts {
		if part.asked(cfg, checks) {
			out.parts[part] = cost(string(part), partTokens[part])
		}
	}
	return out
}

func usableCost(x float64) bool { return x > 0 && !math.IsInf(x, 0) }

func guess(c engine.Case, closely bool) float64 {
	x := float64(len(c.TokenIDs) + caseOverhead)
	if closely {
		x *= closelyFactor
	}
	return x
}

// asked reports whether the run has the part and a check looks at it.
func (p runPart) asked(cfg *Config, checks []*Check) bool {
	has := map[runPart]bool{
		partAttention: cfg.Attention != nil, partTeacher: cfg.Teacher != nil, partRoutes: cfg.Routes != nil, partTrace: cfg.Trace != nil,
		partProvenance: cfg.Golden != nil && cfg.GoldenInputs.Checkpoint != nil,
	}
	for _, c := range checks {
		if workOf(c) == p {
			return has[p]
		}
	}
	return false
}

// Costs are the seconds that the report's run took, by case and by part of the run that
// is no case's, for [Config.Costs]. It is nil where the report has no times.
func (r *Report) Costs() map[string]float64 {
	if r.Times == nil {
		return nil
	}
	out := map[string]float64{}
	for name, x := range r.Times.Cases {
		out[name] = float64(x)
	}
	for name, x := range r.Times.Run {
		out[name] = float64(x)
	}
	return out
}
