package conformance_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/mutant"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/tools/suite"
)

// runScenario makes this test binary run conformance.Run once more, in a
// process of its own, since a failing Run would fail the test that looks at it.
const runScenario = "PLUMBLINE_TEST_RUN_SCENARIO"

// TestRunInAClient is the client test that runScenario asks for.
func TestRunInAClient(t *testing.T) {
	scenario := os.Getenv(runScenario)
	if scenario == "" {
		t.Skip("started by TestRun")
	}
	var cfg conformance.Config
	if scenario != "empty" {
		var err error
		cfg, err = seeded()
		require.NoError(t, err)
		cfg.Cases, cfg.ReferenceCases = suite.ProofCases(cfg.Cases)[:conformance.MedianCases], 1
	}
	if scenario == "partial" || scenario == "partial-is-allowed" {
		cfg.Candidate = withoutLogits{cfg.Candidate}
		cfg.AllowPartial = scenario != "partial"
	}
	if scenario == "faulty" {
		var err error
		cfg, err = cfg.Mutants(cfg, conformance.Control{Mutant: "layer-skipped", Side: conformance.SideCandidate, Layer: 17})
		require.NoError(t, err)
	}
	if scenario == "faulty-reference" {
		m, err := mutant.Lookup("shifted-index")
		require.NoError(t, err)
		cfg.Reference, err = m.Reference(cfg.Reference, nil, -1)
		require.NoError(t, err)
	}
	if strings.HasPrefix(scenario, "shard") {
		var err error
		cfg.Shard, err = conformance.ShardFromEnv(os.Getenv)
		require.NoError(t, err)
		require.NotNil(t, cfg.Shard)
	}
	if scenario == "shard-faulty" {
		var err error
		cfg, err = cfg.Mutants(cfg, conformance.Control{Mutant: "layer-skipped", Side: conformance.SideCandidate, Layer: 17})
		require.NoError(t, err)
	}
	conformance.Run(t, cfg)
}

// withoutLogits is a candidate that offers none.
type withoutLogits struct{ engine.Candidate }

func (w withoutLogits) Run(ctx context.Context, req engine.Request) (*engine.Response, error) {
	req.NoLogits = true
	return w.Candidate.Run(ctx, req)
}

func TestRun(t *testing.T) {
	sweep(t)
	for _, tc := range []struct {
		scenario string
		passes   bool
		says     []string
	}{
		{"conforms", true, []string{"--- PASS: TestRunInAClient/LocalError", "--- PASS: TestRunInAClient/LogitCandidate"}},
		{"partial-is-allowed", true, []string{"--- PASS: TestRunInAClient/LocalError", "core check not judged: LogitCandidate"}},
		{"partial", false, []string{"conclusion: partial"}},
		{"faulty", false, []string{"--- FAIL: TestRunInAClient/LocalError", "blocks.17.resid_post", "first bad row: 18", "rule: "}},
		{"faulty-reference", false, []string{"the reference failed a check of its own", "--- FAIL: TestRunInAClient/InteriorRowOracle"}},
		{"empty", false, []string{"conclusion: nothing judged"}},
		{"shard", true, []string{"--- PASS: TestRunInAClient/LocalError"}},
		{"shard-empty", true, []string{"--- SKIP: TestRunInAClient", "shard 7 of 7 (index 6) has none of the run's 5 cases"}},
		{"shard-faulty", false, []string{"--- FAIL: TestRunInAClient/LocalError"}},
		{"shard-by-function", false, []string{"the test runner hands out the test functions over the shards itself"}},
	} {
		t.Run(tc.scenario, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRunInAClient$", "-test.v")
			status := filepath.Join(t.TempDir(), "status")
			cmd.Env = append(os.Environ(), runScenario+"="+tc.scenario)
			switch tc.scenario {
			case "shard", "shard-faulty", "shard-by-function":
				cmd.Env = append(cmd.Env, "TEST_TOTAL_SHARDS=3", "TEST_SHARD_INDEX=0", "TEST_SHARD_STATUS_FILE="+status)
			case "shard-empty":
				cmd.Env = append(cmd.Env, "TEST_TOTAL_SHARDS=7", "TEST_SHARD_INDEX=6", "TEST_SHARD_STATUS_FILE="+status)
			}
			if tc.scenario == "shard-by-function" { // what rules_go does before the first test
				require.NoError(t, os.WriteFile(status, nil, 0o666))
			}
			out, err := cmd.CombinedOutput()
			if tc.passes {
				assert.NoError(t, err, string(out))
			} else {
				assert.Error(t, err, string(out))
			}
			for _, s := range tc.says {
				assert.Contains(t, string(out), s)
			}
		})
	}
}

// TestARoundedReferenceIsRefused: bounds would be drawn from float32's error and
// broken by bfloat16's.
func TestARoundedReferenceIsRefused(t *testing.T) {
	onlyOnEmbedded(t)
	cfg, err := seeded()
	require.NoError(t, err)
	cfg.Cases, cfg.Only = cfg.Cases[:1], []string{"ResidualShape"}
	_, err = conformance.Evaluate(t.Context(), cfg)
	require.NoError(t, err)
	cfg.Reference, err = reference.New(cfg.Reference.Weights(), reference.WithDType(reference.BFloat16))
	require.NoError(t, err)
	_, err = conformance.Evaluate(t.Context(), cfg)
	require.EqualError(t, err, `conformance: Config.Reference: got dtype "bfloat16 (emulated)", want float32 or float64: bounds are measured between the two`)
}
