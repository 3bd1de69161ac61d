package suite_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/fixtures"
	"github.com/plumbline-go/plumbline/golden"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// TestTheReferenceDecodesLikeTheGoldens holds the recorded logits and tokens to
// the reference: nothing else reads them yet, and a golden that nothing reads
// could be anything.
func TestTheReferenceDecodesLikeTheGoldens(t *testing.T) {
	if testing.Short() {
		t.Skip("decodes every prompt; run without -short")
	}
	ckpt, err := reference.LoadFS(fixtures.Model(), ".")
	require.NoError(t, err)
	defer ckpt.Close()
	ref, err := reference.New(ckpt)
	require.NoError(t, err)
	set, err := golden.Trained()
	require.NoError(t, err)
	cases, err := fixtures.Prompts()
	require.NoError(t, err)
	for _, c := range cases {
		dec, err := ref.Decode(t.Context(), c.TokenIDs, engine.DecodeOptions{MaxNew: set.Manifest.MaxNew, Stop: set.Manifest.Stop})
		require.NoError(t, err)
		d, err := set.Logits(c.Name)
		require.NoError(t, err)
		require.Len(t, dec.Logits, d.Header().Rows, "%s: rows", c.Name)
		floors := set.Manifest.Precision.Cases[c.Name].Logits
		require.Len(t, floors, d.Header().Rows, "%s: floors", c.Name)
		want, got := make([]float64, d.Header().Vocab), make([]float64, d.Header().Vocab)
		for i, row := range dec.Logits {
			require.NoError(t, d.Row64(i, want))
			best := 0
			for k, x := range row {
				got[k] = x
				if want[k] > want[best] {
					best = k
				}
			}
			assert.Equal(t, best, dec.OutputIDs[i], "%s: token %d", c.Name, i)
			bound := 4 * max(floors[i], math.Exp2(-24)) // as for layers: both sides stray that far from float64
			err := metric.RelativeL2(got, want)
			assert.True(t, err <= bound, "%s: logits of token %d: relative L2 %.3g, want at most %.3g", c.Name, i, err, bound)
		}
	}
}
