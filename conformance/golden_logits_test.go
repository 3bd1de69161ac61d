package conformance_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/golden"
)

// TestAGoldenWithoutARowSaysNothingOfLogits: the dump of a decode of no tokens is
// a whole one, and neither breaks the run nor passes a check.
func TestAGoldenWithoutARowSaysNothingOfLogits(t *testing.T) {
	cfg, err := embedded()
	require.NoError(t, err)
	c := cfg.Cases[9]
	dir := t.TempDir()
	w, err := dumpfmt.CreateFolder(dir, dumpfmt.EngineFile{Name: "trusted", Logits: dumpfmt.LogitsFloat32}, dumpfmt.WriteOptions{})
	require.NoError(t, err)
	cw, err := w.Case(c.Name, dumpfmt.CaseFile{Text: c.Text, TokenIDs: c.TokenIDs, OutputIDs: []int{}})
	require.NoError(t, err)
	d, err := cw.FloatLogits(dumpfmt.LogitHeader{})
	require.NoError(t, err)
	require.NoError(t, d.Commit())
	require.NoError(t, cw.Commit())

	cfg.Golden, err = golden.OpenFolder(dir)
	require.NoError(t, err)
	require.True(t, cfg.Golden.HasLogits(c.Name))
	cfg.Cases, cfg.ReferenceCases = cfg.Cases[9:10], 1
	cfg.Only = []string{"GreedyGolden", "LogitGolden", "StopRule"}
	rep, err := conformance.Evaluate(t.Context(), cfg)
	require.NoError(t, err)
	for _, r := range rep.Checks {
		if r.Side != conformance.SideReference {
			continue
		}
		want := conformance.Skip
		if r.ID == "StopRule" {
			want = conformance.Pass
		}
		assert.Equal(t, want, r.Status, r.ID)
	}
}
