package metric_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/golden/metric"
)

// draw is the generator of testdata/record_numpy.py.
func draw(seed uint64, n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		seed ^= seed >> 12
		seed ^= seed << 25
		seed ^= seed >> 27
		v := seed * 0x2545F4914F6CDD1D
		mantissa := int64(v>>40) - 1<<23
		out[i] = float32(math.Ldexp(float64(mantissa), -23-int(v>>8&7)))
	}
	return out
}

func drawPair(n int) (cand, ref []float32) {
	ref, noise := draw(uint64(2*n+1), n), draw(uint64(2*n+2), n)
	cand = make([]float32, n)
	for i := range cand {
		cand[i] = ref[i] + float32(noise[i]/64)
	}
	return cand, ref
}

// numpyRow is what numpy made of drawPair(N).
type numpyRow struct {
	N           int
	MaxAbs      float64 `json:"max_abs"`
	MaxAt       int64   `json:"max_at"`
	MeanAbs     float64 `json:"mean_abs"`
	MSE         float64
	SumSqDiff   float64 `json:"sum_sq_diff"`
	SumSqRef    float64 `json:"sum_sq_ref"`
	RefMeanAbs  float64 `json:"ref_mean_abs"`
	CandMeanAbs float64 `json:"cand_mean_abs"`
}

func numpyRows(t *testing.T) []numpyRow {
	data, err := os.ReadFile("testdata/numpy.json")
	require.NoError(t, err)
	var file struct{ Rows []numpyRow }
	require.NoError(t, json.Unmarshal(data, &file))
	require.Greater(t, len(file.Rows), 60)
	return file.Rows
}

func wantNumpy(t *testing.T, want numpyRow, got metric.TensorStats) {
	t.Helper()
	for _, f := range []struct {
		name      string
		got, want float64
	}{
		{"max abs", got.MaxAbs, want.MaxAbs}, {"mean abs", got.MeanAbs, want.MeanAbs}, {"mse", got.MSE, want.MSE},
		{"sum of squared differences", got.SumSqDiff, want.SumSqDiff}, {"sum of squares", got.SumSqRef, want.SumSqRef},
		{"mean |ref|", got.RefMeanAbs, want.RefMeanAbs}, {"mean |cand|", got.CandMeanAbs, want.CandMeanAbs},
	} {
		if f.got != f.want { // exactly: the CSV prints every digit
			t.Errorf("n=%d: %s: got %v, numpy has %v", want.N, f.name, f.got, f.want)
		}
	}
	if got.MaxAt != want.MaxAt || got.N != int64(want.N) {
		t.Errorf("n=%d: got %d pairs, maximum at %d, want %d", want.N, got.N, got.MaxAt, want.MaxAt)
	}
}

func TestCompareTensorsEqualsNumpy(t *testing.T) {
	for _, want := range numpyRows(t) {
		cand, ref := drawPair(want.N)
		wantNumpy(t, want, metric.CompareTensors(cand, ref))
	}
}

// The figures don't depend on how the tensors were cut.
func TestTensorDiffInChunksEqualsNumpy(t *testing.T) {
	for _, chunk := range []int{1, 7, 100, 128, 4096} {
		for _, want := range numpyRows(t) {
			cand, ref := drawPair(want.N)
			var d metric.TensorDiff
			d.Reset(int64(want.N))
			for i := 0; i < want.N; i += chunk {
				end := min(i+chunk, want.N)
				d.Add(cand[i:end], ref[i:end])
			}
			wantNumpy(t, want, d.Stats())
		}
	}
}
