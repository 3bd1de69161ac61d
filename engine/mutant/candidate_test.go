package mutant

import (
	"context"
	"math"
	"testing"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/internal/seeded"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fixed answers every case with a capture of 4 rows of 2, named after its text.
type fixed struct{ steps []float64 }

func (fixed) Info(context.Context) (engine.Info, error) { return engine.Info{Name: "fixed"}, nil }

func fixedRows() [][]float64 { return [][]float64{{1, -2}, {3, 4}, {-5, 12}, {127, -254}} }

func (f fixed) Run(_ context.Context, req engine.Request) (*engine.Response, error) {
	c := &capture{
		header: engine.CaptureHeader{Rows: 4, Width: 2, Fingerprint: uint64(len(req.Case.Text)), Mode: 1},
		rows:   fixedRows(), steps: []float64{1, 1, 1, 2},
	}
	if f.steps != nil {
		c.steps = f.steps
	}
	return &engine.Response{Layers: c}, nil
}

// threeLayers is the checkpoint behind fixed: final norm gains 2 and 4, eps 0.
func threeLayers() engine.Weights {
	return &seeded.Memory{
		Architecture: engine.Arch{Layers: 3, Hidden: 2},
		Tensors:      map[string]engine.Tensor{"model.norm.weight": {Shape: []int{2}, Data: []float32{2, 4}}},
	}
}

func run(t *testing.T, name string, at int, clean engine.Candidate) *engine.Response {
	t.Helper()
	m, err := Lookup(name)
	require.NoError(t, err)
	c, err := m.Candidate(Sides{Candidate: clean, Weights: threeLayers(), Cases: twoCases()}, at)
	require.NoError(t, err)
	info, err := c.Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, "fixed", info.Name)
	resp, err := c.Run(t.Context(), engine.Request{Case: twoCases()[0]})
	require.NoError(t, err)
	return resp
}

func twoCases() []engine.Case {
	return []engine.Case{{Name: "a", Text: "one", TokenIDs: []int{1}}, {Name: "b", Text: "three", TokenIDs: []int{2}}}
}

func TestCaptureFaultsOfACandidate(t *testing.T) {
	nan := math.NaN()
	// rms of (127, -254) is 127*sqrt(5/2); normed by gains (2, 4): sqrt(2/5)*2, -sqrt(2/5)*8.
	a, b := 2*math.Sqrt(0.4), -8*math.Sqrt(0.4)
	quarter := -b / 127 // the step of the normed row; a/quarter = 31.75 -> 32
	for _, c := range []struct {
		name   string
		at     int
		header engine.CaptureHeader
		rows   [][]float64
		steps  []float64
	}{
		{"row-short", -1, engine.CaptureHeader{Rows: 3, Width: 2}, [][]float64{{1, -2}, {3, 4}, {-5, 12}}, []float64{1, 1, 1}},
		{"rows-swapped", 2, engine.CaptureHeader{Rows: 4, Width: 2}, [][]float64{{1, -2}, {3, 4}, {127, -254}, {-5, 12}}, []float64{1, 1, 2, 1}},
		{"rows-swapped", 3, engine.CaptureHeader{Rows: 4, Width: 2}, [][]float64{{1, -2}, {3, 4}, {127, -254}, {-5, 12}}, []float64{1, 1, 2, 1}},
		{"shifted-index", -1, engine.CaptureHeader{Rows: 4, Width: 2}, [][]float64{{1, -2}, {1, -2}, {3, 4}, {-5, 12}}, []float64{1, 1, 1, 1}},
		{"capture-mode-2", -1, engine.CaptureHeader{Rows: 4, Width: 2, Mode: 2}, fixedRows(), []float64{1, 1, 1, 2}},
		{"wrong-width", -1, engine.CaptureHeader{Rows: 4, Width: 1}, [][]float64{{1}, {3}, {-5}, {127}}, []float64{1, 1, 1, 2}},
		{"zero-rows", -1, engine.CaptureHeader{Rows: 0, Width: 2}, nil, nil},
		{"nan-row", 1, engine.CaptureHeader{Rows: 4, Width: 2}, [][]float64{{1, -2}, {nan, nan}, {-5, 12}, {127, -254}}, []float64{1, 1, 1, 2}},
		{"zero-row", 2, engine.CaptureHeader{Rows: 4, Width: 2}, [][]float64{{1, -2}, {3, 4}, {0, 0}, {127, -254}}, []float64{1, 1, 1, 2}},
		// 25/2 under the root, one code is a 127th of it
		{"constant-row", 1, engine.CaptureHeader{Rows: 4, Width: 2},
			[][]float64{{1, -2}, {math.Sqrt(12.5), math.Sqrt(12.5)}, {-5, 12}, {127, -254}}, []float64{1, math.Sqrt(12.5) / 127, 1, 2}},
		{"duplicated-row", 3, engine.CaptureHeader{Rows: 4, Width: 2}, [][]float64{{1, -2}, {3, 4}, {-5, 12}, {-5, 12}}, []float64{1, 1, 1, 1}},
		{"duplicated-row", 0, engine.CaptureHeader{Rows: 4, Width: 2}, [][]float64{{3, 4}, {3, 4}, {-5, 12}, {127, -254}}, []float64{1, 1, 1, 2}},
		{"doubled-scale", 1, engine.CaptureHeader{Rows: 4, Width: 2}, [][]float64{{1, -2}, {6, 8}, {-5, 12}, {127, -254}}, []float64{1, 2, 1, 2}},
		{"post-norm-last-row", -1, engine.CaptureHeader{Rows: 4, Width: 2},
			[][]float64{{1, -2}, {3, 4}, {-5, 12}, {32 * quarter, b}}, []float64{1, 1, 1, quarter}},
		{"all-nan", -1, engine.CaptureHeader{Rows: 4, Width: 2}, [][]float64{{nan, nan}, {nan, nan}, {nan, nan}, {nan, nan}}, []float64{1, 1, 1, 2}},
	} {
		resp := run(t, c.name, c.at, fixed{})
		c.header.Fingerprint = 3 // "one"
		if c.header.Mode == 0 {
			c.header.Mode = 1
		}
		assert.Equal(t, c.header, resp.Layers.Header(), c.name)
		for i, want := range c.rows {
			row := make([]float64, len(want))
			step, err := resp.Layers.Row(i, row)
			require.NoError(t, err)
			if !closeTo(step, c.steps[i]) {
				t.Errorf("%s at %d: row %d: step %v, want %v", c.name, c.at, i, step, c.steps[i])
			}
			for j := range want {
				if !closeTo(row[j], want[j]) {
					t.Errorf("%s at %d: row %d, value %d: got %v, want %v", c.name, c.at, i, j, row[j], want[j])
				}
			}
		}
		_, err := resp.Layers.Row(len(c.rows), make([]float64, 2))
		assert.Error(t, err, "%s: a row past the end", c.name)
		assert.NoError(t, resp.Close())
	}

	// a float capture is not rounded
	resp := run(t, "post-norm-last-row", -1, fixed{steps: make([]float64, 4)})
	row := make([]float64, 2)
	step, err := resp.Layers.Row(3, row)
	require.NoError(t, err)
	if step != 0 || !closeTo(row[0], a) || !closeTo(row[1], b) {
		t.Errorf("float post-norm row: got %v with step %v, want %v, %v", row, step, a, b)
	}
}

// closeTo is equality up to the last bits; NaN is close to NaN alone.
func closeTo(a, b float64) bool {
	return math.Abs(a-b) <= 1e-15*math.Abs(b) || math.IsNaN(a) && math.IsNaN(b)
}

func TestEveryCandidateCaptureFaultIsTested(t *testing.T) {
	n := 0
	for _, m := range captureFaults() {
		if m.candidateRows {
			n++
		}
	}
	assert.Equal(t, 13, n, "add new faults to the table above")
}

func TestAnotherPromptsDump(t *testing.T) {
	resp := run(t, "another-prompt", -1, fixed{})
	assert.Equal(t, uint64(len("three")), resp.Layers.Header().Fingerprint)

	m, err := Lookup("another-prompt")
	require.NoError(t, err)
	c, err := m.Candidate(Sides{Candidate: fixed{}, Weights: threeLayers(), Cases: twoCases()[:1]}, -1)
	require.NoError(t, err)
	_, err = c.Run(t.Context(), engine.Request{Case: twoCases()[0]})
	assert.ErrorContains(t, err, "no case with another text")
}

// lister is a candidate with cases of its own.
type lister struct{ fixed }

func (lister) Cases(context.Context) ([]engine.Case, error) { return twoCases(), nil }

func TestCasesAreListedAsTheCleanCandidateDoes(t *testing.T) {
	for _, name := range []string{"nan-row", "another-prompt", "answers-nothing"} {
		m, err := Lookup(name)
		require.NoError(t, err)
		c, err := m.Candidate(Sides{Candidate: lister{}, Weights: threeLayers()}, 1)
		require.NoError(t, err)
		l, ok := c.(engine.CaseLister)
		require.True(t, ok, name)
		cases, err := l.Cases(t.Context())
		require.NoError(t, err)
		assert.Equal(t, twoCases(), cases)
		_, err = c.Run(t.Context(), engine.Request{Case: cases[1]})
		require.NoError(t, err)

		c, err = m.Candidate(Sides{Candidate: fixed{}, Weights: threeLayers()}, 1)
		require.NoError(t, err)
		_, ok = c.(engine.CaseLister)
		assert.False(t, ok, "%s: lists cases that the clean candidate doesn't have", name)
	}
}

func TestCandidatesThatAnswerNothing(t *testing.T) {
	resp := run(t, "answers-nothing", -1, fixed{})
	assert.Nil(t, resp.Layers)
	assert.Nil(t, resp.Logits)
	assert.NoError(t, resp.Close())

	m, err := Lookup("no-cases")
	require.NoError(t, err)
	c, err := m.Candidate(Sides{Candidate: lister{}, Weights: threeLayers()}, -1)
	require.NoError(t, err)
	cases, err := c.(engine.CaseLister).Cases(t.Context())
	require.NoError(t, err)
	assert.Empty(t, cases)
	assert.NotNil(t, cases)
	_, err = c.Run(t.Context(), engine.Request{})
	var unsupported *engine.UnsupportedError
	assert.ErrorAs(t, err, &unsupported)
}

func TestACaptureWithoutTheRowIsAnError(t *testing.T) {
	m, err := Lookup("nan-row")
	require.NoError(t, err)
	c, err := m.Candidate(Sides{Candidate: fixed{}, Weights: weights(t)}, 9) // 28 layers say so, 4 rows come
	require.NoError(t, err)
	_, err = c.Run(t.Context(), engine.Request{})
	assert.ErrorContains(t, err, "got a capture of 4 rows")
}
