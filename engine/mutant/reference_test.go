package mutant

import (
	"context"
	"slices"
	"testing"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/quant"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// standIn is a reference whose rows the emulation computes: enough to see what
// a mutant changes. Its batched rows differ from the incremental ones. A method
// that no mutant uses isn't there: calling it panics.
type standIn struct {
	engine.Reference
	w engine.Weights
	e *quant.Emulation
}

var shared = quant.NewCache()

func newReference(t *testing.T) standIn { return open(weights(t)) }

func open(w engine.Weights) standIn {
	return standIn{w: w, e: quant.FromWeights(w, quant.WithCache(shared))}
}

type trace struct{ rows [][]float64 }

func (t trace) Rows() [][]float64 { return t.rows }
func (t trace) Layer(context.Context, int, []float64) ([]float64, error) {
	return []float64{42}, nil
}

func (s standIn) Weights() engine.Weights { return s.w }
func (s standIn) Describe() engine.Info   { return engine.Info{Name: "stand-in"} }
func (s standIn) Capture(ctx context.Context, ids []int) (engine.Trace, error) {
	rows, err := s.e.Emulate(ctx, engine.Scheme{}, ids)
	return trace{rows}, err
}
func (s standIn) CaptureWholeStep(ctx context.Context, ids []int) ([][]float64, error) {
	return s.e.Emulate(ctx, engine.Scheme{}, ids)
}
func (s standIn) CaptureBatched(ctx context.Context, ids []int) ([][]float64, error) {
	return s.e.Emulate(ctx, engine.Scheme{RowsInt8: true}, ids)
}
func (s standIn) LastHidden(ctx context.Context, ids []int) ([]float64, error) {
	rows, err := s.e.Emulate(ctx, engine.Scheme{}, ids)
	if err != nil {
		return nil, err
	}
	return s.FinalNorm(ctx, rows[len(rows)-1])
}
func (s standIn) Embedding(int) ([]float64, error) { return []float64{1}, nil }
func (s standIn) FinalNorm(ctx context.Context, row []float64) ([]float64, error) {
	return finalNorm(s.w)(ctx, row)
}

// Decode is there with forced tokens alone.
func (s standIn) Decode(ctx context.Context, ids []int, o engine.DecodeOptions) (engine.Decoded, error) {
	rows, err := s.e.EmulateLogits(ctx, engine.Scheme{}, ids, o.Forced)
	d := engine.Decoded{Logits: rows}
	for _, row := range rows {
		d.OutputIDs = append(d.OutputIDs, chosen(row))
	}
	return d, err
}

// DecodeBatch is one decode after the other.
func (s standIn) DecodeBatch(ctx context.Context, prompts, forced [][]int) ([][][]float64, error) {
	return decodeEach(ctx, s, prompts, forced)
}

func decodeEach(ctx context.Context, ref engine.Reference, prompts, forced [][]int) (rows [][][]float64, err error) {
	for i, ids := range prompts {
		d, err := ref.Decode(ctx, ids, engine.DecodeOptions{Forced: forced[i]})
		if err != nil {
			return nil, err
		}
		rows = append(rows, d.Logits)
	}
	return rows, nil
}

// LayerAll is a layer of the emulation.
func (s standIn) LayerAll(ctx context.Context, n int, in, mid [][]float64) (engine.LayerRun, error) {
	return s.e.EmulateLayer(ctx, engine.Scheme{}, n, in, mid)
}

func (s standIn) Float32() (engine.Reference, error) { return s, nil }

func (s standIn) Float64() (engine.Reference, error) { return s, nil }

func TestCaptureFaultsOfAReference(t *testing.T) {
	clean, ids := newReference(t), prompt(t)
	before, err := clean.Capture(t.Context(), ids)
	require.NoError(t, err)
	good := before.Rows()
	shorter, err := clean.Capture(t.Context(), ids[:len(ids)-1])
	require.NoError(t, err)
	batched, err := clean.CaptureBatched(t.Context(), ids)
	require.NoError(t, err)
	hidden, err := clean.LastHidden(t.Context(), ids)
	require.NoError(t, err)
	with := func(edit func(rows [][]float64)) [][]float64 {
		rows := slices.Clone(good)
		edit(rows)
		return rows
	}
	wants := map[string][][]float64{
		"post-norm-last-row":     with(func(r [][]float64) { r[28] = hidden }),
		"stale-row":              with(func(r [][]float64) { r[7] = shorter.Rows()[7] }),
		"shifted-index":          slices.Concat(good[:1], good[:28]),
		"aliased-row":            with(func(r [][]float64) { r[7] = good[8] }),
		"batched-as-incremental": batched,
		"row-short":              good[:28],
		"rows-swapped":           with(func(r [][]float64) { r[7], r[8] = good[8], good[7] }),
	}
	for _, m := range captureFaults() {
		if !m.referenceRows {
			continue
		}
		want, ok := wants[m.Name]
		require.True(t, ok, "%s: no expectation", m.Name)
		ref, err := m.Reference(clean, nil, 7)
		require.NoError(t, err)
		tr, err := ref.Capture(t.Context(), ids)
		require.NoError(t, err)
		assert.Equal(t, want, tr.Rows(), m.Name)
		assert.NotEqual(t, good, tr.Rows(), m.Name)
		out, err := tr.Layer(t.Context(), 0, nil)
		require.NoError(t, err)
		assert.Equal(t, []float64{42}, out, "%s: a layer on its own stays clean", m.Name)
		whole, err := ref.CaptureWholeStep(t.Context(), ids)
		require.NoError(t, err)
		assert.Equal(t, good, whole, "%s: the second composition stays clean", m.Name)
	}
	after, err := clean.Capture(t.Context(), ids)
	require.NoError(t, err)
	assert.Equal(t, after.Rows(), before.Rows(), "the clean trace was written")
}

func TestAliasedRowsShareMemory(t *testing.T) {
	m, err := Lookup("aliased-row")
	require.NoError(t, err)
	for at, partner := range map[int]int{7: 8, 28: 27} {
		ref, err := m.Reference(newReference(t), nil, at)
		require.NoError(t, err)
		tr, err := ref.Capture(t.Context(), prompt(t))
		require.NoError(t, err)
		assert.Same(t, &tr.Rows()[at][0], &tr.Rows()[partner][0])
	}
}

func TestStaleRowOfAFirstStepIsZero(t *testing.T) {
	m, err := Lookup("stale-row")
	require.NoError(t, err)
	ref, err := m.Reference(newReference(t), nil, 5)
	require.NoError(t, err)
	tr, err := ref.Capture(t.Context(), []int{17})
	require.NoError(t, err)
	assert.Equal(t, make([]float64, 64), tr.Rows()[5])
}

func TestEngineFaultsOfAReference(t *testing.T) {
	clean, ids := newReference(t), prompt(t)
	good, err := clean.CaptureBatched(t.Context(), ids)
	require.NoError(t, err)
	forced := engine.DecodeOptions{Forced: []int{5, 17}}
	cleanDecode, err := clean.Decode(t.Context(), ids, forced)
	require.NoError(t, err)
	for name, cleanBatch := range map[string]bool{
		"stale-cache-row": true, "q-position-off-by-one": true, "decode-position-shift": true, "first-token-embedding": true,
		"rope-base": false, "norm-gain-ones": false,
	} {
		m, err := Lookup(name)
		require.NoError(t, err)
		ref, err := m.Reference(clean, func(w engine.Weights) (engine.Reference, error) { return open(w), nil }, 3)
		require.NoError(t, err)
		faulty, err := m.Weights(clean.Weights(), 3)
		require.NoError(t, err)
		want, err := open(faulty).Capture(t.Context(), ids)
		require.NoError(t, err)
		tr, err := ref.Capture(t.Context(), ids)
		require.NoError(t, err)
		assert.Equal(t, want.Rows(), tr.Rows(), name)
		whole, err := ref.CaptureWholeStep(t.Context(), ids)
		require.NoError(t, err)
		assert.Equal(t, want.Rows(), whole, "%s: both compositions run the faulty step", name)
		batched, err := ref.CaptureBatched(t.Context(), ids)
		require.NoError(t, err)
		assert.Equal(t, cleanBatch, slices.EqualFunc(good, batched, slices.Equal[[]float64]), "%s: batched prefill clean", name)
		wantHidden, err := open(faulty).LastHidden(t.Context(), ids)
		require.NoError(t, err)
		hidden, err := ref.LastHidden(t.Context(), ids)
		require.NoError(t, err)
		assert.Equal(t, wantHidden, hidden, name)
		wantDecode, err := open(faulty).Decode(t.Context(), ids, forced)
		require.NoError(t, err)
		decode, err := ref.Decode(t.Context(), ids, forced)
		require.NoError(t, err)
		assert.Equal(t, wantDecode, decode, name)
		assert.NotEqual(t, cleanDecode, decode, name)
		batch, err := ref.DecodeBatch(t.Context(), [][]int{ids}, [][]int{forced.Forced})
		require.NoError(t, err)
		assert.Equal(t, [][][]float64{wantDecode.Logits}, batch, name)
	}
}

// A layer over all positions is the faulty engine's, and of a fault that only the
// decode path has, or that is none of the engine's, the clean one's.
func TestLayerOverAllPositionsGoesThrough(t *testing.T) {
	clean, ids := newReference(t), prompt(t)[:5]
	in, err := clean.e.EmulateEmbedding(t.Context(), engine.Scheme{}, ids)
	require.NoError(t, err)
	mid := slices.Clone(in)
	slices.Reverse(mid)
	good, err := clean.LayerAll(t.Context(), 3, in, mid)
	require.NoError(t, err)
	for _, m := range All() {
		if !m.InReference() || ofHybrids(m) {
			continue
		}
		ref, err := m.Reference(clean, func(w engine.Weights) (engine.Reference, error) { return open(w), nil }, 3)
		require.NoError(t, err)
		got, err := ref.LayerAll(t.Context(), 3, in, mid)
		require.NoError(t, err)
		want := good
		if m.weights != nil && !m.decode {
			faulty, err := m.Weights(clean.Weights(), 3)
			require.NoError(t, err)
			want, err = open(faulty).LayerAll(t.Context(), 3, in, mid)
			require.NoError(t, err)
		}
		assert.Equal(t, want, got, m.Name)
		if m.Name == "rope-base" {
			assert.NotEqual(t, good, got, m.Name)
		}
	}
}
