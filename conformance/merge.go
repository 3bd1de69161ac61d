package conformance

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ShardReport is one shard's report with the file beside it.
type ShardReport struct {
	// Name is the report's file, for messages.
	Name   string
	Report *Report
	// Evidence is the content of EvidenceFile.
	Evidence []byte
}

// MergeOptions are those of the run's Config that no shard looks at.
type MergeOptions struct {
	// Registry is nil for Builtin.
	Registry *Registry
	// Baseline, BaselineName and AllowPartial are as in Config.
	Baseline     *Report
	BaselineName string
	AllowPartial bool
	// Now is as in Config.
	Now func() time.Time
}

// Merge joins the shards of one run to the report that the whole run would have given:
// the same in every byte but for the times. No engine is asked again. Checks over all
// cases are judged by the same code as in a run: that of this build, whose version the
// shards have to be of.
//
// The error says why the shards can't be joined: one is missing, there twice, of another
// run, or of another version.
func Merge(shards []ShardReport, o MergeOptions) (merged *Report, err error) {
	wires, err := wiresOf(shards)
	if err != nil {
		return nil, err
	}
	// The hash keeps accidents out. Figures that somebody made up, hash included, may be
	// of shapes that no run has.
	defer func() {
		if p := recover(); p != nil {
			merged, err = nil, fmt.Errorf("conformance: merge: %s: it holds what no run writes: %v", EvidenceFile, p)
		}
	}()
	registry := o.Registry
	if registry == nil {
		registry = Builtin()
	}
	if o.Baseline != nil {
		if err := refusesBaseline(o.Baseline, o.BaselineName, o.AllowPartial); err != nil {
			return nil, err
		}
	}
	first := wires[0]
	rep := newReport(first.Reproduce)
	rep.PartialAllowed = o.AllowPartial
	rep.Reference, rep.Candidate, rep.Tool = first.Reference, first.Candidate, first.Tool
	rep.Skips, rep.Only, rep.Features = first.Skips, first.Only, first.Features
	var checks []*Check
	for _, id := range first.Checks {
		c := registry.Lookup(id)
		if c == nil {
			return nil, fmt.Errorf("conformance: merge: %s: check %s: this program doesn't have it", shards[0].Name, id)
		}
		checks = append(checks, c)
		rep.About = append(rep.About, infoOfCheck(c))
	}
	rep.Times = &Times{Cases: map[string]Number{}, Run: map[string]Number{}}
	for _, s := range shards {
		rep.Times.add(s.Report.Times)
	}
	if first.Whole {
		return rep.saidByEach(wires, shards, o.now())
	}
	evs, outcomes := casesOfShards(wires)
	for _, w := range wires {
		if g := w.Golden; g != nil {
			if rep.Golden == nil {
				rep.Golden = &GoldenInfo{Name: g.Name, Engine: g.Engine}
			}
			rep.Golden.Cases += g.Cases
		}
		if err := rep.addRest(w); err != nil {
			return nil, err
		}
	}
	setDecodeBudgets(evs, first.DecodeSteps)
	run := &RunEvidence{Cases: evs, Budgets: first.Budgets}
	for _, c := range checks {
		rep.runCheck(c, run, judging{candidate: first.HasCandidate, judge: judgedElsewhere(c, outcomes), across: unlessSkipped(first.Skips, c, acrossShards(c, wires))})
	}
	today := o.now()
	if err := rep.locateFaults(context.Background(), evs, first.Budgets, said{golden: first.OwnRecording, power: first.Power, today: today}); err != nil {
		return nil, err
	}
	return rep, rep.settle(checks, settling{waivers: first.Waivers, today: today, baseline: o.Baseline, baselineName: o.BaselineName})
}

func (o MergeOptions) now() time.Time {
	if o.Now == nil {
		return time.Now()
	}
	return o.Now()
}

// casesOfShards are the cases in the run's order, and what was said of them.
func casesOfShards(wires []*shardWire) ([]*Evidence, map[string][]outcomeWire) {
	type placed struct {
		index int
		ev    *Evidence
	}
	var all []placed
	outcomes := map[string][]outcomeWire{}
	for _, w := range wires {
		for _, c := range w.Cases {
			all = append(all, placed{c.Index, c.evidence(w)})
			outcomes[c.Case.Name] = c.Outcomes
		}
	}
	slices.SortFunc(all, func(a, b placed) int { return cmp.Compare(a.index, b.index) })
	evs := make([]*Evidence, len(all))
	for i, p := range all {
		evs[i] = p.ev
	}
	return evs, outcomes
}

// judgedElsewhere gives what a shard said of a case. How long an output may be where
// the candidate chose that itself is only known with all cases, so that this is judged
// here.
func judgedElsewhere(c *Check, outcomes map[string][]outcomeWire) func(*Evidence, Side) (Outcome, bool) {
	return func(ev *Evidence, side Side) (Outcome, bool) {
		i := slices.IndexFunc(outcomes[ev.Case.Name], func(o outcomeWire) bool { return o.Check == c.ID && o.Side == side })
		if i < 0 {
			return Outcome{}, false
		}
		if c.ID == "StopRule" && side == SideCandidate && ev.CandidateErr == nil && !strings.HasPrefix(outcomes[ev.Case.Name][i].Reason, skipped) {
			return c.Judge(ev, side), true
		}
		return outcomes[ev.Case.Name][i].outcome(), true
	}
}

// acrossShards judges over all cases, or gives what the shard said whose part it was.
func acrossShards(c *Check, wires []*shardWire) func(*RunEvidence) *Outcome {
	part := workOf(c)
	if part == "" {
		return c.Across
	}
	return func(*RunEvidence) *Outcome {
		for _, w := range wires {
			if !slices.Contains(w.Shard.Parts, string(part)) {
				continue
			}
			for _, o := range w.Parts {
				if o.Check == c.ID && o.Side == acrossSide(c) {
					out := o.outcome()
					return &out
				}
			}
		}
		return nil
	}
}

func (r *Report) addRest(w *shardWire) error {
	var rest restWire
	if err := json.Unmarshal(w.Rest, &rest); err != nil {
		return fmt.Errorf("conformance: merge: %s: %w", Shard{w.Shard.Index, w.Shard.Total}.named(), err)
	}
	r.RouteMargins = append(r.RouteMargins, rest.RouteMargins...)
	return nil
}

// saidByEach is the report on a candidate that no shard could ask anything.
func (r *Report) saidByEach(wires []*shardWire, shards []ShardReport, today time.Time) (*Report, error) {
	say := func(i int) []Result {
		var out []Result
		for _, o := range wires[i].Parts {
			x := o.outcome()
			out = append(out, Result{ID: o.Check, Case: "*", Side: o.Side, Level: Core, Status: x.Status, Kind: x.Kind, Reason: x.Reason, Findings: x.Findings})
		}
		return out
	}
	r.Checks = say(0)
	for i := range wires {
		if !wires[i].Whole || fmt.Sprint(say(i)) != fmt.Sprint(r.Checks) {
			return nil, fmt.Errorf("conformance: merge: %s: the candidate's description: got another answer than in %s", shards[i].Name, shards[0].Name)
		}
	}
	if k := r.formKind(); k != "" {
		r.Kind = &k
	}
	r.Times = nil
	r.waive(wires[0].Waivers, today)
	r.conclude()
	return r, nil
}
