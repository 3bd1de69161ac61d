package conformance_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/mutant"
	"github.com/plumbline-go/plumbline/engine/quant"
	"github.com/plumbline-go/plumbline/tools/suite"
)

// localising is the seeded suite with its clean runs remembered, restricted
// to the value checks and to as many prompts as medians need.
func localising(t *testing.T) conformance.Config {
	t.Helper()
	cfg, err := seeded()
	require.NoError(t, err)
	cfg = conformance.WithMemory(cfg)
	cfg.Only = []string{"ResidualShape", "ResidualCandidate", "LocalError"}
	cfg.ReferenceCases = 0
	var strong []engine.Case
	for _, c := range cfg.Cases {
		if n := len(c.TokenIDs); n >= 8 && n <= 24 {
			strong = append(strong, c)
		}
	}
	require.GreaterOrEqual(t, len(strong), conformance.MedianCases)
	slices.SortFunc(strong, func(a, b engine.Case) int { return len(a.TokenIDs) - len(b.TokenIDs) })
	cfg.Cases = strong[:conformance.MedianCases]
	return cfg
}

// TestLocalErrorNamesEveryLayer plants layered faults in the default candidate:
// each must be named at its layer and at no other. Two faults go through every
// layer, the other seven through every third, each from another layer on, which
// keeps it fast.
func TestLocalErrorNamesEveryLayer(t *testing.T) {
	sweep(t)
	cfg := localising(t)
	layers := cfg.Reference.Weights().Arch().Layers
	for k, name := range []string{
		"norm-gain-ones", "stale-cache-row", "gate-up-swapped", "layer-skipped", "rope-base",
		"q-position-off-by-one", "q-bias-missing", "kv-heads-swapped", "layers-swapped",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stride := 1
			if k >= 2 {
				stride = 3
			}
			for layer := k % stride; layer < layers; layer += stride {
				if name == "layers-swapped" && layer == layers-1 {
					continue // there is no layer after the last
				}
				planted, err := cfg.Mutants(cfg, conformance.Control{Mutant: name, Side: conformance.SideCandidate, Layer: layer})
				require.NoError(t, err)
				rep, err := conformance.Evaluate(t.Context(), planted)
				require.NoError(t, err)
				assertNamed(t, rep, layer+1, fmt.Sprintf("%s at layer %d", name, layer))
				partner := fmt.Sprintf("behaves like layer %d, not like layer %d", layer+1, layer)
				assert.Equal(t, name == "layers-swapped", strings.Contains(strings.Join(rep.Notes, "\n"), partner),
					"%s at layer %d; notes %v", name, layer, rep.Notes)
			}
		})
	}
}

func assertNamed(t *testing.T, rep *conformance.Report, row int, what string) {
	t.Helper()
	assert.Equal(t, conformance.Fails, rep.Conclusion, what)
	if assert.NotNil(t, rep.FirstBadRow, what) {
		assert.Equal(t, row, *rep.FirstBadRow, "%s; notes %v", what, rep.Notes)
	}
	if assert.NotNil(t, rep.Source, what) {
		assert.Equal(t, engine.RowProbe(row), *rep.Source, what)
	}
}

// TestDumpFaultsAreNotBlamedOnALayer plants faults of the dump: the row is
// named, and no layer.
func TestDumpFaultsAreNotBlamedOnALayer(t *testing.T) {
	sweep(t)
	cfg := localising(t)
	layers := cfg.Reference.Weights().Arch().Layers
	for _, tc := range []struct {
		mutant string
		at     []int
	}{
		{"duplicated-row", []int{1, 8, 14, layers - 1}},
		{"doubled-scale", []int{0, 1, 12, layers - 1}},
		{"nan-row", []int{0, 5, layers}},
		{"zero-row", []int{0, 5, layers}},
		{"constant-row", []int{0, 5, layers}},
		{"rows-swapped", []int{3, 20}},
		{"post-norm-last-row", []int{layers}},
	} {
		m, err := mutant.Lookup(tc.mutant)
		require.NoError(t, err)
		for _, at := range tc.at {
			k := conformance.Control{Mutant: tc.mutant, Side: conformance.SideCandidate, Layer: at}
			if m.Place == mutant.Nowhere {
				k.Layer = -1
			}
			planted, err := cfg.Mutants(cfg, k)
			require.NoError(t, err)
			rep, err := conformance.Evaluate(t.Context(), planted)
			require.NoError(t, err)
			what := fmt.Sprintf("%s at row %d; notes %v", tc.mutant, at, rep.Notes)
			assert.Equal(t, conformance.Fails, rep.Conclusion, what)
			if assert.NotNil(t, rep.FirstBadRow, what) {
				assert.Equal(t, at, *rep.FirstBadRow, what)
			}
			assert.Nil(t, rep.Source, what)
			if assert.NotNil(t, rep.Kind, what) {
				assert.Equal(t, conformance.KindDump, *rep.Kind, what)
			}
		}
	}
}

// TestFaultsOfAllLayersAndOfTheInput: the other two kinds.
func TestFaultsOfAllLayersAndOfTheInput(t *testing.T) {
	sweep(t)
	cfg := localising(t)
	for _, tc := range []struct {
		mutant string
		kind   conformance.Kind
		row    int
	}{
		{"rope-base", conformance.KindAllLayers, 1},
		{"first-token-embedding", conformance.KindInput, 0},
	} {
		planted, err := cfg.Mutants(cfg, conformance.Control{Mutant: tc.mutant, Side: conformance.SideCandidate, Layer: -1})
		require.NoError(t, err)
		rep, err := conformance.Evaluate(t.Context(), planted)
		require.NoError(t, err)
		assertNamed(t, rep, tc.row, tc.mutant)
		if assert.NotNil(t, rep.Kind, tc.mutant) {
			assert.Equal(t, tc.kind, *rep.Kind, "%s; notes %v", tc.mutant, rep.Notes)
		}
	}
}

// TestNoFalseAlarm: emulations in other schemes, as honest as the yardstick,
// raise nothing, on any subset size.
func TestNoFalseAlarm(t *testing.T) {
	sweep(t)
	for name, open := range map[string]func() (conformance.Config, error){"trained": embedded, "seeded": seeded} {
		t.Run(name, func(t *testing.T) { noFalseAlarm(t, open) })
	}
}

func noFalseAlarm(t *testing.T, open func() (conformance.Config, error)) {
	full, err := open()
	require.NoError(t, err)
	full = conformance.WithMemory(full)
	full.Cases = suite.ProofCases(full.Cases)
	full.Only = []string{"PromptTokens", "ResidualShape", "LastTokenEmbed", "ResidualCandidate", "LocalError",
		"LogitRowContract", "LogitCandidate", "ResidualToLogits", "StopRule"}
	full.ReferenceCases = 0
	few, one := full, full
	few.Cases, one.Cases, one.DecodeSteps = full.Cases[2:5], full.Cases[3:4], 1
	for i, v := range quant.Variants() {
		var heads []quant.CandidateOption
		if i%2 == 1 {
			heads = append(heads, quant.Int32Logits())
		}
		for _, cfg := range []conformance.Config{full, few, one} {
			cfg.Candidate = quant.FromWeights(cfg.Reference.Weights(), v.Options...).Candidate(scaled, heads...)
			rep, err := conformance.Evaluate(t.Context(), cfg)
			require.NoError(t, err)
			assert.Empty(t, rep.Failures(), "%s on %d cases", v.Name, len(cfg.Cases))
			assert.Nil(t, rep.FirstBadRow, "%s on %d cases", v.Name, len(cfg.Cases))
		}
	}
}

// TestFloatCandidate: a float32 engine is held to float32. The reference's own
// rows pass against its float64 run; one wrong constant, which int8 rows can't
// show, does not.
func TestFloatCandidate(t *testing.T) {
	sweep(t)
	cfg := localising(t)
	cfg.Candidate = floatCandidate{cfg.Reference}
	rep, err := conformance.Evaluate(t.Context(), cfg)
	require.NoError(t, err)
	assert.Empty(t, rep.Failures())
	assert.Positive(t, rep.Executed)

	// An epsilon of 1e-5 for 1e-6: seen, and named, though by little.
	const layer = 11
	cfg.Candidate = floatCandidate{referenceMutant(t, cfg, "norm-eps", layer)}
	rep, err = conformance.Evaluate(t.Context(), cfg)
	require.NoError(t, err)
	assertNamed(t, rep, layer+1, "norm-eps in a float candidate")

	cfg.Candidate = floatCandidate{referenceMutant(t, cfg, "norm-gain-ones", layer)}
	rep, err = conformance.Evaluate(t.Context(), cfg)
	require.NoError(t, err)
	assertNamed(t, rep, layer+1, "norm-gain-ones in a float candidate")
	worst := 0.0
	for _, f := range rep.Failures() {
		if f.ID == "LocalError" && f.Case != "*" {
			worst = max(worst, float64(f.Findings[0].Got)/float64(f.Findings[0].Limit.Value))
		}
	}
	assert.GreaterOrEqual(t, worst, 10.0, "a float32 control must miss its bound by 10")
}

// TestSwappedLayersThatNearlyCommute: in a trained model two neighbouring layers
// in the wrong order give nearly the same row behind them, as a bad dump row
// would. They behave like each other, and that decides.
func TestSwappedLayersThatNearlyCommute(t *testing.T) {
	sweep(t)
	cfg, err := embedded()
	require.NoError(t, err)
	// On short prompts the two commute best.
	cfg.Cases = slices.DeleteFunc(slices.Clone(cfg.Cases), func(c engine.Case) bool { return len(c.TokenIDs) < 8 || len(c.TokenIDs) > 24 })
	cfg.ReferenceCases = 0
	cfg.Only = []string{"ResidualShape", "ResidualCandidate", "LocalError"}
	const layer = 12
	cfg, err = cfg.Mutants(cfg, conformance.Control{Mutant: "layers-swapped", Side: conformance.SideCandidate, Layer: layer})
	require.NoError(t, err)
	rep, err := conformance.Evaluate(t.Context(), cfg)
	require.NoError(t, err)
	assertNamed(t, rep, layer+1, "layers-swapped in the trained model")
	if assert.NotNil(t, rep.Kind) {
		assert.Equal(t, conformance.KindLayer, *rep.Kind)
	}
	notes := strings.Join(rep.Notes, "\n")
	assert.Contains(t, notes, "behaves like layer 13, not like layer 12")
	assert.NotContains(t, notes, "row 13 heals", "one of the two is said, not both")
}
