package conformance

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/plumbline-go/plumbline/engine"
)

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
