package main

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/golden/metric"
	"github.com/plumbline-go/plumbline/golden/trace"
)

// nextExpert is an engine whose router at a layer takes the expert behind the last
// one in its stead, where the margin is at most so wide; the layers behind it go on
// from there.
func nextExpert(t *testing.T, e *reference.Engine, prompts [][]int, pad, layer int, margin float64) *reference.Engine {
	t.Helper()
	longest := 0
	for _, p := range prompts {
		longest = max(longest, len(p))
	}
	forced, stage := make([]engine.Routes, len(prompts)), -1
	require.NoError(t, e.TraceBatch(t.Context(), prompts, pad, func(s engine.Stage) error {
		if stage++; stage-1 != layer {
			return nil
		}
		for c, p := range prompts {
			ids := make([][]int, len(p))
			for i := range ids {
				scores := s.Routing.Scores[(c+1)*longest-len(p)+i]
				k := len(s.Routing.IDs[0])
				top := metric.TopN(scores, k+1)
				ids[i] = top[:k:k]
				if scores[top[k-1]]-scores[top[k]] <= margin {
					ids[i] = append(top[:k-1:k-1], top[k])
				}
			}
			forced[c] = engine.Routes{layer: {IDs: ids}}
		}
		return nil
	}))
	wrong, err := e.Forced(forced...)
	require.NoError(t, err)
	return wrong
}

func bfloat16Engine(t *testing.T, model string) *reference.Engine {
	t.Helper()
	ckpt, err := reference.Load(model)
	require.NoError(t, err)
	e, err := reference.New(ckpt, reference.WithDType(reference.BFloat16), reference.WithFusedAttention())
	require.NoError(t, err)
	return e
}

// A router that takes the next expert in every near tie has no FLIP: the rate at that
// gate alone tells, and only there. The sound one conforms.
func TestARouterThatTakesTheNextExpertOfNearTies(t *testing.T) {
	all := map[string]int{}
	for i, c := range trace.Standard().Conditions {
		all[c.Name] = i
	}
	for layer, margin := range map[int]float64{0: 0, 1: 0.007, 2: 0.005} { // at 0 there is no router
		t.Run(fmt.Sprint(layer), func(t *testing.T) {
			dir := moeFolder(t)
			e := bfloat16Engine(t, filepath.Join(dir, "model"))
			if layer > 0 {
				e = nextExpert(t, e, moePrompts(), moeEOS, layer, margin)
			}
			recordRun(t, filepath.Join(dir, "raw"), e, moePrompts(), moeLayers, moeEOS, all)
			code, r, stderr := runRecorded(t, dir)
			require.Zero(t, r.Flip)
			require.Len(t, r.Gates, 2)
			for i, g := range r.Gates {
				require.Equal(t, i+1, g.Layer)
				require.Equal(t, 320, g.Rows)
				require.Equal(t, g.Rows, g.Above+g.NearTies) // no exact ties
				require.False(t, g.Blind)
				require.Equal(t, g.Layer == layer, g.Mismatches > 0)
			}
			if layer == 0 {
				require.Equal(t, exitDone, code, stderr)
				return
			}
			require.Equal(t, exitFails, code, stderr)
			require.Len(t, r.Failures, 1)
			require.Regexp(t, fmt.Sprintf(`^layer_%02d: other experts in [0-9]+ of [0-9]+ near ties, float32 has others in [0-9]+: probability `, layer), r.Failures[0])
			require.LessOrEqual(t, 10*float64(r.Gates[layer-1].Probability), 5e-7)
		})
	}
}
