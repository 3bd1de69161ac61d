package quant

import (
	"testing"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/stretchr/testify/require"
)

func TestCandidateDeclaresWhatItDoes(t *testing.T) {
	for _, c := range []struct {
		scheme       engine.Scheme
		opts         []Option
		layers, cach string
	}{
		{engine.Scheme{RowsInt8: true}, nil, engine.LayersInt8Scaled, "float64"},
		{engine.Scheme{}, []Option{KVCacheInt8()}, engine.LayersFloat32, "int8"},
	} {
		info, err := FromWeights(tiny(1), c.opts...).Candidate(c.scheme).Info(t.Context())
		require.NoError(t, err)
		require.Equal(t, c.layers, info.Layers)
		require.Equal(t, c.cach, info.KVCache)
		require.Equal(t, "int8", info.Weights)
		require.Equal(t, "int8", info.Activations)
	}
}

func TestCandidateDeclaresItsLogits(t *testing.T) {
	info, err := FromWeights(tiny(1)).Candidate(engine.Scheme{}).Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, engine.LogitsFloat32, info.Logits)
	info, err = FromWeights(tiny(1)).Candidate(engine.Scheme{}, Int32Logits()).Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, engine.LogitsInt32, info.Logits)
}

func TestCandidateAnswersWithACapture(t *testing.T) {
	e := FromWeights(tiny(1))
	for _, int8Rows := range []bool{true, false} {
		scheme := engine.Scheme{RowsInt8: int8Rows}
		// FNV-1a 64 of "foobar", from the published test vectors.
		resp, err := e.Candidate(scheme).Run(t.Context(), engine.Request{Case: engine.Case{Text: "foobar", TokenIDs: []int{4, 2}}})
		require.NoError(t, err)
		require.Equal(t, []int{4, 2}, resp.PromptIDs)
		require.Equal(t, engine.CaptureHeader{Rows: 4, Width: 10, Fingerprint: 0x85944171f73967e8, Mode: 1}, resp.Layers.Header())
		want, steps, err := e.lastRows(t.Context(), scheme, []int{4, 2}, nil)
		require.NoError(t, err)
		row := make([]float64, 10)
		for i := range want {
			step, err := resp.Layers.Row(i, row)
			require.NoError(t, err)
			require.Equal(t, want[i], row)
			require.Equal(t, steps[i], step)
			require.Equal(t, int8Rows, step > 0)
		}
		for _, i := range []int{-1, 4} {
			_, err = resp.Layers.Row(i, row)
			require.Error(t, err)
		}
		_, err = resp.Layers.Row(0, row[:9])
		require.ErrorContains(t, err, "9 values")
		require.NoError(t, resp.Close())
	}
	_, err := e.Candidate(engine.Scheme{}).Run(t.Context(), engine.Request{})
	require.ErrorContains(t, err, "no token ids")
}
