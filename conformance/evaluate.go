package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden"
)

// embeddingTable is the Hugging Face name of the embedding table.
const embeddingTable = "model.embed_tokens.weight"

// Evaluate runs every check that applies and concludes. The error is about the
// run itself: no reference, a reference that can't compute, a cancelled
// context. Whatever the candidate does wrong is in the report.
func Evaluate(ctx context.Context, cfg Config) (*Report, error) {
	reg := cfg.Registry
	if reg == nil {
		reg = Builtin()
	}
	return evaluate(ctx, cfg, reg)
}

// judges refuses a reference whose own rounding is of the size of what it is to
// judge: every bound is measured between float32 and float64.
func judges(ref engine.Info) error {
	if ref.DType == "float32" || ref.DType == "float64" {
		return nil
	}
	return fmt.Errorf("conformance: Config.Reference: got dtype %q, want float32 or float64: bounds are measured between the two", ref.DType)
}

func newReport(reproduce string) *Report {
	return &Report{
		SchemaVersion: SchemaVersion, Conclusion: NothingJudged, Reproduce: reproduce,
		Power: []string{}, Sources: []engine.Probe{}, Checks: []Result{}, Cases: map[string]CaseVerdict{},
		Tool: Tool(), About: []CheckInfo{},
	}
}

func evaluate(ctx context.Context, cfg Config, reg *Registry) (*Report, error) {
	rep := newReport(cfg.Reproduce)
	rep.PartialAllowed = cfg.AllowPartial
	if cfg.Reference == nil {
		if cfg.Candidate == nil {
			rep.conclude() // an empty Config judges nothing
			return rep, nil
		}
		return nil, errors.New("conformance: Config.Reference is nil: got a candidate and nothing to judge it against")
	}
	checks, err := selected(reg, cfg.Only)
	if err != nil {
		return nil, err
	}
	if err := checkWaivers(cfg.Waivers, reg, cfg.now()); err != nil {
		return nil, err
	}
	if b := cfg.Baseline; b != nil {
		if err := refusesBaseline(b, cfg.BaselineName, cfg.AllowPartial); err != nil {
			return nil, err
		}
	}
	rep.Skips, rep.Only = slices.Concat(cfg.Skip, leftOut(reg, checks)), cfg.Only
	for _, c := range checks {
		rep.About = append(rep.About, infoOfCheck(c))
	}
	rep.Reference = cfg.Reference.Describe()
	if err := judges(rep.Reference); err != nil {
		return nil, err
	}
	var declared engine.Info
	if cfg.Candidate != nil {
		if declared, err = cfg.Candidate.Info(ctx); err != nil {
			if candidatesFault(err) {
				return rep.candidateUnreadable(&cfg, checks, err)
			}
			return nil, fmt.Errorf("conformance: candidate: %w", err)
		}
		rep.Candidate = declared
		if rep.Features, err = cfg.claims(declared); err != nil {
			if candidatesFault(err) {
				return rep.candidateUnreadable(&cfg, checks, err)
			}
			return nil, err
		}
		if g := cfg.Golden; g != nil && g.Engine() == declared.Name {
			return nil, fmt.Errorf("conformance: goldens %s: made by the engine under test, which calls itself %q as well: "+
				"an engine can't be held to itself (two builds of it are compared by exact mode)", g.Name(), declared.Name)
		}
	}
	if g := cfg.Golden; g != nil && g.Engine() == rep.Reference.Name && !g.ShowsChangeOnly(rep.Reference.Name) {
		return nil, fmt.Errorf("conformance: goldens %s: made by %q, which is the reference itself: "+
			"it shows nothing about the reference", g.Name(), g.Engine())
	}
	cases, err := casesOf(ctx, cfg)
	if err != nil {
		var bad *engine.MalformedError
		if errors.As(err, &bad) {
			return rep.candidateUnreadable(&cfg, checks, err)
		}
		return nil, err
	}
	if err := cfg.checkSkips(reg, cases); err != nil {
		return nil, err
	}
	if cfg.Shard != nil && cfg.Repeat != nil {
		return nil, errors.New("conformance: Config.Repeat: got a second run in a shard, want it in a run of all cases: noise is measured over them together")
	}
	plan, err := planOf(&cfg, checks, rep, cases)
	if err != nil {
		return nil, err
	}
	clock := newStopwatch()
	evs, err := gatherAll(ctx, &cfg, checks, declared, plan, clock)
	if err != nil {
		return nil, err
	}
	run, err := runEvidence(ctx, &cfg, checks, plan, evs, clock)
	if err != nil {
		return nil, err
	}
	rep.RouteMargins = routeMargins(run)
	rep.Golden = goldenInfo(cfg.Golden, evs)
	for _, c := range checks {
		rep.runCheck(c, run, judging{
			candidate: cfg.Candidate != nil,
			judge:     func(ev *Evidence, side Side) (Outcome, bool) { return rep.outcome(&cfg, c, ev, side) },
			across:    unlessSkipped(cfg.Skip, c, plan.across(c)),
		})
	}
	if err := rep.locateFaults(ctx, evs, cfg.budgets(), said{golden: cfg.ownRecording(rep.Reference.Name), power: cfg.Power, today: cfg.now()}); err != nil {
		return nil, err
	}
	if plan.shard != nil {
		if err := rep.keepEvidence(ctx, &cfg, plan, evs); err != nil { // before anything else is made of it
			return nil, err
		}
	}
	if cfg.Repeat != nil {
		if err := rep.repeat(ctx, cfg, reg, len(cases)); err != nil {
			return nil, err
		}
	}
	rep.Times = clock.times()
	return rep, rep.settle(checks, cfg.settling())
}

// said is what a report says beside what was found.
type said struct {
	// golden is the name of a golden that is the reference's own recording, else empty.
	golden string
	// power are further lines of the report's power.
	power []string
	today time.Time
}

// locateFaults derives everything but the outcomes of the checks from what was gathered:
// the same way in a run, and where shards of one are merged.
func (r *Report) locateFaults(ctx context.Context, evs []*Evidence, b Budgets, s said) error {
	r.DepthBounds = depthBoundsOf(evs)
	if err := r.localise(ctx, evs, b); err != nil {
		return err
	}
	r.Power = append(r.Power, r.goldenPower(s.golden)...)
	r.Power = append(r.Power, s.power...)
	r.Notes = append(r.Notes, b.expired(s.today)...)
	return nil
}

func goldenInfo(g *golden.Set, evs []*Evidence) *GoldenInfo {
	if g == nil {
		return nil
	}
	out := &GoldenInfo{Name: g.Name(), Engine: g.Engine(), Cases: len(evs)}
	for _, ev := range evs {
		if !g.Has(ev.Case.Name) {
			out.Cases--
		}
	}
	return out
}

// runEvidence adds what concerns the run as a whole, as far as it is this run's part.
func runEvidence(ctx context.Context, cfg *Config, checks []*Check, plan *runPlan, evs []*Evidence, clock *stopwatch) (*RunEvidence, error) {
	run := &RunEvidence{Cases: evs, Budgets: cfg.budgets()}
	var err error
	gather := map[runPart]func() error{
		partAttention:  func() error { run.Attention, err = attentionEvidence(ctx, cfg, checks); return err },
		partTeacher:    func() error { run.Teacher, err = teacherEvidence(ctx, cfg, checks); return err },
		partRoutes:     func() error { run.Routes, err = routeEvidence(ctx, cfg, checks); return err },
		partTrace:      func() error { run.Trace, err = traceEvidence(ctx, cfg, checks); return err },
		partProvenance: func() error { run.provenance(cfg, plan.cases); return nil },
	}
	for _, part := range runParts {
		if !plan.does(part) {
			continue
		}
		stop := clock.ofPart(part)
		if err := gather[part](); err != nil {
			return nil, err
		}
		stop()
	}
	return run, nil
}

// provenance holds the recordings of the run to their manifests.
func (run *RunEvidence) provenance(cfg *Config, cases []engine.Case) {
	if t := cfg.Teacher; t != nil && t.Golden != nil && t.Checkpoint != nil {
		run.HasGolden = true
		run.GoldenProblems = t.Golden.Verify(t.Checkpoint, t.Plan)
	}
	if r := cfg.Routes; r != nil {
		run.GoldenProblems = append(run.GoldenProblems, r.verify(&run.HasGolden)...)
	}
	if cfg.Golden == nil || cfg.GoldenInputs.Checkpoint == nil {
		return
	}
	run.HasGolden = true
	run.GoldenProblems = append(run.GoldenProblems, cfg.Golden.Verify(cfg.GoldenInputs)...)
	for _, c := range cases {
		if !cfg.Golden.Has(c.Name) {
			run.WithoutGolden = append(run.WithoutGolden, c.Name)
		}
	}
}

// selected returns the checks to run, in registry order.
func selected(reg *Registry, only []string) ([]*Check, error) {
	if len(only) == 0 {
		return reg.Checks(), nil
	}
	var out []*Check
	for _, id := range only {
		if reg.Lookup(id) == nil {
			return nil, fmt.Errorf("conformance: no check named %q: want %s", id, checkNamed(reg, id))
		}
	}
	for _, c := range reg.Checks() {
		if slices.Contains(only, c.ID) {
			out = append(out, c)
		}
	}
	return out, nil
}

func casesOf(ctx context.Context, cfg Config) ([]engine.Case, error) {
	if cfg.Cases != nil {
		return cfg.Cases, nil
	}
	if l, ok := cfg.Candidate.(engine.CaseLister); ok {
		return l.Cases(ctx)
	}
	return nil, nil
}

// setDecodeBudgets says how many tokens an output has that nothing ends: asked, or
// where the candidate chose that itself (0), as many as the longest has.
func setDecodeBudgets(evs []*Evidence, asked int) {
	budget := asked
	if budget == 0 {
		for _, ev := range evs {
			budget = max(budget, len(ev.OutputIDs))
		}
	}
	for _, ev := range evs {
		ev.decodeBudget = ev.within(budget)
	}
}

// candidateUnreadable is the verdict on a candidate whose description can't be
// read: its fault, and nothing else can be said.
func (r *Report) candidateUnreadable(cfg *Config, checks []*Check, err error) (*Report, error) {
	o := answerError(err)
	r.Checks = append(r.Checks, Result{ID: "ResidualShape", Case: "*", Side: SideCandidate, Level: Core,
		Status: Error, Kind: o.Kind, Reason: o.Reason, Findings: o.Findings})
	kind := o.Kind
	r.Kind = &kind
	if cfg.Shard != nil {
		plan, err := planOf(cfg, checks, r, nil)
		if err != nil {
			return nil, err
		}
		if err := r.keepEvidence(context.Background(), cfg, plan, nil); err != nil {
			return nil, err
		}
	}
	r.waive(cfg.Waivers, cfg.now())
	r.conclude()
	return r, nil
}
