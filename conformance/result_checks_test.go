package conformance_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
)

// TestResultChecksAreNoChecks: they can be explained, and are in no registry, so that
// none can be waived, skipped or picked.
func TestResultChecksAreNoChecks(t *testing.T) {
	var ids []string
	for _, c := range conformance.ResultChecks() {
		ids = append(ids, c.ID)
		assert.NotEmpty(t, c.Rule, c.ID)
		assert.NotEmpty(t, c.Catches, c.ID)
		assert.True(t, conformance.LooksAtResults(c.ID), c.ID)
		assert.Nil(t, conformance.Builtin().Lookup(c.ID), c.ID)
	}
	assert.Equal(t, []string{"Features", "Baseline", "Repeat"}, ids)
	for _, c := range conformance.Builtin().Checks() {
		assert.False(t, conformance.LooksAtResults(c.ID), c.ID)
	}
}

func TestEmptyShard(t *testing.T) {
	for _, tc := range []struct {
		what       string
		shard      *conformance.ShardInfo
		conclusion conformance.Conclusion
		want       bool
	}{
		{"a whole run", nil, conformance.NothingJudged, false},
		{"no case of five", &conformance.ShardInfo{Total: 9, AllCases: 5}, conformance.NothingJudged, true},
		{"one of five", &conformance.ShardInfo{Total: 9, AllCases: 5, Cases: 1}, conformance.NothingJudged, false},
		{"a run without cases", &conformance.ShardInfo{Total: 9}, conformance.NothingJudged, false},
		{"something failed", &conformance.ShardInfo{Total: 9, AllCases: 5}, conformance.Fails, false},
	} {
		r := &conformance.Report{Shard: tc.shard, Conclusion: tc.conclusion}
		assert.Equal(t, tc.want, r.EmptyShard(), tc.what)
	}
}

// TestReportsSayWhetherPartialIsAllowed: however they were made, not by Run alone.
func TestReportsSayWhetherPartialIsAllowed(t *testing.T) {
	for _, allowed := range []bool{false, true} {
		rep, err := conformance.Evaluate(t.Context(), conformance.Config{AllowPartial: allowed})
		require.NoError(t, err)
		assert.Equal(t, allowed, rep.PartialAllowed)
	}
}
