package conformance

import (
	"context"
	"fmt"
	"math"
)

// RepeatInfo is what a second run of the same build differed by.
type RepeatInfo struct {
	// Cases is how many cases have figures in both runs, Figures how many figures.
	Cases   int `json:"cases"`
	Figures int `json:"figures"`
	// Largest is the largest factor between the two in one figure of one case: 1 for
	// an engine that gives the same figures again.
	Largest Number `json:"largest_factor"`
	// Noise has one entry per figure.
	Noise []FigureNoise `json:"noise"`
}

// FigureNoise is the noise of one figure.
type FigureNoise struct {
	Check  string `json:"check"`
	Probe  string `json:"probe,omitempty"`
	Metric string `json:"metric"`
	// RMS is the root mean square, over the cases, of the logarithm of the second
	// run's figure over the first's; of their difference for a regret.
	RMS   Number `json:"rms"`
	Cases int    `json:"cases"`
}

func (r *RepeatInfo) says() string {
	if r.Largest == 1 {
		return fmt.Sprintf("%d figures of %d cases, all the same in both", r.Figures, r.Cases)
	}
	return fmt.Sprintf("%d figures of %d cases, up to a factor of %.4g apart", r.Figures, r.Cases, float64(r.Largest))
}

func aboutRepeat() CheckInfo {
	return CheckInfo{ID: repeatID, Level: Core, Sides: []Side{SideCandidate}, Controls: []string{}, Rule: repeatRule,
		Catches: []string{"a verdict that depends on the day", "a race, uninitialised memory"}}
}

const repeatRule = "a second run of the same build comes to the same verdicts"

// repeat runs the build once more, measures what its figures differ by, and fails where
// the second run failed and the first didn't. The reference is not judged again.
func (r *Report) repeat(ctx context.Context, cfg Config, reg *Registry, cases int) error {
	second := cfg
	second.Candidate, second.Repeat = cfg.Repeat, nil
	second.Baseline, second.Waivers, second.Features = nil, nil, nil
	second.Golden, second.Attention, second.Teacher, second.Routes, second.Trace = nil, nil, nil, nil, nil
	var only []string
	for _, c := range r.About {
		if check := reg.Lookup(c.ID); check != nil && check.judges(SideCandidate) {
			only = append(only, c.ID)
		}
	}
	if second.Only = only; len(only) == 0 {
		return nil
	}
	second.ReferenceCases = 0
	if cfg.Progress != nil {
		second.Progress = func(done, _ int, what string) { cfg.Progress(cases+done, 2*cases, what) }
	}
	again, err := evaluate(ctx, second, reg)
	if err != nil {
		return fmt.Errorf("conformance: the second run: %w", err)
	}
	if err := sameSubject(r, again, "of the second run"); err != nil {
		return err
	}
	r.compareRepeat(again)
	return nil
}

// compareRepeat fills Repeat from a second run's report.
func (r *Report) compareRepeat(again *Report) {
	ps := pairFigures(r, again)
	info := &RepeatInfo{Figures: len(ps.order), Largest: 1, Noise: []FigureNoise{}}
	names := map[string]bool{}
	for _, k := range ps.order {
		n := FigureNoise{Check: k.check, Probe: k.probe, Metric: k.metric, Cases: len(ps.byKey[k])}
		sum := 0.0
		for _, name := range sortedNames(ps.byKey[k]) {
			p := ps.byKey[k][name]
			names[name] = true
			sum += p.change * p.change
			if k.logarithmic() {
				info.Largest = max(info.Largest, Number(math.Exp(math.Abs(p.change))))
			} else {
				info.Largest = max(info.Largest, Number(1+math.Abs(p.change)))
			}
		}
		n.RMS = Number(math.Sqrt(sum / float64(n.Cases)))
		info.Noise = append(info.Noise, n)
	}
	info.Cases = len(names)
	r.Repeat = info
	r.Power = append(r.Power, "two runs of this build: "+info.says())
	out := Result{ID: repeatID, Case: "*", Side: SideCandidate, Level: Core, Status: Pass}
	asked := map[string]bool{}
	for _, c := range again.About {
		asked[c.ID] = true
	}
	after := verdictsOf(again)
	for _, c := range r.Checks {
		p := place{c.ID, c.Case}
		if c.Side == SideCandidate && asked[c.ID] && c.Level != Provisional && c.Status == Pass && after[p] != passed {
			out.Status, out.Rule = Fail, repeatRule
			out.Findings = append(out.Findings, Finding{Metric: "verdicts of " + c.ID + " on " + c.Case, Got: 0, Limit: Limit{1, "the first run"}, At: Nowhere,
				Detail: fmt.Sprintf("pass in the first run, %s in the second", after[p])})
		}
	}
	if info.Figures == 0 && out.Status == Pass {
		out = Result{ID: repeatID, Case: "*", Side: SideCandidate, Level: Core, Status: Skip, Reason: "no case has figures in both runs"}
	}
	r.About = append(r.About, aboutRepeat())
	r.Checks = append(r.Checks, out)
}
