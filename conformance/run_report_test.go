package conformance_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/conformance/report"
)

// reportScenario makes this test binary run conformance.Run, whose report goes to
// reportFile, if that is set, and into $PLUMBLINE_REPORT, if that is.
const (
	reportScenario = "PLUMBLINE_TEST_REPORT_SCENARIO"
	reportFile     = "PLUMBLINE_TEST_REPORT_FILE"
)

func TestRunWithAReport(t *testing.T) {
	scenario := os.Getenv(reportScenario)
	if scenario == "" {
		t.Skip("started by TestRunWritesItsReport")
	}
	cfg, err := seeded()
	require.NoError(t, err)
	cfg.Cases, cfg.ReferenceCases, cfg.Only = cfg.Cases[:1], 0, []string{"ResidualShape"}
	switch scenario {
	case "nothing":
		cfg = conformance.Config{}
	case "broken":
		cfg.Reference = nil
	case "allowed":
		cfg.AllowPartial = true
	case "shard 0", "shard 1":
		all, err := seeded()
		require.NoError(t, err)
		cfg.AllowPartial, cfg.Cases = true, all.Cases[:3]
		cfg.Shard = &conformance.Shard{Index: int(scenario[len(scenario)-1] - '0'), Total: 2}
	}
	cfg.ReportJSON = os.Getenv(reportFile)
	t.Run("a/b", func(t *testing.T) { conformance.Run(t, cfg) })
}

func TestRunWritesItsReport(t *testing.T) {
	onlyOnEmbedded(t)
	run := func(t *testing.T, scenario, file, folder string) (string, error) {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRunWithAReport$", "-test.v")
		cmd.Env = append(os.Environ(), reportScenario+"="+scenario, reportFile+"="+file, conformance.ReportEnv+"="+folder)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, tt := range []struct {
		scenario string
		passes   bool
		want     conformance.Conclusion
	}{
		{"allowed", true, conformance.Partial},
		{"partial", false, conformance.Partial},
		{"nothing", false, conformance.NothingJudged},
	} {
		t.Run(tt.scenario, func(t *testing.T) {
			file, folder := filepath.Join(t.TempDir(), "new", "r.json"), filepath.Join(t.TempDir(), "new")
			for range 2 { // the second time there is one
				out, err := run(t, tt.scenario, file, folder)
				require.Equal(t, tt.passes, err == nil, out)
				verdict, check := strings.Index(out, "conclusion: "+string(tt.want)), strings.Index(out, "=== RUN   TestRunWithAReport/a/b/")
				require.Positive(t, verdict, out)
				require.True(t, verdict < check || check < 0 && tt.want == conformance.NothingJudged, "the verdict comes before the checks: %s", out)
				got, err := report.ReadFile(file)
				require.NoError(t, err)
				require.Equal(t, tt.want, got.Conclusion)
				require.Equal(t, tt.scenario == "allowed", got.PartialAllowed)
			}
			names, err := filepath.Glob(filepath.Join(folder, "*"))
			require.NoError(t, err)
			require.Len(t, names, 1)
			assert.Regexp(t, `^TestRunWithAReport_a_b-[0-9a-f]{16}\.report\.json$`, filepath.Base(names[0]))
			got, err := report.ReadFile(names[0])
			require.NoError(t, err)
			require.Equal(t, tt.want, got.Conclusion)
		})
	}
	t.Run("a run that breaks leaves no earlier report", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "r.json")
		require.NoError(t, os.WriteFile(file, []byte("an earlier one"), 0o600))
		out, err := run(t, "broken", file, "")
		require.Error(t, err, out)
		require.Contains(t, out, "the run itself broke")
		require.NoFileExists(t, file)
	})
	t.Run("a report that can't be written fails the test", func(t *testing.T) {
		if runtime.GOOS != "linux" {
			t.Skip("needs a folder in which nobody can make one: /proc")
		}
		out, err := run(t, "allowed", "/proc/plumbline/r.json", "")
		require.Error(t, err, out)
		require.Contains(t, out, "--- PASS: TestRunWithAReport/a/b/ResidualShape", "the verdict is not lost")
		require.Contains(t, out, "the report: ")
	})
	t.Run("relative paths", func(t *testing.T) {
		out, err := run(t, "allowed", "r.json", "")
		require.Error(t, err, out)
		require.Contains(t, out, "Config.ReportJSON: got r.json, want an absolute path")
		out, err = run(t, "allowed", "", "reports")
		require.Error(t, err, out)
		require.Contains(t, out, "$PLUMBLINE_REPORT: got reports, want an absolute path")
	})
}

// TestShardsOfRunMerge joins what two test processes wrote.
func TestShardsOfRunMerge(t *testing.T) {
	onlyOnEmbedded(t)
	dir := t.TempDir()
	var shards []conformance.ShardReport
	for _, name := range []string{"shard 0", "shard 1"} {
		path := filepath.Join(dir, name+".json")
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRunWithAReport$")
		cmd.Env = append(os.Environ(), reportScenario+"="+name, reportFile+"="+path)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		s := conformance.ShardReport{Name: name}
		s.Report, err = report.ReadFile(path)
		require.NoError(t, err)
		s.Evidence, err = os.ReadFile(conformance.EvidencePath(path))
		require.NoError(t, err)
		shards = append(shards, s)
	}
	_, err := conformance.Merge(shards[:1], conformance.MergeOptions{})
	require.ErrorContains(t, err, "missing: [1]")
	merged, err := conformance.Merge(shards, conformance.MergeOptions{})
	require.NoError(t, err)
	assert.Len(t, merged.Cases, 3)
	assert.Equal(t, conformance.Partial, merged.Conclusion)
}
