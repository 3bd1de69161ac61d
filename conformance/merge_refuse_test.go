package conformance_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
)

// TestMergeTellsAMissingPart is the control of the comparison with the whole run: with
// anything left out of what the shards say, the merged report is another one.
func TestMergeTellsAMissingPart(t *testing.T) {
	sweep(t)
	cfg := seededFew(t, 7)
	planted, err := cfg.Mutants(cfg, conformance.Control{Mutant: "layers-swapped", Side: conformance.SideCandidate, Layer: 9})
	require.NoError(t, err)
	whole, err := conformance.Evaluate(t.Context(), planted)
	require.NoError(t, err)
	shards := shardsOf(t, planted, 2)
	want := bytesOf(t, whole)
	for what, change := range map[string]func(w *conformance.Wire){
		"findings": func(w *conformance.Wire) {
			for _, c := range w.Cases {
				for i := range c.Outcomes {
					c.Outcomes[i].Findings = nil
				}
			}
		},
		"an outcome": func(w *conformance.Wire) { w.Cases[0].Outcomes = w.Cases[0].Outcomes[1:] },
		"a profile":  func(w *conformance.Wire) { w.Cases[0].Profile = nil },
		"probes":     func(w *conformance.Wire) { w.Cases[0].Probes = nil },
		"names of places": func(w *conformance.Wire) {
			w.Cases[0].Places.Names = append(w.Cases[0].Places.Names, "blocks.3.attn_out")
		},
		"logits":                 func(w *conformance.Wire) { w.Cases[0].Logits = nil },
		"the last bit of one id": func(w *conformance.Wire) { w.Cases[0].Logits.Offset[whole.Logits.WorstID] *= 1 + 1e-15 },
		"the form of logits":     func(w *conformance.Wire) { w.Cases[0].Form = nil },
		"the locus":              func(w *conformance.Wire) { w.Cases[0].ValueLocus.Locus.Row = -1 },
		"a note":                 func(w *conformance.Wire) { w.Cases[0].Notes = append(w.Cases[0].Notes, "another") },
		"what layers make of a row": func(w *conformance.Wire) {
			for i := range w.Cases {
				w.Cases[i].Misses = nil
			}
		},
		"what was said over all cases": func(w *conformance.Wire) { w.Parts = nil },
		"the command":                  func(w *conformance.Wire) { w.Reproduce += "x" },
	} {
		t.Run(what, func(t *testing.T) {
			changed := slices.Clone(shards)
			for i := range changed {
				changed[i], err = conformance.Rewritten(changed[i], change)
				require.NoError(t, err)
			}
			merged, err := conformance.Merge(changed, conformance.MergeOptions{})
			require.NoError(t, err)
			assert.NotEmpty(t, firstDifference(want, bytesOf(t, merged)))
		})
	}
	merged, err := conformance.Merge(shards, conformance.MergeOptions{})
	require.NoError(t, err)
	assert.Empty(t, firstDifference(want, bytesOf(t, merged)))
}

func TestMergeRefuses(t *testing.T) {
	onlyOnEmbedded(t)
	cfg := seededFew(t, 3)
	cfg.Only = []string{"ResidualShape", "LastTokenEmbed"}
	run := func(cfg conformance.Config, total int) []conformance.ShardReport { return shardsOf(t, cfg, total) }
	shards := run(cfg, 3)
	other := cfg
	b := conformance.DefaultBudgets()
	b.Nearer.Value /= 2
	other.Budgets = &b
	budgets := run(other, 3)
	other = cfg
	other.Cases = other.Cases[1:]
	fewer := run(other, 3)
	other = cfg
	other.Cases = slices.Clone(cfg.Cases)
	other.Cases[0].TokenIDs = append(slices.Clone(other.Cases[0].TokenIDs), 1)
	ids := run(other, 3)
	other = cfg
	other.Only = other.Only[:1]
	checks := run(other, 3)
	other = cfg
	other.Now = onDay("2026-12-01")
	other.Waivers = []conformance.Waiver{{Check: "LocalError", Case: "*", Reason: "x", Expires: "2026-12-31"}}
	waivers := run(other, 3)
	other = cfg
	other.Skip = []conformance.CheckSkip{{Check: "LastTokenEmbed", Reason: "x"}}
	skips := run(other, 3)
	changed := func(i int, change func(*conformance.Report)) conformance.ShardReport {
		s := shards[i]
		r, info := *s.Report, *s.Report.Shard
		r.Shard = &info
		change(&r)
		s.Report, s.Name = &r, "changed"
		return s
	}
	cut := shards[1]
	cut.Evidence = cut.Evidence[:len(cut.Evidence)/2]
	empty := shards[1]
	empty.Evidence = nil
	exchanged := shards[1]
	exchanged.Evidence = shards[0].Evidence
	whole, err := conformance.Evaluate(t.Context(), cfg)
	require.NoError(t, err)
	twice, err := conformance.Rewritten(shards[1], func(w *conformance.Wire) { w.Cases[0].Index = 0; w.Cases = append(w.Cases, w.Cases[0]) })
	require.NoError(t, err)
	other = cfg
	other.Reproduce = "plumbline gate --candidate ./another"
	commands := run(other, 3)
	senseless := slices.Clone(shards)
	for i := range senseless { // logits over another vocabulary in each
		senseless[i], err = conformance.Rewritten(senseless[i], func(w *conformance.Wire) {
			w.Cases[0].Logits = &conformance.LogitProfile{Rows: make([]conformance.LogitRow, 1), Offset: make([]float64, w.Cases[0].Index+1)}
		})
		require.NoError(t, err)
	}
	lost, doubled := slices.Clone(shards), slices.Clone(shards)
	for i := range shards {
		lost[i] = withParts(t, shards[i], nil)
		doubled[i] = withParts(t, shards[i], []string{"*routes"})
	}
	for _, tc := range []struct {
		name   string
		shards []conformance.ShardReport
		want   []string
	}{
		{"another command", []conformance.ShardReport{shards[0], shards[1], commands[2]}, []string{"command: got", "./another", "not shards of one run"}},
		{"what no run writes", senseless, []string{"evidence.bin: it holds what no run writes"}},
		{"none", nil, []string{"got no report"}},
		{"a missing one", shards[:2], []string{"got 2 of 3 shards", "missing: [2]"}},
		{"one twice", []conformance.ShardReport{shards[0], shards[1], shards[1]}, []string{"shard 2 of 3 (index 1): got it twice"}},
		{"one of another number", []conformance.ShardReport{shards[0], shards[1], run(cfg, 2)[1]}, []string{"number of shards: got 2, want 3"}},
		{"other budgets", []conformance.ShardReport{shards[0], shards[1], budgets[2]}, []string{"plan"}},
		{"fewer cases", []conformance.ShardReport{shards[0], shards[1], fewer[2]}, []string{"number of cases: got 2, want 3"}},
		{"other ids", []conformance.ShardReport{shards[0], shards[1], ids[2]}, []string{"plan"}},
		{"other checks", []conformance.ShardReport{shards[0], shards[1], checks[2]}, []string{"plan"}},
		{"other waivers", []conformance.ShardReport{shards[0], shards[1], waivers[2]}, []string{"plan"}},
		{"other skips", []conformance.ShardReport{shards[0], shards[1], skips[2]}, []string{"plan"}},
		{"another candidate", []conformance.ShardReport{shards[0], shards[1], changed(2, func(r *conformance.Report) { r.Candidate.Version = "v2" })}, []string{"candidate", "v2"}},
		{"another model", []conformance.ShardReport{shards[0], shards[1], changed(2, func(r *conformance.Report) { r.Reference.Model = "m2" })}, []string{"reference", "m2"}},
		{"another schema", []conformance.ShardReport{shards[0], shards[1], changed(2, func(r *conformance.Report) { r.SchemaVersion = 1 })}, []string{"schema_version: got 1, want 2"}},
		{"another tool", []conformance.ShardReport{shards[0], shards[1], changed(2, func(r *conformance.Report) { r.Tool.Version = "v9" })}, []string{"tool", "v9"}},
		{"another processor", []conformance.ShardReport{shards[0], shards[1], changed(2, func(r *conformance.Report) { r.Tool.Arch = "vax" })}, []string{"tool", "/vax"}},
		{"another compiler", []conformance.ShardReport{shards[0], shards[1], changed(2, func(r *conformance.Report) { r.Tool.Go = "go9" })}, []string{"tool", "go9"}},
		{"a whole run", []conformance.ShardReport{shards[0], shards[1], {Name: "whole", Report: whole}}, []string{"whole: got the report of a whole run"}},
		{"half evidence", []conformance.ShardReport{shards[0], cut, shards[2]}, []string{"sha256", "half-written"}},
		{"no evidence", []conformance.ShardReport{shards[0], empty, shards[2]}, []string{"no evidence"}},
		{"another's evidence", []conformance.ShardReport{shards[0], exchanged, shards[2]}, []string{"sha256", "belongs to another report"}},
		{"an index that its evidence doesn't have", []conformance.ShardReport{shards[0], shards[1], changed(1, func(r *conformance.Report) { r.Shard.Index = 2 })}, []string{"shard: got"}},
		{"work that nobody did", lost, []string{"work that is no case's: got 0 parts in all shards, want 5"}},
		{"work done twice", doubled, []string{"*routes: got it twice"}},
		{"a case twice", []conformance.ShardReport{shards[0], twice, shards[2]}, []string{"twice"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rep, err := conformance.Merge(tc.shards, conformance.MergeOptions{})
			require.Error(t, err)
			assert.Nil(t, rep)
			for _, want := range tc.want {
				assert.Contains(t, err.Error(), want)
			}
			assert.True(t, strings.HasPrefix(err.Error(), "conformance: merge: "), err.Error())
		})
	}
	_, err = conformance.Merge(slices.Clone(shards), conformance.MergeOptions{})
	assert.NoError(t, err, "the shards themselves are whole")
}

// withParts is a shard that says it did other work that is no case's.
func withParts(t *testing.T, s conformance.ShardReport, parts []string) conformance.ShardReport {
	t.Helper()
	out, err := conformance.Rewritten(s, func(w *conformance.Wire) { w.Shard.Parts = parts })
	require.NoError(t, err)
	out.Report.Shard.Parts = parts
	return out
}
