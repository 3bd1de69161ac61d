package reference_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
)

// eps32 is half a unit in the last place of float32 at 1.
const eps32 = 1.0 / (1 << 24)

func capture(t testing.TB, e *reference.Engine, ids []int) engine.Trace {
	t.Helper()
	tr, err := e.Capture(context.Background(), ids)
	require.NoError(t, err)
	return tr
}

// TestFloat64MatchesNaiveLoops: float64 rounding (1.1e-16) times the few
// thousand operations behind a value leaves 1e-12.
func TestFloat64MatchesNaiveLoops(t *testing.T) {
	w := randomWeights(smallArch(), 1)
	for _, tokens := range []int{1, 2, 7, 70} {
		ids := prompt(tokens, w.arch.Vocab)
		e := mustNew(t, w, reference.WithDType(reference.Float64))
		want := naive{w.arch, w}.rows(ids)
		requireClose(t, capture(t, e, ids).Rows(), want, 1e-12)
		batched, err := e.CaptureBatched(context.Background(), ids)
		require.NoError(t, err)
		requireClose(t, batched, want, 1e-12)
	}
}
