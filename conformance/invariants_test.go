package conformance_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
)

// The invariants, one test each: this file is the table of contents.

// TestResidualShape: layers+1 rows of the hidden size, the prompt's own
// fingerprint, capture mode 1, finite rows in order.
func TestResidualShape(t *testing.T) {
	holds(t, "ResidualShape", conformance.SideReference)
	holds(t, "ResidualShape", conformance.SideCandidate)
}

// TestTieOverwriteBypass: the last row is the residual stream, not the hidden
// state after the final norm.
func TestTieOverwriteBypass(t *testing.T) {
	holds(t, "TieOverwriteBypass", conformance.SideReference)
}

// TestLastTokenEmbed: row 0 is the embedding of the LAST prompt token.
func TestLastTokenEmbed(t *testing.T) {
	holds(t, "LastTokenEmbed", conformance.SideReference)
	holds(t, "LastTokenEmbed", conformance.SideCandidate)
}

// TestInteriorRowOracle: every row has the bits of a second composition.
func TestInteriorRowOracle(t *testing.T) {
	holds(t, "InteriorRowOracle", conformance.SideReference)
}

// TestIncrementalVersusBatched: the capture is token by token, near a batched
// prefill and not identical to it.
func TestIncrementalVersusBatched(t *testing.T) {
	holds(t, "IncrementalVersusBatched", conformance.SideReference)
}

// TestResidualGolden: the reference matches what transformers recorded, on every
// row of every prompt.
func TestResidualGolden(t *testing.T) {
	if *goldenFlag == "" {
		onlyOnEmbedded(t)
	}
	holds(t, "ResidualGolden", conformance.SideReference)
}

// TestProvenance: goldens, checkpoint and prompts match their manifest, and
// every prompt has a golden.
func TestProvenance(t *testing.T) {
	onlyOnEmbedded(t)
	holds(t, "Provenance", conformance.SideSuite)
}

// TestResidualCandidate: every row of the candidate matches the reference's in
// direction and scale.
func TestResidualCandidate(t *testing.T) {
	holds(t, "ResidualCandidate", conformance.SideCandidate)
}

// TestLocalError: each layer of the candidate maps its own input to its own
// output as the reference's layer does.
func TestLocalError(t *testing.T) {
	holds(t, "LocalError", conformance.SideCandidate)
}

// TestProbeCandidate: every place that the candidate offers at all positions is what
// the reference makes of its own rows.
func TestProbeCandidate(t *testing.T) {
	holds(t, "ProbeCandidate", conformance.SideCandidate)
}

// TestPromptTokens: the candidate ran the prompt's own ids.
func TestPromptTokens(t *testing.T) {
	holds(t, "PromptTokens", conformance.SideCandidate)
}

// TestLogitRowContract: row i is the whole row before token i was chosen, and
// token i is its largest entry.
func TestLogitRowContract(t *testing.T) {
	holds(t, "LogitRowContract", conformance.SideReference)
	holds(t, "LogitRowContract", conformance.SideCandidate)
}

// TestGreedyGolden: the reference picks what transformers picked wherever that
// was no tie.
func TestGreedyGolden(t *testing.T) {
	if *goldenFlag == "" {
		onlyOnEmbedded(t)
	}
	holds(t, "GreedyGolden", conformance.SideReference)
}

// TestLogitGolden: the reference matches the logits that transformers recorded.
func TestLogitGolden(t *testing.T) {
	if *goldenFlag == "" {
		onlyOnEmbedded(t)
	}
	holds(t, "LogitGolden", conformance.SideReference)
}

// TestStopRule: decoding stops on a stop id, keeps it, and ends without one only
// on the budget.
func TestStopRule(t *testing.T) {
	holds(t, "StopRule", conformance.SideReference)
	holds(t, "StopRule", conformance.SideCandidate)
}

// TestPrefillEqualsDecode: however the prompt is cut, the logits are the same.
func TestPrefillEqualsDecode(t *testing.T) {
	holds(t, "PrefillEqualsDecode", conformance.SideReference)
}

// TestBatchInvariance: a sequence's logits don't depend on its company.
func TestBatchInvariance(t *testing.T) {
	holds(t, "BatchInvariance", conformance.SideReference)
}

// TestLogitCandidate: the candidate's logits match the reference's, along the
// candidate's own tokens.
func TestLogitCandidate(t *testing.T) {
	holds(t, "LogitCandidate", conformance.SideCandidate)
}

// TestResidualToLogits: final norm and head make the candidate's logits of its
// own last layer row.
func TestResidualToLogits(t *testing.T) {
	holds(t, "ResidualToLogits", conformance.SideCandidate)
}

// TestNoVacuousPass: something was judged, by value.
func TestNoVacuousPass(t *testing.T) {
	holds(t, "NoVacuousPass", conformance.SideSuite)
}

// TestConformance is the verdict over all of them.
func TestConformance(t *testing.T) {
	rep, err := theReport()
	require.NoError(t, err)
	for _, p := range rep.Power {
		t.Logf("power: %s", p)
	}
	for _, n := range rep.NotJudged {
		t.Logf("core check not judged: %s; would run with: %s", n.ID, n.WouldRun)
	}
	assert.False(t, rep.ReferenceFailed, "the reference failed a check of its own")
	if s := rep.Shard; s != nil && s.Cases == 0 && rep.Conclusion != conformance.Fails {
		t.Skipf("shard %d of %d (index %d) has none of the %d cases", s.Index+1, s.Total, s.Index, s.AllCases)
	}
	partial := rep.Conclusion == conformance.Partial && (*partialFlag || !ownSubject())
	if rep.Conclusion != conformance.Conforms && !partial {
		row := "none"
		if rep.FirstBadRow != nil {
			row = conformance.AtRow(*rep.FirstBadRow).String()
		}
		t.Errorf("conclusion: %s; first bad row: %s; sources %v; notes %v", rep.Conclusion, row, rep.Sources, rep.Notes)
	}
}

// TestTemptingNormFormulaCannotFail shows why TieOverwriteBypass is not
// written as "row != norm(row)": RMSNorm is not idempotent, so a capture that
// is already post-norm satisfies that too.
func TestTemptingNormFormulaCannotFail(t *testing.T) {
	cfg, err := embedded()
	require.NoError(t, err)
	ids := cfg.Cases[2].TokenIDs
	postNorm, err := cfg.Reference.LastHidden(t.Context(), ids)
	require.NoError(t, err)
	again, err := cfg.Reference.FinalNorm(t.Context(), postNorm)
	require.NoError(t, err)
	differ := 0
	for i := range postNorm {
		if math.Float64bits(postNorm[i]) != math.Float64bits(again[i]) {
			differ++
		}
	}
	assert.Positive(t, differ, "the broken capture would have to satisfy row != norm(row), and does")
}
