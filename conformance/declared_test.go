package conformance_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
)

// otherScheme is a float engine that declares a scheme nothing emulates, and
// whose dump has one row a thousandth too large.
type otherScheme struct {
	floatCandidate
	row int
}

func (o otherScheme) Info(context.Context) (engine.Info, error) {
	return engine.Info{Name: "other", Layers: engine.LayersFloat32, Weights: "q4_0"}, nil
}

func (o otherScheme) Run(ctx context.Context, req engine.Request) (*engine.Response, error) {
	resp, err := o.floatCandidate.Run(ctx, req)
	if err != nil || o.row < 0 {
		return resp, err
	}
	rows := resp.Layers.(floatRows)
	rows.rows = slices.Clone(rows.rows)
	rows.rows[o.row] = slices.Clone(rows.rows[o.row])
	for i := range rows.rows[o.row] {
		rows.rows[o.row][i] *= 1.001
	}
	resp.Layers = rows
	return resp, nil
}

// TestBadRowInAnUnknownScheme: a candidate far better than the yardstick shows a
// bad dump row at ratios that no other candidate's would be looked at for.
func TestBadRowInAnUnknownScheme(t *testing.T) {
	onlyOnEmbedded(t)
	cfg := localising(t)
	const bad = 12
	cfg.Candidate = otherScheme{floatCandidate{cfg.Reference}, bad}
	rep, err := conformance.Evaluate(t.Context(), cfg)
	require.NoError(t, err)
	if assert.NotNil(t, rep.FirstBadRow) {
		assert.Equal(t, bad, *rep.FirstBadRow, "notes %v", rep.Notes)
	}
	if assert.NotNil(t, rep.Kind) {
		assert.Equal(t, conformance.KindDump, *rep.Kind, "notes %v", rep.Notes)
	}
}

// TestUnusablePromptsAreTheCallers: ids outside the vocabulary are the run's
// fault where the caller brought them, the candidate's where it did.
func TestUnusablePromptsAreTheCallers(t *testing.T) {
	onlyOnEmbedded(t)
	cfg := localising(t)
	bad := engine.Case{Name: "bad", Text: "x", TokenIDs: []int{1, 1 << 20}}
	cfg.Cases = []engine.Case{bad}
	_, err := conformance.Evaluate(t.Context(), cfg)
	require.Error(t, err)
	assert.Contains(t, err.Error(), "token_ids[1]: got 1048576")

	cfg.Candidate, cfg.Cases = bringsCases{cfg.Candidate, []engine.Case{bad}}, nil
	rep, err := conformance.Evaluate(t.Context(), cfg)
	require.NoError(t, err)
	assert.Equal(t, conformance.Fails, rep.Conclusion)
}

// bringsCases is a candidate that lists its own cases.
type bringsCases struct {
	engine.Candidate
	cases []engine.Case
}

func (b bringsCases) Cases(context.Context) ([]engine.Case, error) { return b.cases, nil }
