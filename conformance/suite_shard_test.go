package conformance_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
)

// suiteShard is the part of the cases that this process judges, nil for all.
var suiteShard *conformance.Shard

// shardVariables are what says it.
var shardVariables = []string{"TEST_TOTAL_SHARDS", "TEST_SHARD_INDEX", "TEST_SHARD_STATUS_FILE", "JOB_COMPLETION_INDEX"}

// openSuiteShard reads which shard this is. The report that the tests of the checks
// share is split by cases, and these run everywhere; each other test runs in one shard.
func openSuiteShard() error {
	if os.Getenv(runScenario) != "" {
		return nil // a client's test, which asks by itself
	}
	s, err := conformance.ShardFromEnv(os.Getenv)
	if err != nil || s == nil {
		return err
	}
	switch err := conformance.AnnounceShard(os.Getenv); {
	case errors.Is(err, conformance.ErrRunnerShards):
		s = nil // the functions that are here are this shard's, each with all cases
	case err != nil:
		return err
	}
	for _, name := range shardVariables { // not for what tests start
		if err := os.Unsetenv(name); err != nil {
			return err
		}
	}
	if suiteShard = s; s == nil || s.Total == 1 {
		return nil
	}
	out, err := exec.Command(os.Args[0], "-test.list=.").Output()
	if err != nil {
		return fmt.Errorf("conformance: shard: the list of tests: %w", err)
	}
	skip := flag.Lookup("test.skip").Value.String()
	if others := othersTests(strings.Fields(string(out)), *s); len(others) > 0 {
		if skip != "" {
			skip += "|"
		}
		skip += "^(?:" + strings.Join(others, "|") + ")$"
	}
	return flag.Set("test.skip", skip)
}

// othersTests are the tests that another shard runs.
func othersTests(names []string, s conformance.Shard) []string {
	everywhere := map[string]bool{"TestConformance": true}
	for _, c := range conformance.Builtin().Checks() {
		everywhere["Test"+c.ID] = true
	}
	var others []string
	i := 0
	slices.Sort(names)
	for _, name := range names {
		if everywhere[name] || strings.HasPrefix(name, "Benchmark") {
			continue
		}
		if i%s.Total != s.Index {
			others = append(others, name)
		}
		i++
	}
	return others
}

// TestEachTestRunsInOneShard, and those of the checks in all of them.
func TestEachTestRunsInOneShard(t *testing.T) {
	names := []string{"TestB", "ExampleRun", "TestA", "TestResidualShape", "FuzzX", "TestConformance", "BenchmarkY", "TestC"}
	ran := map[string]int{}
	for i := range 3 {
		others := othersTests(slices.Clone(names), conformance.Shard{Index: i, Total: 3})
		for _, name := range names {
			if !slices.Contains(others, name) {
				ran[name]++
			}
		}
	}
	assert.Equal(t, map[string]int{"TestA": 1, "TestB": 1, "TestC": 1, "ExampleRun": 1, "FuzzX": 1,
		"TestResidualShape": 3, "TestConformance": 3, "BenchmarkY": 3}, ran)
}

// TestTheSuiteShards runs this test binary as Bazel does, on few tests: the tests that
// run, and that the shards' reports merge.
func TestTheSuiteShards(t *testing.T) {
	sweep(t)
	dir := t.TempDir()
	const total = 2
	const tests = "^(?:TestResidualShape|TestConformance|TestTensorInventory|TestControlFloors|TestEachTestRunsInOneShard)$"
	ran := map[string]int{}
	var shards []conformance.ShardReport
	for i := range total {
		out := filepath.Join(dir, fmt.Sprint(i))
		status := filepath.Join(dir, fmt.Sprintf("status-%d", i))
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run="+tests, "-test.v", "-test.short", "-report", out)
		cmd.Env = append(os.Environ(), fmt.Sprintf("TEST_TOTAL_SHARDS=%d", total), fmt.Sprintf("TEST_SHARD_INDEX=%d", i), "TEST_SHARD_STATUS_FILE="+status)
		text, err := cmd.CombinedOutput()
		require.NoError(t, err, string(text))
		assert.FileExists(t, status)
		for _, m := range regexp.MustCompile(`(?m)^--- (?:PASS|SKIP): (\w+)`).FindAllStringSubmatch(string(text), -1) {
			ran[m[1]]++
		}
		shards = append(shards, readShard(t, out))
	}
	assert.Equal(t, map[string]int{"TestResidualShape": 2, "TestConformance": 2, "TestTensorInventory": 2, "TestControlFloors": 1, "TestEachTestRunsInOneShard": 1}, ran)
	merged, err := conformance.Merge(shards, conformance.MergeOptions{})
	require.NoError(t, err)
	assert.Equal(t, conformance.Conforms, merged.Conclusion)
	assert.Len(t, merged.Cases, shards[0].Report.Shard.Cases+shards[1].Report.Shard.Cases)
}

func readShard(t *testing.T, dir string) conformance.ShardReport {
	t.Helper()
	s := conformance.ShardReport{Name: dir, Report: &conformance.Report{}}
	text, err := os.ReadFile(filepath.Join(dir, "report.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, s.Report))
	s.Evidence, err = os.ReadFile(filepath.Join(dir, conformance.EvidenceFile))
	require.NoError(t, err)
	return s
}
