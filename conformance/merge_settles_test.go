package conformance_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
)

// TestMergeSettlesAsTheRunDoes: claims, skips and waivers are settled over all shards
// together, as in a run of all cases; no shard fails by a waiver of another's case.
func TestMergeSettlesAsTheRunDoes(t *testing.T) {
	onlyOnEmbedded(t)
	cfg := seededFew(t, 4)
	cfg.Now = onDay("2026-12-01")
	planted, err := cfg.Mutants(cfg, conformance.Control{Mutant: "layer-skipped", Side: conformance.SideCandidate, Layer: 5})
	require.NoError(t, err)
	all := waiverOfAll(evaluated(t, planted))
	require.NotEmpty(t, all)
	for what, c := range map[string]struct {
		planted bool
		change  func(*conformance.Config)
		want    conformance.Conclusion
	}{
		"claims": {false, func(c *conformance.Config) { c.Features = []conformance.Feature{"layers", "logits"} }, conformance.Conforms},
		"a claim that nothing shows": {false, func(c *conformance.Config) {
			c.Candidate, c.Features = withoutLogits{c.Candidate}, []conformance.Feature{"layers", "logits"}
		}, conformance.Fails},
		"a skip": {false, func(c *conformance.Config) {
			c.Skip = []conformance.CheckSkip{{Check: "LocalError", Reason: "x"}}
		}, conformance.Partial},
		"a skip over all": {false, func(c *conformance.Config) {
			c.Skip = []conformance.CheckSkip{{Check: "LocalError", Case: "*", Reason: "x"}}
		}, conformance.Partial},
		"waivers":       {true, func(c *conformance.Config) { c.Waivers = all }, conformance.Partial},
		"one waiver":    {true, func(c *conformance.Config) { c.Waivers = all[:1] }, conformance.Fails},
		"an unused one": {false, func(c *conformance.Config) { c.Waivers = all[:1] }, conformance.Fails},
		"an expired one": {false, func(c *conformance.Config) {
			c.Waivers = []conformance.Waiver{{Check: "LocalError", Case: c.Cases[0].Name, Reason: "x", Expires: "2026-11-30"}}
		}, conformance.Fails},
	} {
		t.Run(what, func(t *testing.T) {
			with := cfg
			if c.planted {
				with = planted
			}
			c.change(&with)
			require.Equal(t, c.want, assertMergesToWhole(t, with, 2).Conclusion)
		})
	}

	t.Run("another shard's waiver", func(t *testing.T) {
		with := cfg
		with.Waivers = all[:1]
		for _, s := range shardsOf(t, with, 2) {
			assert.NotEqual(t, conformance.Fails, s.Report.Conclusion, "whether it is used is seen with all cases")
			assert.Equal(t, []conformance.WaiverUse{{Waiver: all[0]}}, s.Report.Waivers)
		}
	})
	t.Run("partial is allowed", func(t *testing.T) {
		for _, allowed := range []bool{false, true} {
			merged, err := conformance.Merge(shardsOf(t, cfg, 2), conformance.MergeOptions{AllowPartial: allowed})
			require.NoError(t, err)
			assert.Equal(t, allowed, merged.PartialAllowed)
		}
	})
}
