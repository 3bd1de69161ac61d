package conformance_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/mutant"
	"github.com/plumbline-go/plumbline/engine/quant"
)

// blockEngine is an engine with the checkpoint's own weights and activations in
// blocks, in an honest variant of what the yardstick emulates. embedUlp moves
// its embedding row by a rounding of float32.
type blockEngine struct {
	engine.Candidate
	embedUlp bool
}

func (b blockEngine) Info(context.Context) (engine.Info, error) {
	return engine.Info{Name: "blocks", Layers: engine.LayersFloat32, Logits: engine.LogitsFloat32,
		Weights: "Q8_0 (a file)", Activations: "int8 blocks", KVCache: "f16"}, nil
}

func (b blockEngine) Run(ctx context.Context, req engine.Request) (*engine.Response, error) {
	resp, err := b.Candidate.Run(ctx, req)
	if err != nil || !b.embedUlp {
		return resp, err
	}
	h := resp.Layers.Header()
	rows := make([][]float64, h.Rows)
	for i := range rows {
		rows[i] = make([]float64, h.Width)
		if _, err := resp.Layers.Row(i, rows[i]); err != nil {
			return nil, err
		}
	}
	rows[0][0] = float64(math.Nextafter32(float32(rows[0][0]), 10))
	resp.Layers = floatRows{rows, h.Fingerprint}
	return resp, nil
}

func TestBlockSchemeIsJudgedByItsOwnYardstick(t *testing.T) {
	onlyOnEmbedded(t)
	cfg := localising(t)
	scheme := engine.Scheme{FloatWeights: true, ActivationBlock: 32, KVCache: engine.KVCache{K: engine.KVFloat16, V: engine.KVFloat16}}
	of := func(w engine.Weights) engine.Candidate {
		return quant.FromWeights(w, quant.RoundHalfAway(), quant.KVCacheInt8()).Candidate(scheme)
	}
	clean := of(cfg.Reference.Weights())
	for _, ulp := range []bool{false, true} {
		cfg.Candidate = blockEngine{clean, ulp}
		rep, err := conformance.Evaluate(t.Context(), cfg)
		require.NoError(t, err)
		assert.Equal(t, conformance.Partial, rep.Conclusion, "embedding off by an ulp: %v: row %v, notes %v", ulp, rep.FirstBadRow, rep.Notes) // some checks alone
		assert.Nil(t, rep.FirstBadRow)
	}

	const layer = 7
	op, err := mutant.Lookup("gate-up-swapped")
	require.NoError(t, err)
	faulty, err := op.Weights(cfg.Reference.Weights(), layer)
	require.NoError(t, err)
	cfg.Candidate = blockEngine{of(faulty), false}
	rep, err := conformance.Evaluate(t.Context(), cfg)
	require.NoError(t, err)
	assert.Equal(t, conformance.Fails, rep.Conclusion)
	if assert.NotNil(t, rep.FirstBadRow) && assert.NotNil(t, rep.Source) {
		assert.Equal(t, layer+1, *rep.FirstBadRow)
		assert.Equal(t, engine.ResidPost(layer), *rep.Source)
	}
}
