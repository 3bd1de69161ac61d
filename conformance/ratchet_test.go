package conformance_test

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
)

func ratioIn(r *conformance.Report, name string) float64 {
	return float64(r.Cases[name].Depth[0].AccumulatedRatio)
}

func jsonOf(t *testing.T, r *conformance.Report) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, r.WriteJSON(&b))
	return b.String()
}

// TestRatchetKeepsWhatIsBetter: beyond the noise the newer figure counts, within it the
// earlier one, so that the baseline doesn't drift; worse is refused.
func TestRatchetKeepsWhatIsBetter(t *testing.T) {
	judged := func(r *conformance.Report) *conformance.Report { // a Core check that is judged nowhere would make it partial
		for _, id := range []string{"PromptTokens", "ResidualShape", "LogitRowContract", "LogitCandidate"} {
			r.Checks = append(r.Checks, conformance.Result{ID: id, Case: "case0", Side: conformance.SideCandidate, Level: conformance.Core, Status: conformance.Pass})
		}
		return r
	}
	old := judged(withRatios(0, 0, 0, 0))
	o := conformance.RatchetOptions{OldName: "old.json", NewName: "new.json"}

	// Ten steps of noise, each a little worse than the last: none moves the baseline.
	held := old
	for i := range 10 {
		x := 0.01 * float64(i+1)
		drifting := judged(withRatios(x-0.05, x+0.05, x-0.05, x+0.05))
		before := jsonOf(t, drifting)
		next, info, err := conformance.Ratchet(held, drifting, o)
		require.NoError(t, err)
		assert.Empty(t, info.Regressions)
		assert.Equal(t, before, jsonOf(t, drifting), "the newer report is changed")
		assert.Equal(t, 1.0, ratioIn(next, "case0"))
		require.Len(t, next.Ratchet, i+1)
		assert.Equal(t, conformance.RatchetStep{Kept: 1}, next.Ratchet[i])
		held = next
	}

	better := judged(withRatios(-0.2, -0.21, -0.2, -0.21))
	next, info, err := conformance.Ratchet(held, better, o)
	require.NoError(t, err)
	assert.Len(t, info.Improvements, 1)
	assert.InDelta(t, math.Exp(-0.2), ratioIn(next, "case0"), 1e-12)
	assert.Equal(t, conformance.RatchetStep{Improved: 1}, next.Ratchet[10])

	// What the first baseline had is now worse, and is refused.
	none, info, err := conformance.Ratchet(next, old, o)
	var worse *conformance.WorseError
	require.True(t, errors.As(err, &worse), err)
	assert.Nil(t, none)
	assert.Len(t, info.Regressions, 1)
	o.Loosen = true
	_, _, err = conformance.Ratchet(next, old, o)
	require.ErrorContains(t, err, `reason: got "", want why`)
	o.Reason = "int8 cache, #12"
	loose, _, err := conformance.Ratchet(next, old, o)
	require.NoError(t, err)
	assert.Equal(t, 1.0, ratioIn(loose, "case0"))
	assert.Equal(t, conformance.RatchetStep{Loosened: 1, Reason: "int8 cache, #12"}, loose.Ratchet[11])
	_, _, err = conformance.Ratchet(next, better, o)
	require.ErrorContains(t, err, "got nothing that is worse")

	// A report that fails by the comparison alone can be taken with leave; one that
	// fails by itself can't.
	failed := judged(withRatios(0, 0, 0, 0))
	require.NoError(t, failed.HoldToBaseline(next, "old.json"))
	failed.Conclusion = conformance.Fails
	loose, _, err = conformance.Ratchet(next, failed, o)
	require.NoError(t, err)
	assert.Equal(t, conformance.Conforms, loose.Conclusion)
	assert.Nil(t, loose.Baseline)
	failed.Checks[0].Status = conformance.Fail
	_, _, err = conformance.Ratchet(next, failed, o)
	require.ErrorContains(t, err, `baseline new.json: conclusion: got "fails", want "conforms"`)
	_, _, err = conformance.Ratchet(failed, next, o)
	require.ErrorContains(t, err, `baseline old.json: conclusion: got "fails", want "conforms"`)
}

// TestRatchetOfARealReport: a report held against itself stays what it is, figure by
// figure, also through its JSON.
func TestRatchetOfARealReport(t *testing.T) {
	cfg := faulty(t, "", 0)
	cfg.Probes = conformance.StandardProbes(cfg.Reference.Weights().Arch())
	rep := evaluated(t, cfg)
	next, info, err := conformance.Ratchet(rep, rep, conformance.RatchetOptions{OldName: "a", NewName: "b"})
	require.NoError(t, err)
	assert.Empty(t, info.Improvements)
	want := len(conformance.FigureMeans(rep))
	require.Greater(t, want, 28*3)
	assert.Equal(t, []conformance.RatchetStep{{Kept: want}}, next.Ratchet)
	next.Ratchet = nil
	assert.Equal(t, jsonOf(t, rep), jsonOf(t, next))
}
