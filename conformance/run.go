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
// The verdict is logged first, before the subtests: where it points, the worst finding, and
// cfg.Reproduce. The subtest of the check that found it is the first.
//
// The report goes to cfg.ReportJSON, and into the folder that the environment variable
// [ReportEnv] names, whatever the verdict: `plumbline report` makes Markdown, JUnit and
// HTML of it. A report that can't be written fails the test. The go command doesn't run a
// test again whose inputs are the same: -count=1 makes it.
//
// With cfg.Shard it judges that part of the cases, and is skipped where that is none.
// Where the test runner hands out test functions over the shards itself, it fails: see
// [Shard].
func Run(t *testing.T, cfg Config) {
	t.Helper()
	paths, err := reportPaths(&cfg, t.Name())
	if err == nil {
		err = clearReports(paths)
	}
	if err == nil && cfg.Shard != nil {
		err = AnnounceShard(os.Getenv)
	}
	if err != nil {
		t.Fatal(err)
	}
	rep, err := Evaluate(t.Context(), cfg)
	if err != nil {
		t.Fatalf("the run itself broke: %v", err)
	}
	if err := writeReports(rep, paths); err != nil {
		t.Errorf("the report: %v", err)
	}
	t.Log(runSummary(rep))
	ids, byID := byCheck(rep)
	for _, id := range ids {
		t.Run(id, func(t *testing.T) { reportCheck(t, byID[id]) })
	}
	for _, p := range rep.Power {
		t.Logf("power: %s", p)
	}
	for _, n := range rep.NotJudged {
		t.Logf("core check not judged: %s; would run with: %s", n.ID, n.WouldRun)
	}
	for _, w := range rep.Waivers {
		if w.Problem != "" {
			t.Errorf("waiver for %s, %s: %s", w.Check, w.Case, w.Problem)
		}
	}
	if b := rep.Baseline; b != nil {
		t.Logf("baseline %s: %d figures compared, %d worse, %d better; %s", b.Name, b.Compared, len(b.Regressions), len(b.Improvements), b.NoiseBasis)
		for _, c := range b.Improvements {
			t.Logf("better than the baseline: %s, %s %s: %s: %.4g, was %.4g", c.Check, c.Case, c.Probe, c.Metric, float64(c.After), float64(c.Before))
		}
	}
	if rep.ReferenceFailed {
		t.Errorf("the reference failed a check of its own: no verdict on a candidate can be trusted")
	}
	if s := rep.Shard; rep.EmptyShard() {
		t.Skipf("%s has none of the run's %d cases", Shard{s.Index, s.Total}.named(), s.AllCases)
	}
	switch rep.Conclusion {
	case Conforms:
	case Partial:
		if !cfg.AllowPartial {
			t.Errorf("conclusion: %s: %s", rep.Conclusion, rep.WhyPartial())
		}
	default:
		t.Errorf("conclusion: %s\n%s", rep.Conclusion, strings.Join(rep.Notes, "\n"))
	}
}

func reportCheck(t *testing.T, results []Result) {
	t.Helper()
	judged := false
	for _, r := range results {
		judged = judged || r.Status.Judged() || r.Status == Error
		if r.Waived != nil {
			t.Logf("%s [%s, waived until %s]: %s", r.Case, r.Status, r.Waived.Expires, r.Waived.Reason)
			continue
		}
		if r.Level == Provisional && r.Side == SideCandidate {
			t.Logf("%s [%s]: %s %v", r.Case, r.Status, r.Reason, r.Findings)
			continue
		}
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
