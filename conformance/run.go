package conformance

import (
	"os"
	"strings"
	"testing"
)

// Run runs the suite inside `go test`: one subtest per check, and a failure
// unless the candidate conforms. A partial verdict fails too, unless
// cfg.AllowPartial is set: what would make it whole is printed.
//
// With cfg.Shard it judges that part of the cases, and is skipped where that is none.
// Where the test runner hands out test functions over the shards itself, it fails: see
// [Shard].
func Run(t *testing.T, cfg Config) {
	t.Helper()
	if cfg.Shard != nil {
		if err := AnnounceShard(os.Getenv); err != nil {
			t.Fatal(err)
		}
	}
	rep, err := Evaluate(t.Context(), cfg)
	if err != nil {
		t.Fatalf("the run itself broke: %v", err)
	}
	var ids []string
	byID := map[string][]Result{}
	for _, r := range rep.Checks {
		if byID[r.ID] == nil {
			ids = append(ids, r.ID)
		}
		byID[r.ID] = append(byID[r.ID], r)
	}
	for _, id := range ids {
		t.Run(id, func(t *testing.T) { reportCheck(t, byID[id]) })
	}
	for _, p := range rep.Power {
		t.Logf("power: %s", p)
	}
	for _, n := range rep.NotJudged {
		t.Logf("core check not judged: %s; would run with: %s", n.ID, n.WouldRun)
	}
	if rep.ReferenceFailed {
		t.Errorf("the reference failed a check of its own: no verdict on a candidate can be trusted")
	}
	if s := rep.Shard; s != nil && s.Cases == 0 && s.AllCases > 0 && rep.Conclusion != Fails {
		t.Skipf("shard %d of %d has none of the run's %d cases", s.Index, s.Total, s.AllCases)
	}
	switch rep.Conclusion {
	case Conforms:
	case Partial:
		if !cfg.AllowPartial {
			t.Errorf("conclusion: %s: a Core check was judged on no case", rep.Conclusion)
		}
	default:
		row := "none"
		if rep.FirstBadRow != nil {
			row = AtRow(*rep.FirstBadRow).String()
		}
		t.Errorf("conclusion: %s; first bad row: %s; sources: %v\n%s",
			rep.Conclusion, row, rep.Sources, strings.Join(rep.Notes, "\n"))
	}
}

func reportCheck(t *testing.T, results []Result) {
	t.Helper()
	judged := false
	for _, r := range results {
		judged = judged || r.Status.Judged() || r.Status == Error
		switch r.Status {
		case Fail, Error:
			t.Errorf("%s [%s, %s]: %s\nrule: %s", r.Case, r.Side, r.Status, r.Reason, r.Rule)
			for i, f := range r.Findings {
				if i == maxFindingsShown {
					t.Logf("  and %d more", len(r.Findings)-i)
					break
				}
				t.Logf("  %s", f)
			}
		case Skip, Unsupported:
			t.Logf("%s [%s]: %s: %s", r.Case, r.Side, r.Status, r.Reason)
		}
	}
	if !judged {
		t.Skip("judged on no case")
	}
}

// maxFindingsShown keeps a failing check readable; the report has all of them.
const maxFindingsShown = 5
