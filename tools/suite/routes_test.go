package suite_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/golden/trace"
	"github.com/plumbline-go/plumbline/tools/suite"
)

// ofRoutes is evidence that controls of routed models are planted in.
const ofRoutes = conformance.NeedRoutes | conformance.NeedForcedRoutes | conformance.NeedRouteCandidate

// routesDiffer reports whether a fault was planted in one model or one gate.
func routesDiffer(t *testing.T, a, b *conformance.Routes) bool {
	t.Helper()
	require.Equal(t, 1, len(b.Models)+len(b.Gates), "the others are clean")
	if len(b.Gates) == 1 {
		for _, g := range a.Gates {
			if g.Name == b.Gates[0].Name {
				return g.Reference != b.Gates[0].Reference
			}
		}
	}
	x, y := a.Models[0], b.Models[0]
	if x.Golden != y.Golden || x.Reference != y.Reference {
		return true
	}
	return x.Candidate != y.Candidate
}

// TestTraceFaultsLeaveTheTraceAlone: a fault of a trace is in the planted one only, and
// its tensors are the clean ones' memory.
func TestTraceFaultsLeaveTheTraceAlone(t *testing.T) {
	cfg, err := suite.Embedded()
	require.NoError(t, err)
	clean, err := cfg.Trace.Open(t.Context())
	require.NoError(t, err)
	bytesOf := func(of *conformance.Traced) []byte {
		var b bytes.Buffer
		require.NoError(t, of.Document.Encode(&b))
		return b.Bytes()
	}
	before, planted := bytesOf(clean), 0
	for _, c := range conformance.Builtin().Checks() {
		if c.Needs&conformance.NeedTrace == 0 {
			continue
		}
		for _, k := range c.Controls {
			broken, err := cfg.Mutants(cfg, k)
			require.NoError(t, err)
			of, err := broken.Trace.Open(t.Context())
			require.NoError(t, err)
			require.NotSame(t, clean, of)
			for i, s := range of.Sources {
				trace.CheckHashes(clean.Document, i, s.Recorded) // reads them all
			}
			planted++
		}
	}
	require.Greater(t, planted, 8)
	require.Equal(t, before, bytesOf(clean))
	for i, s := range clean.Sources {
		problems, looked := cfg.Trace.Plan.CheckContent("", s.Variants, s.Boundary)
		require.Empty(t, problems)
		require.Positive(t, looked)
		problems, looked = trace.CheckHashes(clean.Document, i, s.Recorded)
		require.Empty(t, problems)
		require.Positive(t, looked)
	}
}
