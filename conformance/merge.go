package conformance

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/plumbline-go/plumbline/engine"
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

// wiresOf reads the shards' evidence in the order of their index, and refuses what is
// not one whole run. shards is brought into that order too.
func wiresOf(shards []ShardReport) ([]*shardWire, error) {
	if len(shards) == 0 {
		return nil, errors.New("conformance: merge: got no report, want one of each shard")
	}
	for _, s := range shards {
		if err := mergeable(s); err != nil {
			return nil, err
		}
	}
	first := shards[0]
	for _, s := range shards[1:] {
		if err := sameRun(first, s); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(shards, func(a, b ShardReport) int { return cmp.Compare(a.Report.Shard.Index, b.Report.Shard.Index) })
	total := first.Report.Shard.Total
	of := map[int]string{}
	for _, s := range shards {
		i := s.Report.Shard.Index
		if i < 0 || i >= total {
			return nil, fmt.Errorf("conformance: merge: %s: shard index: got %d, want 0 <= index < %d", s.Name, i, total)
		}
		if other, twice := of[i]; twice {
			return nil, fmt.Errorf("conformance: merge: %s: %s: got it twice, the other is %s", s.Name, Shard{i, total}.named(), other)
		}
		of[i] = s.Name
	}
	var missing []int
	for i := range total {
		if of[i] == "" {
			missing = append(missing, i)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("conformance: merge: got %d of %d shards, missing: %v (counted from 0)", len(shards), total, missing)
	}
	wires := make([]*shardWire, len(shards))
	for i, s := range shards {
		var err error
		if wires[i], err = readEvidence(s.Name, s.Evidence, s.Report); err != nil {
			return nil, err
		}
		// The candidate's folder or command is no part of the plan: two builds may
		// describe themselves alike.
		if got, want := wires[i].Reproduce, wires[0].Reproduce; got != want {
			return nil, fmt.Errorf("conformance: merge: %s: command: got %q, want %q as in %s: not shards of one run", s.Name, got, want, shards[0].Name)
		}
	}
	return wires, wholeRun(wires, shards)
}

// mergeable refuses what is no shard's report of this version.
func mergeable(s ShardReport) error {
	r := s.Report
	switch {
	case r.SchemaVersion != SchemaVersion:
		return fmt.Errorf("conformance: merge: %s: schema_version: got %d, want %d", s.Name, r.SchemaVersion, SchemaVersion)
	case r.Shard == nil:
		return fmt.Errorf("conformance: merge: %s: got the report of a whole run, want a shard's", s.Name)
	case !mergesFor(Tool(), r.Tool):
		return fmt.Errorf("conformance: merge: %s: tool: got %s, want what this program is, %s", s.Name, describeTool(r.Tool), describeTool(Tool()))
	}
	return nil
}

// mergesFor reports whether a build does with a shard's figures what the one that ran
// it would have done. The programs are two where a test ran it: it knows no revision.
// Another processor may round a sum otherwise.
func mergesFor(self, ran ToolInfo) bool {
	sameCode := self.Revision == ran.Revision && self.Modified == ran.Modified || self.Revision == "" || ran.Revision == ""
	return self.Version == ran.Version && self.Arch == ran.Arch && sameCode
}

func describeTool(t ToolInfo) string {
	modified := ""
	if t.Modified {
		modified = ", modified"
	}
	return fmt.Sprintf("version %s, revision %q%s, %s, %s/%s", t.Version, t.Revision, modified, t.Go, t.OS, t.Arch)
}

// sameRun says in what two reports are not shards of one run.
func sameRun(a, b ShardReport) error {
	other := func(what string, got, want any) error {
		return fmt.Errorf("conformance: merge: %s: %s: got %v, want %v as in %s: not shards of one run", b.Name, what, got, want, a.Name)
	}
	x, y := a.Report, b.Report
	switch {
	case x.Shard.Total != y.Shard.Total:
		return other("number of shards", y.Shard.Total, x.Shard.Total)
	case x.Tool != y.Tool:
		return other("tool", describeTool(y.Tool), describeTool(x.Tool))
	case !reflect.DeepEqual(x.Candidate, y.Candidate):
		return other("candidate", describeSide(y.Candidate), describeSide(x.Candidate))
	case !reflect.DeepEqual(x.Reference, y.Reference):
		return other("reference", describeSide(y.Reference), describeSide(x.Reference))
	case x.Shard.AllCases != y.Shard.AllCases:
		return other("number of cases", y.Shard.AllCases, x.Shard.AllCases)
	case x.Shard.Plan != y.Shard.Plan:
		return other("plan", y.Shard.Plan, x.Shard.Plan+" (a hash over model, cases, checks, budgets and costs)")
	}
	return nil
}

func describeSide(i engine.Info) string {
	b, err := json.Marshal(i)
	if err != nil {
		return i.Name
	}
	return string(b)
}

// wholeRun holds the shards' cases and parts to be all of the run's, each once.
func wholeRun(wires []*shardWire, shards []ShardReport) error {
	cases, parts := map[int]string{}, map[string]string{}
	for i, w := range wires {
		for _, c := range w.Cases {
			if other, twice := cases[c.Index]; twice {
				return fmt.Errorf("conformance: merge: %s: case %s: got it twice, also in %s", shards[i].Name, c.Case.Name, other)
			}
			cases[c.Index] = shards[i].Name
		}
		for _, p := range w.Shard.Parts {
			if other, twice := parts[p]; twice {
				return fmt.Errorf("conformance: merge: %s: %s: got it twice, also in %s", shards[i].Name, p, other)
			}
			parts[p] = shards[i].Name
		}
	}
	if want := wires[0].Shard.AllCases; len(cases) != want {
		return fmt.Errorf("conformance: merge: got %d cases in all shards, want %d", len(cases), want)
	}
	if len(parts) != len(runParts) {
		return fmt.Errorf("conformance: merge: work that is no case's: got %d parts in all shards, want %d", len(parts), len(runParts))
	}
	return nil
}
