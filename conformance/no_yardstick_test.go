package conformance_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
)

// TestNoYardstick: a quantised candidate without anything to bound it by is an
// error that says what made it one, and what to set.
func TestNoYardstick(t *testing.T) {
	onlyOnEmbedded(t)
	cfg, err := seeded()
	require.NoError(t, err)
	cfg.Yardstick, cfg.Cases, cfg.ReferenceCases, cfg.Only = nil, cfg.Cases[:1], 1, []string{"LocalError"}
	_, err = conformance.Evaluate(t.Context(), cfg)
	require.ErrorContains(t, err, `conformance: case `)
	require.ErrorContains(t, err, `Config.Yardstick is nil: the candidate declares layers "int8-scaled"`)
	require.ErrorContains(t, err, "want Yardstick: quant.New(ref)")
	require.NotContains(t, err.Error(), "dtype")
	cfg.Only = []string{"LogitCandidate"}
	_, err = conformance.Evaluate(t.Context(), cfg)
	require.ErrorContains(t, err, "Config.Yardstick is nil")
	// int8 weights below float32 rows.
	cfg.Only = []string{"LocalError"}
	cfg.Candidate = redeclared{cfg.Candidate, engine.Info{Name: "x", Layers: engine.LayersFloat32, Weights: "int8", DType: "float32"}}
	_, err = conformance.Evaluate(t.Context(), cfg)
	require.ErrorContains(t, err, `the candidate declares weights "int8", dtype "float32", so`)
}

// redeclared is a candidate that says something else of itself.
type redeclared struct {
	engine.Candidate
	info engine.Info
}

func (r redeclared) Info(context.Context) (engine.Info, error) { return r.info, nil }

// TestRelativeFolder: a test runs in its package's folder, so that a relative path
// of a folder that isn't there is told with what it came to.
func TestRelativeFolder(t *testing.T) {
	onlyOnEmbedded(t)
	cfg, err := seeded()
	require.NoError(t, err)
	here, err := os.Getwd()
	require.NoError(t, err)
	cfg.Cases, cfg.Candidate = nil, engine.Dir("out/dumps")
	_, err = conformance.Evaluate(t.Context(), cfg)
	require.ErrorContains(t, err, "out/dumps")
	require.ErrorContains(t, err, "relative to the working directory, where it means "+filepath.Join(here, "out", "dumps"))
	require.ErrorContains(t, err, "give an absolute path")
	cfg.Candidate = engine.Dir(filepath.Join(here, "out"))
	_, err = conformance.Evaluate(t.Context(), cfg)
	require.ErrorContains(t, err, "no such file")
	require.NotContains(t, err.Error(), "relative")
}

// TestRelativeFlags: so are the flags of this package's own test.
func TestRelativeFlags(t *testing.T) {
	onlyOnEmbedded(t)
	for _, f := range []*string{modelFlag, candidateFlag, goldenFlag, reportFlag} {
		*f = "dumps"
		_, err := flagged()
		*f = ""
		require.ErrorContains(t, err, " dumps: got a relative path, want an absolute one")
	}
}
