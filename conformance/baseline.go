package conformance

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
)

// baselineID and repeatID are the IDs of what a comparison with an earlier report, and
// with a second run of the same build, says. They are no checks of the registry: they
// look at the results of the others, and can't be waived.
const (
	baselineID = "Baseline"
	repeatID   = "Repeat"
)

const baselineRule = "no figure is worse than the baseline's beyond the noise, and nothing that the baseline judged or measured is unjudged, waived or gone"

func aboutBaseline() CheckInfo {
	return CheckInfo{ID: baselineID, Rule: baselineRule, Level: Core, Sides: []Side{SideCandidate}, Controls: []string{},
		Catches: []string{"an engine that gets worse step by step, each within the bounds", "a case or a check that is quietly lost"}}
}

// refusesBaseline says why a report can't be what another one is held to.
func refusesBaseline(b *Report, name string, allowPartial bool) error {
	bad := func(what string, got, want any) error {
		return fmt.Errorf("conformance: baseline %s: %s: got %v, want %v", name, what, got, want)
	}
	switch {
	case b.SchemaVersion != SchemaVersion:
		return bad("schema_version", b.SchemaVersion, SchemaVersion)
	case b.Shard != nil:
		return bad("shard", fmt.Sprintf("%d of %d", b.Shard.Index, b.Shard.Total), "a report of all cases (plumbline merge joins shards)")
	case b.ReferenceFailed:
		return bad("reference_failed", true, "a run whose reference is sound")
	case b.Conclusion == Partial && !allowPartial:
		return bad("conclusion", fmt.Sprintf("%q", b.Conclusion), `"conforms" ("partial" where partial verdicts are allowed)`)
	case b.Conclusion != Conforms && b.Conclusion != Partial:
		return bad("conclusion", fmt.Sprintf("%q", b.Conclusion), `"conforms"`)
	}
	return nil
}

// UsableAsBaseline is the error that Config.Baseline gives of a report by itself, before
// anything is compared; name is the report's in it. allowPartial is that of Config.
func UsableAsBaseline(r *Report, name string, allowPartial bool) error {
	return refusesBaseline(r, name, allowPartial)
}

// sameSubject says why the figures of two reports don't mean the same.
func sameSubject(b, r *Report, name string) error {
	c, n := b.Candidate, r.Candidate
	for _, f := range [][3]string{
		{"reference.name", b.Reference.Name, r.Reference.Name},
		{"reference.model", b.Reference.Model, r.Reference.Model},
		{"reference.dtype", b.Reference.DType, r.Reference.DType},
		{"candidate.model", c.Model, n.Model}, {"candidate.layers", c.Layers, n.Layers}, {"candidate.logits", c.Logits, n.Logits},
		{"candidate.weights", c.Weights, n.Weights}, {"candidate.activations", c.Activations, n.Activations},
		{"candidate.kv_cache", c.KVCache, n.KVCache}, {"candidate.dtype", c.DType, n.DType},
	} {
		if f[1] != f[2] {
			return fmt.Errorf("conformance: baseline %s: %s: got %q, want %q, as in this run: figures of another model or arithmetic can't be compared", name, f[0], f[1], f[2])
		}
	}
	for _, c := range casesBoth(b, r) {
		if was, is := b.Cases[c].Inputs, r.Cases[c].Inputs; was != is {
			return fmt.Errorf("conformance: baseline %s: case %s: inputs: got %q, want %q: another prompt of the same name", name, c, was, is)
		}
	}
	return nil
}

// HoldToBaseline compares the report with an earlier one of the same candidate's, fills
// Baseline, and adds the results whose ID is "Baseline". It doesn't conclude anew: Evaluate
// does both. The error says why the two can't be compared.
//
// A figure is a ratio of one place over the cases: local and accumulated error per row,
// error of a probe, error, KL and regret of the logits. It is worse when its mean change
// over the cases is beyond all of these:
//   - what its standard error allows, by Student's t at 1 % over all figures
//     together (Bonferroni); needs 3 cases;
//   - what two runs of one build differ by, where that was measured (Config.Repeat), in
//     this run or in the baseline's;
//   - what the reference's own rows move by between two CPU models.
//
// The cases alone can't tell noise that all of them share: a weight that is rounded
// otherwise moves its layer in every case. Its size is taken from the layers, as the
// spread of a place's change around the median, by the same quantile, and adds to the
// above in squares; needs 8 layers.
//
// With fewer cases and no measured noise only verdicts and coverage are compared. Worse is
// also what the baseline judged and this run doesn't, a case that is gone, a figure that
// the run lacks under a verdict that both have, and a waiver that the baseline didn't need. A worsening of few cases among many is left to the bounds.
//
// What tests show, on the seeded checkpoint: at most one alarm in 30 comparisons of 6
// builds whose weights are off by a hundred-thousandth (TestCleanBuildsAreSeldomCalledWorse;
// its flag -builds takes more), and a gain of 3 % on one layer's down projection found
// with all prompts (TestBaselineFindsWhatTheBoundsLetPass). Measured once with the same
// code, and repeated by no test: no alarm in 2,760 comparisons of 24 builds off by a
// thousandth, each held to each other with 3 to 10 prompts, and none in 12 on the trained
// checkpoint with 20; the gain is found from 10 % on with 5 prompts, and on the trained
// checkpoint at 10 %, not at 5 %.
func (r *Report) HoldToBaseline(b *Report, name string) error {
	if err := sameSubject(b, r, name); err != nil {
		return err
	}
	c := compareFigures(b, r)
	worse, better := verdictChanges(b, r)
	worse = append(worse, lostFigures(b, r)...)
	slices.SortFunc(worse, compareChanges)
	info := &BaselineInfo{Name: name, Candidate: strings.TrimSpace(b.Candidate.Name + " " + b.Candidate.Version),
		NoiseBasis: c.basis, Compared: len(c.figures), Regressions: []Change{}, Improvements: []Change{}}
	info.Noise = c.resolving()
	over := Result{ID: baselineID, Case: "*", Side: SideCandidate, Level: Core, Status: Pass}
	if len(c.figures) == 0 {
		over.Status, over.Reason = Skip, "no figure could be compared: "+c.basis
	}
	for _, f := range c.figures {
		switch {
		case f.worse():
			change := f.change()
			info.Regressions = append(info.Regressions, change)
			over.Status = Fail
			over.Findings = append(over.Findings, findingOf(change))
		case f.better():
			info.Improvements = append(info.Improvements, f.change())
		}
	}
	if over.Status == Fail {
		over.Rule = baselineRule
	}
	// The worst first, by how far a figure is beyond its limit.
	slices.SortStableFunc(over.Findings, func(x, y Finding) int {
		a, b := float64(x.Got)/float64(x.Limit.Value), float64(y.Got)/float64(y.Limit.Value)
		switch {
		case a > b:
			return -1
		case a < b:
			return 1
		}
		return 0
	})
	info.Regressions, info.Improvements = append(info.Regressions, worse...), append(info.Improvements, better...)
	r.Baseline = info
	r.About = append(r.About, aboutBaseline())
	r.Checks = append(r.Checks, over)
	r.Checks = append(r.Checks, resultsOf(worse)...)
	if n := len(r.Cases) - len(casesBoth(b, r)); n > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d of %d cases are not in the baseline and were compared with nothing", n, len(r.Cases)))
	}
	if len(c.figures) > 0 {
		r.Power = append(r.Power, againstBaseline+c.resolution())
	} else {
		r.Power = append(r.Power, againstBaseline+"only verdicts and coverage were compared: "+c.basis)
	}
	return nil
}

// resultsOf are the verdicts that got worse, one result per case.
func resultsOf(worse []Change) []Result {
	var out []Result
	for _, c := range worse {
		i := slices.IndexFunc(out, func(r Result) bool { return r.Case == c.Case })
		if i < 0 {
			i = len(out)
			out = append(out, Result{ID: baselineID, Case: c.Case, Side: SideCandidate, Level: Core, Status: Fail, Rule: baselineRule})
		}
		f := findingOf(c)
		f.Exact = true
		out[i].Findings = append(out[i].Findings, f)
	}
	return out
}

func findingOf(c Change) Finding {
	return Finding{Probe: probeOf(c), Metric: c.Check + ": " + c.Metric, Got: c.After, Limit: c.Limit, At: Nowhere,
		Detail: strings.TrimPrefix(fmt.Sprintf("%s; %.4g in the baseline", c.Detail, float64(c.Before)), "; ")}
}

func casesBoth(b, r *Report) []string {
	var out []string
	for c := range b.Cases {
		if _, ok := r.Cases[c]; ok {
			out = append(out, c)
		}
	}
	slices.Sort(out)
	return out
}

// againstBaseline begins what a comparison adds to the power of a verdict.
const againstBaseline = "against the baseline: "

// factors are what the figures may grow by, in order.
func (c *comparison) factors() []float64 {
	var all []float64
	for _, f := range c.figures {
		all = append(all, f.factor())
	}
	slices.Sort(all)
	return all
}

// resolving is the factor that a figure may grow by unremarked, in the median.
func (c *comparison) resolving() Limit {
	all := c.factors()
	if len(all) == 0 {
		return Limit{Number(math.NaN()), c.basis}
	}
	return Limit{Number(all[len(all)/2]), "the factor by which half of the figures may grow unremarked; " + c.basis}
}

// resolution says which worsening would have been seen.
func (c *comparison) resolution() string {
	all := c.factors()
	blunt := len(all) - sort.SearchFloat64s(all, 2+1e-9)
	out := fmt.Sprintf("a worsening of all cases is seen from a factor of %.5g on in half of the %d figures", all[len(all)/2], len(all))
	if blunt > 0 {
		out += fmt.Sprintf(", and in %d of them not below a doubling", blunt)
	}
	return out
}
