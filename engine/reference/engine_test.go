package reference_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
)

var bg = context.Background()

func capture(t testing.TB, e engine.Reference, ids []int) engine.Trace {
	t.Helper()
	tr, err := e.Capture(bg, ids)
	require.NoError(t, err)
	return tr
}

// float64Bound: a relative rounding of 1.1e-16 in each of the few thousand
// operations behind a value leaves less than 1e-12.
const float64Bound = 1e-12

// float32Bound: in each layer a value passes through sums of Hidden, HeadDim,
// Heads*HeadDim, Hidden and Intermediate terms, each of which adds at most its
// length in roundings of 2^-24 (Higham, Accuracy and Stability, ch. 4), and the
// layers add up.
func float32Bound(a engine.Arch) float64 {
	return float64(a.Layers*(2*a.Hidden+a.HeadDim+a.Heads*a.HeadDim+a.Intermediate)) * 0x1p-24
}

func TestMatchesNaiveLoops(t *testing.T) {
	w := randomWeights(smallArch(), 1)
	for _, tokens := range []int{1, 2, 7, 70} {
		t.Run(fmt.Sprintf("%d tokens", tokens), func(t *testing.T) {
			ids := prompt(tokens, w.arch.Vocab)
			want := naive{a: w.arch, w: w}.rows(ids)
			e32 := mustNew(t, w)
			e64, err := e32.Float64()
			require.NoError(t, err)
			requireClose(t, capture(t, e64, ids).Rows(), want, float64Bound)
			requireClose(t, capture(t, e32, ids).Rows(), want, float32Bound(w.arch))
			batched, err := e64.CaptureBatched(bg, ids)
			require.NoError(t, err)
			requireClose(t, batched, want, float64Bound)
			batched, err = e32.CaptureBatched(bg, ids)
			require.NoError(t, err)
			requireClose(t, batched, want, float32Bound(w.arch))
			// float32 is float32: an engine that computed in float64 would be closer.
			if got := capture(t, e32, ids).Rows(); !(relL2(got[3], want[3]) > 1e-9) {
				t.Errorf("float32 rows are within 1e-9 of float64")
			}
		})
	}
}

// TestSplitLinearMatchesNaiveLoops has matrices above 4Mi multiply-adds, which
// are stored as several blocks of rows.
func TestSplitLinearMatchesNaiveLoops(t *testing.T) {
	a := smallArch()
	a.Layers, a.PerLayer = 1, a.PerLayer[:1]
	a.Hidden, a.Intermediate, a.Heads, a.KVHeads, a.HeadDim, a.Vocab = 64, 66000, 4, 1, 16, 10
	w := randomWeights(a, 3)
	ids := []int{3, 9}
	e := mustNew(t, w, reference.WithDType(reference.Float64))
	requireClose(t, capture(t, e, ids).Rows(), naive{a: a, w: w}.rows(ids), float64Bound)
}

func TestCompositionsAreBitIdentical(t *testing.T) {
	e := small()
	for _, tokens := range []int{1, 5, 70} {
		ids := prompt(tokens, smallArch().Vocab)
		rows := capture(t, e, ids).Rows()
		whole, err := e.CaptureWholeStep(bg, ids)
		require.NoError(t, err)
		require.True(t, sameBits(whole, rows), "%d tokens: whole step against graph per layer", tokens)
		require.True(t, sameBits(capture(t, e, ids).Rows(), rows), "%d tokens: two runs", tokens)
	}
}

// TestBatchedIsAnotherComposition: within the float32 bound of the incremental
// run (see TestMatchesNaiveLoops), and not the same bits.
func TestBatchedIsAnotherComposition(t *testing.T) {
	ids := prompt(70, smallArch().Vocab)
	rows := capture(t, small(), ids).Rows()
	batched, err := small().CaptureBatched(bg, ids)
	require.NoError(t, err)
	requireClose(t, batched, rows, 2*float32Bound(smallArch()))
	require.False(t, sameBits(batched, rows))
	require.True(t, sameBits(batched[:1], rows[:1]), "row 0 is the embedding in both")
}

func TestCapacityDoesNotChangeBits(t *testing.T) {
	w := randomWeights(smallArch(), 1)
	ids := prompt(9, w.arch.Vocab)
	want := capture(t, small(), ids).Rows()
	for _, step := range []int{1, 100, 1024} {
		e := mustNew(t, w, reference.WithCapacityStep(step))
		require.True(t, sameBits(capture(t, e, ids).Rows(), want), "capacity step %d", step)
	}
}

func TestLayerReproducesRows(t *testing.T) {
	ids := prompt(9, smallArch().Vocab)
	tr := capture(t, small(), ids)
	rows := tr.Rows()
	check := func() {
		for n := range smallArch().Layers {
			got, err := tr.Layer(bg, n, rows[n])
			require.NoError(t, err)
			require.True(t, sameBits([][]float64{got}, rows[n+1:n+2]), "layer %d", n)
		}
	}
	check()
	// Another row in between must leave the cache as it was.
	other, err := tr.Layer(bg, 1, rows[0])
	require.NoError(t, err)
	require.False(t, sameBits([][]float64{other}, rows[2:3]))
	check()
	// f_n(in) on an input of the caller's, against the loops: the last position
	// is replaced, the earlier ones keep their keys and values.
	w := randomWeights(smallArch(), 1)
	double, err := small().Float64()
	require.NoError(t, err)
	tr64 := capture(t, double, ids)
	in := make([]float64, w.arch.Hidden)
	for i := range in {
		in[i] = float64(i%5) - 1.7
	}
	got, err := tr64.Layer(bg, 1, in)
	require.NoError(t, err)
	m := naive{a: w.arch, w: w}
	var xs [][]float64
	table := m.tensor("model.embed_tokens.weight")
	for _, id := range ids {
		xs = append(xs, table[id*w.arch.Hidden:(id+1)*w.arch.Hidden])
	}
	xs = m.layer(0, xs)
	xs[len(xs)-1] = in
	want := m.layer(1, xs)
	requireClose(t, [][]float64{got}, want[len(want)-1:], float64Bound)
}

func TestLayerRefusesWhatItCannotRun(t *testing.T) {
	tr := capture(t, small(), []int{1, 2})
	row := tr.Rows()[0]
	for _, n := range []int{-1, 3} {
		_, err := tr.Layer(bg, n, row)
		require.ErrorContains(t, err, fmt.Sprintf("layer: got %d, want 0 to 2", n))
	}
	_, err := tr.Layer(bg, 0, row[:5])
	require.ErrorContains(t, err, "row: got 5 elements, want 24")
}

func TestHiddenStateNormAndLogits(t *testing.T) {
	for _, tied := range []bool{true, false} {
		a := smallArch()
		a.TiedHead = tied
		w := randomWeights(a, 1)
		m := naive{a: a, w: w}
		ids := prompt(6, a.Vocab)
		e := mustNew(t, w, reference.WithDType(reference.Float64))
		rows := capture(t, e, ids).Rows()
		last := rows[len(rows)-1]

		hidden, err := e.LastHidden(bg, ids)
		require.NoError(t, err)
		norm, err := e.FinalNorm(bg, last)
		require.NoError(t, err)
		require.True(t, sameBits([][]float64{hidden}, [][]float64{norm}))
		require.False(t, sameBits([][]float64{hidden}, [][]float64{last}))
		want := m.norm(m.rows(ids)[a.Layers], m.tensor("model.norm.weight"), a.FinalNormEps)
		requireClose(t, [][]float64{hidden}, [][]float64{want}, float64Bound)

		logits, err := e.Logits(bg, last)
		require.NoError(t, err)
		requireClose(t, [][]float64{logits}, [][]float64{m.logits(m.rows(ids)[a.Layers])}, float64Bound)
	}
	_, err := small().FinalNorm(bg, []float64{1})
	require.ErrorContains(t, err, "row: got 1 elements, want 24")
	_, err = small().Logits(bg, nil)
	require.ErrorContains(t, err, "row: got 0 elements, want 24")
}

func TestEmbeddingIsTheTablesRow(t *testing.T) {
	w := randomWeights(smallArch(), 1)
	table, err := w.Tensor("model.embed_tokens.weight")
	require.NoError(t, err)
	row, err := small().Embedding(49)
	require.NoError(t, err)
	require.Len(t, row, 24)
	for i, v := range row {
		require.Equal(t, float64(table.Data[49*24+i]), v)
	}
	for _, id := range []int{-1, 50} {
		_, err := small().Embedding(id)
		require.ErrorContains(t, err, fmt.Sprintf("got id %d, want 0 to 49", id))
	}
}

func TestFloat64OfFloat64IsItself(t *testing.T) {
	double, err := small().Float64()
	require.NoError(t, err)
	again, err := small().Float64()
	require.NoError(t, err)
	require.Same(t, double, again)
	itself, err := double.Float64()
	require.NoError(t, err)
	require.Same(t, double, itself)
	require.Equal(t, "float64", double.Describe().DType)
}

func TestDescribeNamesWhatBitsDependOn(t *testing.T) {
	d := small().Describe()
	require.Equal(t, "float32", d.DType)
	require.Equal(t, engine.LayersFloat32, d.Layers)
	for _, part := range []string{"gomlx ", "backend go:ops_sequential", "go1.", "simd "} {
		require.Contains(t, d.Version, part)
	}
	require.Contains(t, d.KVCache, "64")
	require.Equal(t, "float32, capacity in steps of 32", mustNew(t, small().Weights(), reference.WithCapacityStep(32)).Describe().KVCache)
}
