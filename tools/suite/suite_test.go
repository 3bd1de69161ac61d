package suite_test

import (
	"bytes"
	"io/fs"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/tools/suite"
)

// TestEmbeddedBindsEveryPart: nothing is left open, and each control that a check
// names can be planted.
func TestEmbeddedBindsEveryPart(t *testing.T) {
	cfg, err := suite.Embedded()
	require.NoError(t, err)
	require.NotNil(t, cfg.Reference)
	require.NotNil(t, cfg.Yardstick)
	require.NotNil(t, cfg.Candidate)
	require.NotEmpty(t, cfg.Cases)
	for _, c := range conformance.Builtin().Checks() {
		for _, k := range c.Controls {
			planted, err := cfg.Mutants(cfg, k)
			require.NoError(t, err, "%s: %s", c.ID, k.Mutant)
			switch {
			case c.Needs&(conformance.NeedTeacher|conformance.NeedTargetRows|conformance.NeedTargetWriter) != 0:
				require.NotSame(t, cfg.Teacher, planted.Teacher, "%s: %s", c.ID, k.Mutant)
				require.True(t, teachersDiffer(t, cfg.Teacher, planted.Teacher), "%s: %s", c.ID, k.Mutant)
			case c.Needs&ofRoutes != 0:
				require.True(t, routesDiffer(t, cfg.Routes, planted.Routes), "%s: %s", c.ID, k.Mutant)
			case c.Needs&conformance.NeedTrace != 0:
				require.NotSame(t, cfg.Trace, planted.Trace, "%s: %s", c.ID, k.Mutant)
			case k.Side == conformance.SideReference:
				require.NotEqual(t, cfg.Reference, planted.Reference, "%s: %s", c.ID, k.Mutant)
			case c.ID == "Provenance":
				require.True(t, filesDiffer(t, cfg, planted), "%s: %s", c.ID, k.Mutant)
			case c.Needs&conformance.NeedAttention != 0:
				require.NotSame(t, cfg.Attention, planted.Attention, "%s: %s", c.ID, k.Mutant)
				require.NotNil(t, planted.Attention.Candidate, "%s: %s", c.ID, k.Mutant)
			default:
				require.NotEqual(t, cfg.Candidate, planted.Candidate, "%s: %s", c.ID, k.Mutant)
			}
		}
	}
	_, err = cfg.Mutants(cfg, conformance.Control{Mutant: "no such fault"})
	require.Error(t, err)
}

// filesDiffer reports whether a fault was planted in goldens, inputs or cases.
func filesDiffer(t *testing.T, a, b conformance.Config) bool {
	t.Helper()
	weights := func(c conformance.Config) []byte {
		data, err := fs.ReadFile(c.GoldenInputs.Checkpoint, "model.safetensors")
		require.NoError(t, err)
		return data
	}
	return a.Golden != b.Golden || len(a.Cases) != len(b.Cases) ||
		!bytes.Equal(a.GoldenInputs.Prompts, b.GoldenInputs.Prompts) || !bytes.Equal(weights(a), weights(b)) ||
		a.Routes != b.Routes || a.Teacher.Golden != b.Teacher.Golden || !bytes.Equal(a.Teacher.Plan, b.Teacher.Plan)
}

// teachersDiffer reports whether a fault was planted in a teacher: in one of its three
// files, its model, or its writer.
func teachersDiffer(t *testing.T, a, b *conformance.Teacher) bool {
	t.Helper()
	target := func(x *conformance.Teacher) []byte {
		data := make([]byte, x.TargetBytes)
		_, err := x.Target.ReadAt(data, 0)
		require.NoError(t, err)
		return data
	}
	row := func(x *conformance.Teacher) []float32 {
		s, err := x.Open(8)
		require.NoError(t, err)
		defer s.Close()
		_, err = s.Prefill(t.Context(), []int{5, 6, 7})
		require.NoError(t, err)
		for range 2 {
			_, err = s.Step(t.Context(), 8)
			require.NoError(t, err)
		}
		row, err := s.Step(t.Context(), 9)
		require.NoError(t, err)
		return slices.Clone(row)
	}
	return !bytes.Equal(a.Plan, b.Plan) || !bytes.Equal(a.Evidence, b.Evidence) || !bytes.Equal(target(a), target(b)) ||
		(a.Create == nil) != (b.Create == nil) || !slices.Equal(row(a), row(b))
}

// TestEmbeddedJudges: one check on the default candidate comes to a verdict.
func TestEmbeddedJudges(t *testing.T) {
	cfg, err := suite.Embedded()
	require.NoError(t, err)
	cfg.Only, cfg.Cases, cfg.ReferenceCases = []string{"ResidualShape"}, cfg.Cases[:1], 1
	rep, err := conformance.Evaluate(t.Context(), cfg)
	require.NoError(t, err)
	require.Equal(t, 1, rep.Executed)
	require.Equal(t, conformance.Partial, rep.Conclusion, "a restricted run is never whole")
}
