package conformance

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline-go/plumbline/engine"
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

func evaluate(ctx context.Context, cfg Config, reg *Registry) (*Report, error) {
	rep := &Report{
		SchemaVersion: SchemaVersion, Conclusion: NothingJudged, Reproduce: cfg.Reproduce,
		Power: []string{}, Sources: []engine.Probe{}, Checks: []Result{}, Cases: map[string]CaseVerdict{},
		Tool: Tool(), About: []CheckInfo{},
	}
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
	rep.Skips = cfg.Skip
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
				rep.candidateUnreadable(&cfg, err)
				return rep, nil
			}
			return nil, fmt.Errorf("conformance: candidate: %w", err)
		}
		rep.Candidate = declared
		if rep.Features, err = cfg.claims(declared); err != nil {
			if candidatesFault(err) {
				rep.candidateUnreadable(&cfg, err)
				return rep, nil
			}
			return nil, err
		}
		if g := cfg.Golden; g != nil && g.Engine() == declared.Name {
			return nil, fmt.Errorf("conformance: golden %s: it was made by the engine under test, which calls itself %q as well: "+
				"an engine can't be held to itself (two builds of it are compared by exact mode)", g.Name(), declared.Name)
		}
	}
	if g := cfg.Golden; g != nil && g.Engine() == rep.Reference.Name && !g.ShowsChangeOnly(rep.Reference.Name) {
		return nil, fmt.Errorf("conformance: golden %s: it was made by %q, which is the reference itself: "+
			"it shows nothing about the reference", g.Name(), g.Engine())
	}
	cases, err := casesOf(ctx, cfg)
	if err != nil {
		var bad *engine.MalformedError
		if errors.As(err, &bad) {
			rep.candidateUnreadable(&cfg, err)
			return rep, nil
		}
		return nil, err
	}
	if err := cfg.checkSkips(reg, cases); err != nil {
		return nil, err
	}
	evs, err := gatherAll(ctx, &cfg, checks, declared, cases)
	if err != nil {
		return nil, err
	}
	run := runEvidence(&cfg, evs)
	if run.Attention, err = attentionEvidence(ctx, &cfg, checks); err != nil {
		return nil, err
	}
	if run.Teacher, err = teacherEvidence(ctx, &cfg, checks); err != nil {
		return nil, err
	}
	if run.Routes, err = routeEvidence(ctx, &cfg, checks); err != nil {
		return nil, err
	}
	if run.Trace, err = traceEvidence(ctx, &cfg, checks); err != nil {
		return nil, err
	}
	rep.DepthBounds = depthBoundsOf(evs)
	rep.RouteMargins = routeMargins(run)
	if g := cfg.Golden; g != nil {
		rep.Golden = &GoldenInfo{Name: g.Name(), Engine: g.Engine(), Cases: len(evs)}
		for _, ev := range evs {
			if !g.Has(ev.Case.Name) {
				rep.Golden.Cases--
			}
		}
	}
	for _, c := range checks {
		rep.runCheck(c, run, cfg)
	}
	if err := rep.localise(ctx, evs, cfg.budgets()); err != nil {
		return nil, err
	}
	rep.Power = append(rep.Power, rep.goldenPower(&cfg)...)
	rep.Notes = append(rep.Notes, cfg.budgets().expired(cfg.now())...)
	if cfg.Repeat != nil {
		if err := rep.repeat(ctx, cfg, reg, len(cases)); err != nil {
			return nil, err
		}
	}
	return rep, rep.settle(checks, cfg.settling())
}

// runEvidence adds what concerns the run as a whole.
func runEvidence(cfg *Config, evs []*Evidence) *RunEvidence {
	run := &RunEvidence{Cases: evs, Budgets: cfg.budgets()}
	if t := cfg.Teacher; t != nil && t.Golden != nil && t.Checkpoint != nil {
		run.HasGolden = true
		run.GoldenProblems = t.Golden.Verify(t.Checkpoint, t.Plan)
	}
	if r := cfg.Routes; r != nil {
		run.GoldenProblems = append(run.GoldenProblems, r.verify(&run.HasGolden)...)
	}
	if cfg.Golden == nil || cfg.GoldenInputs.Checkpoint == nil {
		return run
	}
	run.HasGolden = true
	run.GoldenProblems = append(run.GoldenProblems, cfg.Golden.Verify(cfg.GoldenInputs)...)
	for _, ev := range evs {
		if !cfg.Golden.Has(ev.Case.Name) {
			run.WithoutGolden = append(run.WithoutGolden, ev.Case.Name)
		}
	}
	return run
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

// gatherAll collects the evidence of all cases, on as many cores as there are:
// a case is independent of the others.
func gatherAll(ctx context.Context, cfg *Config, checks []*Check, declared engine.Info, cases []engine.Case) ([]*Evidence, error) {
	g := &gatherer{cfg: cfg, budgets: cfg.budgets(), declared: declared,
		shadow: sync.OnceValues(cfg.Reference.Float64), single: sync.OnceValues(cfg.Reference.Float32)}
	for _, c := range checks {
		if c.judges(SideReference) {
			g.refNeeds |= c.Needs &^ ofTheRun
		}
		if c.judges(SideCandidate) || c.judges(SideSuite) {
			g.needs |= c.Needs &^ ofTheRun
		}
	}
	table, err := cfg.Reference.Weights().Tensor(embeddingTable)
	if err != nil {
		return nil, fmt.Errorf("conformance: %w", err)
	}
	for _, x := range table.Data {
		g.tableMax = max(g.tableMax, math.Abs(float64(x)))
	}
	refCases := cfg.ReferenceCases
	switch {
	case g.refNeeds == 0:
		refCases = 0
	case refCases < 0:
		refCases = len(cases)
	case refCases == 0:
		refCases = 1
	}
	judgeRef := powerful(cases, refCases)
	evs := make([]*Evidence, len(cases))
	var mu sync.Mutex
	done := 0
	parent := ctx
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, i := range longestFirst(cases) {
		c := cases[i]
		group.Go(func() error {
			ev, err := g.gather(ctx, c, judgeRef[i])
			if err != nil {
				return err
			}
			evs[i] = ev
			mu.Lock()
			defer mu.Unlock()
			done++
			if cfg.Progress != nil {
				total := len(cases)
				if cfg.Repeat != nil {
					total *= 2
				}
				cfg.Progress(done, total, c.Name)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if err := g.prefixes(parent, evs); err != nil {
		return nil, err
	}
	budget := 0
	for _, ev := range evs {
		budget = max(budget, len(ev.OutputIDs))
	}
	if cfg.Cases != nil {
		budget = g.decodeSteps() // it was asked for
	}
	for _, ev := range evs {
		ev.decodeBudget = g.within(ev, budget)
	}
	if g.refNeeds&NeedBatches != 0 {
		return evs, g.batches(parent, evs)
	}
	return evs, nil
}

// longestFirst is the order in which the cases are run: the last one to start
// should not be the longest.
func longestFirst(cases []engine.Case) []int {
	order := make([]int, len(cases))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return len(cases[b].TokenIDs) - len(cases[a].TokenIDs) })
	return order
}

// powerful picks the n cases on which the reference is judged: those first
// that no check of it has to skip.
func powerful(cases []engine.Case, n int) []bool {
	out := make([]bool, len(cases))
	pick := func(want bool) {
		for i, c := range cases {
			ids := c.TokenIDs
			strong := len(ids) >= minTokensForBatch && ids[0] != ids[len(ids)-1]
			if n > 0 && !out[i] && strong == want {
				out[i] = true
				n--
			}
		}
	}
	pick(true)
	pick(false)
	return out
}

// runCheck judges one check on every case and side, and over all cases.
func (r *Report) runCheck(c *Check, run *RunEvidence, cfg Config) {
	add := func(name string, side Side, o Outcome) {
		res := Result{ID: c.ID, Case: name, Side: side, Level: c.Level,
			Status: o.Status, Kind: o.Kind, Reason: o.Reason, Findings: o.Findings}
		if o.Status == Fail || o.Status == Error {
			res.Rule = c.Rule
		}
		r.Checks = append(r.Checks, res)
	}
	for _, side := range c.Sides {
		if side == SideSuite || c.Judge == nil || (side == SideCandidate && cfg.Candidate == nil) {
			continue
		}
		for _, ev := range run.Cases {
			if o := cfg.skipOf(c.ID, ev.Case.Name); o != nil && side == SideCandidate {
				add(ev.Case.Name, side, *o)
				continue
			}
			switch {
			case side == SideReference && !ev.referenceJudged:
				continue
			case side == SideCandidate && ev.CandidateErr != nil && r.unanswered(ev.Case.Name):
				add(ev.Case.Name, side, skip("no readable answer to this case"))
			case side == SideCandidate && ev.CandidateErr != nil: // said once, by the first check
				add(ev.Case.Name, side, answerError(ev.CandidateErr))
			default:
				add(ev.Case.Name, side, c.Judge(ev, side))
			}
		}
	}
	side := SideReference
	if c.judges(SideCandidate) {
		side = SideCandidate
	}
	if c.judges(SideSuite) {
		side = SideSuite
	}
	if c.Across == nil || (side == SideCandidate && cfg.Candidate == nil) {
		return
	}
	if o := cfg.skipOf(c.ID, "*"); o != nil && side == SideCandidate {
		add("*", side, *o)
		return
	}
	if o := c.Across(run); o != nil {
		add("*", side, *o)
	}
}

// unanswered reports whether the case's missing answer was reported already.
func (r *Report) unanswered(name string) bool {
	return slices.ContainsFunc(r.Checks, func(c Result) bool {
		return c.Case == name && c.Side == SideCandidate && (c.Status == Error || c.Status == Unsupported)
	})
}

// candidateUnreadable is the verdict on a candidate whose description can't be
// read: its fault, and nothing else can be said.
func (r *Report) candidateUnreadable(cfg *Config, err error) {
	o := answerError(err)
	r.Checks = append(r.Checks, Result{ID: "ResidualShape", Case: "*", Side: SideCandidate, Level: Core,
		Status: Error, Kind: o.Kind, Reason: o.Reason, Findings: o.Findings})
	kind := o.Kind
	r.Kind = &kind
	r.waive(cfg.Waivers, cfg.now())
	r.conclude()
}
