package conformance_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
)

func env(pairs map[string]string) func(string) string {
	return func(name string) string { return pairs[name] }
}

func TestShardFromEnv(t *testing.T) {
	for _, tc := range []struct {
		name string
		env  map[string]string
		want *conformance.Shard
		err  string
	}{
		{"nothing", nil, nil, ""},
		{"Bazel", map[string]string{"TEST_TOTAL_SHARDS": "4", "TEST_SHARD_INDEX": "3"}, &conformance.Shard{Index: 3, Total: 4}, ""},
		{"one shard", map[string]string{"TEST_TOTAL_SHARDS": "1", "TEST_SHARD_INDEX": "0"}, &conformance.Shard{Index: 0, Total: 1}, ""},
		{"Kubernetes", map[string]string{"JOB_COMPLETION_INDEX": "0", "PLUMBLINE_SHARDS": "2"}, &conformance.Shard{Index: 0, Total: 2}, ""},
		{"a total for the merging step", map[string]string{"PLUMBLINE_SHARDS": "2"}, nil, ""},
		{"both, the same", map[string]string{"TEST_TOTAL_SHARDS": "2", "TEST_SHARD_INDEX": "1", "JOB_COMPLETION_INDEX": "1", "PLUMBLINE_SHARDS": "2"}, &conformance.Shard{Index: 1, Total: 2}, ""},
		{"both, others", map[string]string{"TEST_TOTAL_SHARDS": "2", "TEST_SHARD_INDEX": "0", "JOB_COMPLETION_INDEX": "1", "PLUMBLINE_SHARDS": "2"}, nil, "want one of them or the same"},
		{"no total", map[string]string{"JOB_COMPLETION_INDEX": "0"}, nil, "PLUMBLINE_SHARDS: got nothing, want the number of shards beside JOB_COMPLETION_INDEX=0: an Indexed Job tells its pods no total"},
		{"no Bazel total", map[string]string{"TEST_SHARD_INDEX": "0"}, nil, "TEST_TOTAL_SHARDS: got nothing"},
		{"no Bazel index", map[string]string{"TEST_TOTAL_SHARDS": "2"}, nil, "TEST_SHARD_INDEX: got nothing"},
		{"index at the total", map[string]string{"TEST_TOTAL_SHARDS": "2", "TEST_SHARD_INDEX": "2"}, nil, "index: got 2, want 0 <= index < 2"},
		{"negative", map[string]string{"TEST_TOTAL_SHARDS": "2", "TEST_SHARD_INDEX": "-1"}, nil, "index: got -1"},
		{"total 0", map[string]string{"JOB_COMPLETION_INDEX": "0", "PLUMBLINE_SHARDS": "0"}, nil, "total: got 0, want at least 1"},
		{"no number", map[string]string{"TEST_TOTAL_SHARDS": "two", "TEST_SHARD_INDEX": "0"}, nil, `TEST_TOTAL_SHARDS: got "two", want a number`},
		{"a fraction", map[string]string{"JOB_COMPLETION_INDEX": "0.5", "PLUMBLINE_SHARDS": "2"}, nil, `JOB_COMPLETION_INDEX: got "0.5", want a number`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := conformance.ShardFromEnv(env(tc.env))
			assert.Equal(t, tc.want, got)
			if tc.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tc.err)
			}
		})
	}
}

// TestAnnounceShard: the file appears, also where this process asks twice; where
// another made it, someone else hands out the work.
func TestAnnounceShard(t *testing.T) {
	require.NoError(t, conformance.AnnounceShard(env(nil)))
	path := filepath.Join(t.TempDir(), "status")
	of := env(map[string]string{"TEST_SHARD_STATUS_FILE": path})
	for range 2 {
		require.NoError(t, conformance.AnnounceShard(of))
		assert.FileExists(t, path)
	}
	theirs := filepath.Join(t.TempDir(), "status")
	require.NoError(t, os.WriteFile(theirs, nil, 0o666))
	of = env(map[string]string{"TEST_SHARD_STATUS_FILE": theirs})
	for range 2 {
		require.ErrorIs(t, conformance.AnnounceShard(of), conformance.ErrRunnerShards)
	}
	err := conformance.AnnounceShard(env(map[string]string{"TEST_SHARD_STATUS_FILE": filepath.Join(path, "x")}))
	require.Error(t, err)
	assert.NotErrorIs(t, err, conformance.ErrRunnerShards)
}

// TestAShardSaysWhatItIs, and an empty one is none that judged nothing of all.
func TestAShardSaysWhatItIs(t *testing.T) {
	onlyOnEmbedded(t)
	cfg := seededFew(t, 2)
	cfg.Only = []string{"ResidualShape", "NoVacuousPass"}
	shards := shardsOf(t, cfg, 5)
	cases, parts, empty := 0, 0, 0
	for i, s := range shards {
		info := s.Report.Shard
		assert.Equal(t, []int{i, 5, 2}, []int{info.Index, info.Total, info.AllCases})
		assert.Equal(t, shards[0].Report.Shard.Plan, info.Plan)
		assert.Len(t, s.Report.Cases, info.Cases)
		assert.Len(t, s.Report.Times.Cases, info.Cases)
		cases, parts = cases+info.Cases, parts+len(info.Parts)
		if info.Cases == 0 {
			empty++
			assert.Equal(t, conformance.NothingJudged, s.Report.Conclusion)
			assert.Empty(t, s.Report.Checks, "nothing failed for want of a case")
		}
	}
	assert.Equal(t, []int{2, 5, 3}, []int{cases, parts, empty})
	cfg.Cases = cfg.Cases[:0]
	for _, s := range shardsOf(t, cfg, 2) {
		assert.Equal(t, conformance.NothingJudged, s.Report.Conclusion)
		require.Len(t, s.Report.Checks, 1)
		assert.Equal(t, conformance.Fail, s.Report.Checks[0].Status, "a run without a case judged nothing, in shards too")
	}
	merged, err := conformance.Merge(shardsOf(t, cfg, 2), conformance.MergeOptions{})
	require.NoError(t, err)
	assert.Equal(t, conformance.NothingJudged, merged.Conclusion)
}

func TestShardIsRefused(t *testing.T) {
	onlyOnEmbedded(t)
	cfg := seededFew(t, 2)
	for _, s := range []conformance.Shard{{Index: 2, Total: 2}, {Index: -1, Total: 2}, {}} {
		cfg.Shard = &s
		_, err := conformance.Evaluate(t.Context(), cfg)
		require.Error(t, err, "%v", s)
	}
	cfg.Shard = &conformance.Shard{Index: 0, Total: 2}
	cfg.Cases[1].Name = cfg.Cases[0].Name
	_, err := conformance.Evaluate(t.Context(), cfg)
	require.ErrorContains(t, err, "two cases have this name")
	whole, err := conformance.Evaluate(t.Context(), conformance.Config{})
	require.NoError(t, err)
	require.ErrorContains(t, whole.WriteEvidence(nil), "not a shard's run")
}
