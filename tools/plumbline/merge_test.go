package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
)

// runs is the program in this process.
func runs(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(append(args, "--quiet"), &out, &errs)
	return code, out.String(), errs.String()
}

// withoutTimes is a report's JSON without its times.
func withoutTimes(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	var rep conformance.Report
	require.NoError(t, json.Unmarshal(b, &rep))
	require.NotNil(t, rep.Times, "the report has them")
	rep.Times = nil
	var out bytes.Buffer
	require.NoError(t, rep.WriteJSON(&out))
	return out.String()
}

func TestMergedGatesAreTheWholeGate(t *testing.T) {
	slow(t)
	model := modelFolder(t)
	t.Setenv(modelEnv, "")
	for _, tc := range []struct {
		name, mutant string
		at, n, total int
	}{
		{"clean", "", 0, 5, 2},
		{"a layer fault", "gate-up-swapped", 7, 5, 3},
		{"more shards than cases", "", 0, 2, 4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dumps, out := dumpInt8(t, tc.n, tc.mutant, tc.at), t.TempDir()
			gate := []string{"gate", "--model", model, "--candidate", dumps, "--allow-partial", "--report"}
			wholeCode, wholeText, errs := runs(t, append(gate, filepath.Join(out, "whole"))...)
			require.Empty(t, errs)
			empty := 0
			for i := range tc.total {
				dir := filepath.Join(out, "shards", fmt.Sprint(i))
				code, text, errs := runs(t, append(gate, dir, "--shard", fmt.Sprintf("%d/%d", i, tc.total), "--costs", filepath.Join(out, "whole", "report.json"))...)
				assert.Equal(t, wholeCode, code, "shard %d: %s %s", i, text, errs)
				assert.Contains(t, text, fmt.Sprintf("shard %d of %d (index %d): ", i+1, tc.total, i))
				rep, err := readReport("report", filepath.Join(dir, "report.json"))
				require.NoError(t, err)
				assert.Contains(t, rep.Reproduce, fmt.Sprintf("--shard %d/%d --costs", i, tc.total))
				if rep.Shard.Cases == 0 {
					empty++
					assert.Equal(t, conformance.NothingJudged, rep.Conclusion, "an empty shard says nothing, whatever its exit code")
				}
			}
			assert.Equal(t, max(0, tc.total-tc.n), empty)
			code, text, errs := runs(t, "merge", filepath.Join(out, "shards"), "--allow-partial", "--out", filepath.Join(out, "merged"))
			require.Empty(t, errs)
			assert.Equal(t, wholeCode, code)
			assert.Equal(t, wholeText, text)
			want, got := withoutTimes(t, filepath.Join(out, "whole", "report.json")), withoutTimes(t, filepath.Join(out, "merged", "report.json"))
			assert.True(t, want == got, "the merged report is another one")
			_, err := os.Stat(filepath.Join(out, "merged", conformance.EvidenceFile))
			assert.ErrorIs(t, err, os.ErrNotExist, "a whole run is merged with nothing")
		})
	}
}

// TestGateReadsItsShardFromTheEnvironment: as Bazel and Kubernetes tell it. The flag
// beats both.
func TestGateReadsItsShardFromTheEnvironment(t *testing.T) {
	slow(t)
	model, dumps := modelFolder(t), dumpInt8(t, 3, "", 0)
	t.Setenv(modelEnv, "")
	gate := []string{"--model", model, "--candidate", dumps}
	status := filepath.Join(t.TempDir(), "status")
	t.Setenv("TEST_TOTAL_SHARDS", "3")
	t.Setenv("TEST_SHARD_INDEX", "1")
	t.Setenv("TEST_SHARD_STATUS_FILE", status)
	rep, _, errs := gateJSON(t, gate...)
	require.NotNil(t, rep.Shard, errs)
	assert.Equal(t, []int{1, 3}, []int{rep.Shard.Index, rep.Shard.Total})
	assert.Len(t, rep.Cases, 1)
	assert.FileExists(t, status)
	rep, _, _ = gateJSON(t, append(gate, "--shard", "0/2")...)
	assert.Equal(t, []int{0, 2}, []int{rep.Shard.Index, rep.Shard.Total})
	rep, _, _ = gateJSON(t, append(gate, "--shard", "none")...)
	assert.Nil(t, rep.Shard)
	assert.Len(t, rep.Cases, 3)
	t.Setenv("JOB_COMPLETION_INDEX", "1")
	_, code, errs := gateJSON(t, gate...)
	assert.Equal(t, exitBroken, code)
	assert.Contains(t, errs, "PLUMBLINE_SHARDS")
	t.Setenv("PLUMBLINE_SHARDS", "4")
	_, code, errs = gateJSON(t, gate...)
	assert.Equal(t, exitBroken, code)
	assert.Contains(t, errs, "want one of them or the same")
}
