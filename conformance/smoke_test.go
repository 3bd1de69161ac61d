package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
)

// smokeSide answers the fakes with ids and their negatives, each plus what add
// says for the case; logits likewise. It is written from the description, not
// from engine.SmokeRows.
func smokeSide(add func(c engine.Case, calls int) float32) engine.Func {
	calls := 0
	return engine.Func{
		Side: engine.Info{Name: "smoke", Layers: engine.LayersFloat32, Logits: engine.LogitsFloat32},
		Answer: func(_ context.Context, req engine.Request) (*engine.Response, error) {
			calls++
			d := add(req.Case, calls)
			rows := [][]float32{nil, nil}
			for _, id := range req.Case.TokenIDs {
				rows[0] = append(rows[0], float32(id)+d)
				rows[1] = append(rows[1], -float32(id)+d)
			}
			layers, err := engine.FloatRows(req.Case.Text, rows)
			if err != nil {
				return nil, err
			}
			logits, err := engine.LogitRows(rows[:1])
			return &engine.Response{Layers: layers, Logits: logits}, err
		},
	}
}

func sound(c engine.Case, _ int) float32 {
	if c.Name == "plumbline-smoke-wrong" {
		return 1
	}
	return 0
}

func smokeHolds(t *testing.T, c engine.Candidate) (holds []bool, why string) {
	t.Helper()
	results, err := conformance.Smoke(t.Context(), c)
	require.NoError(t, err)
	require.Len(t, results, 3)
	for i, r := range results {
		holds = append(holds, r.Holds)
		require.Equal(t, r.Holds, r.Why == "", "a fake that doesn't hold says why")
		require.Equal(t, []string{"plumbline-smoke", "plumbline-smoke-wrong", "plumbline-smoke"}[i], r.Case)
		if why == "" {
			why = r.Why
		}
	}
	return holds, why
}

func TestSmokeHolds(t *testing.T) {
	holds, _ := smokeHolds(t, smokeSide(sound))
	assert.Equal(t, []bool{true, true, true}, holds)
	// int8 rows with the scale 2^30*2^-30, and no logits.
	int8Side := engine.Func{
		Side: engine.Info{Name: "int8", Layers: engine.LayersInt8Scaled},
		Answer: func(_ context.Context, req engine.Request) (*engine.Response, error) {
			codes := map[string][][]int8{
				"plumbline-smoke":       {{1, 2, 3, 4, 5}, {-1, -2, -3, -4, -5}},
				"plumbline-smoke-wrong": {{6, 5, 4, 3, 2}, {-4, -3, -2, -1, 0}},
			}[req.Case.Name]
			one := dumpfmt.Scale{M: 1 << 30, E: -30}
			layers, err := engine.Int8Rows(req.Case.Text, []dumpfmt.Scale{one, one}, codes)
			return &engine.Response{Layers: layers}, err
		},
	}
	holds, _ = smokeHolds(t, int8Side)
	assert.Equal(t, []bool{true, true, true}, holds)
}

// TestSmokeCanFail: each is a fault of an adapter, planted.
func TestSmokeCanFail(t *testing.T) {
	change := func(f func(c engine.Case, r *engine.Response) error) engine.Candidate {
		clean := smokeSide(sound)
		return engine.Func{Side: clean.Side, Answer: func(ctx context.Context, req engine.Request) (*engine.Response, error) {
			r, err := clean.Answer(ctx, req)
			if err == nil {
				err = f(req.Case, r)
			}
			return r, err
		}}
	}
	for _, tt := range []struct {
		name  string
		c     engine.Candidate
		holds []bool
		why   string
	}{
		{"always right: a wrong answer would not be seen", smokeSide(func(engine.Case, int) float32 { return 0 }), []bool{true, false, true}, "got the answer that is right"},
		{"always wrong", smokeSide(func(engine.Case, int) float32 { return 1 }), []bool{false, true, false}, "got the answer that is wrong"},
		{"the answer before", smokeSide(func(c engine.Case, n int) float32 { return []float32{0, 0, 1}[n-1] }), []bool{true, false, false}, "got the answer that is right"},
		{"off by a half", smokeSide(func(engine.Case, int) float32 { return 0.5 }), []bool{false, false, false}, "row 0, channel 0: got 1.5"},
		{"no layers", change(func(_ engine.Case, r *engine.Response) error { r.Layers = nil; return nil }), []bool{false, false, false}, "layers: got no dump"},
		{"no logits", change(func(_ engine.Case, r *engine.Response) error { r.Logits = nil; return nil }), []bool{false, false, false}, "logits: got no dump"},
		{"right layers, wrong logits", change(func(_ engine.Case, r *engine.Response) error {
			var err error
			r.Logits, err = engine.LogitRows([][]float32{{2, 3, 4, 5, 6}})
			return err
		}), []bool{false, false, false}, "logits: got the answer that is wrong beside layers that are right"},
		{"rows that changed places", change(func(c engine.Case, r *engine.Response) error {
			var err error
			r.Layers, err = engine.FloatRows(c.Text, [][]float32{{-1, -2, -3, -4, -5}, {1, 2, 3, 4, 5}})
			return err
		}), []bool{false, false, false}, "its rows have changed places"},
		{"the other fake's values", change(func(c engine.Case, r *engine.Response) error {
			var err error
			r.Layers, err = engine.FloatRows(c.Text, [][]float32{{5, 4, 3, 2, 1}, {-5, -4, -3, -2, -1}})
			return err
		}), []bool{false, false, false}, "these are the values of an answer to plumbline-smoke-wrong"},
		{"another prompt", change(func(c engine.Case, r *engine.Response) error {
			var err error
			r.Layers, err = engine.FloatRows("another", [][]float32{{1, 2, 3, 4, 5}, {-1, -2, -3, -4, -5}})
			return err
		}), []bool{false, false, false}, "fingerprint"},
		{"an engine that doesn't know the fakes", change(func(c engine.Case, r *engine.Response) error {
			var err error
			r.Layers, err = engine.FloatRows(c.Text, [][]float32{{1, 2}, {3, 4}, {5, 6}})
			return err
		}), []bool{false, false, false}, "got 3 rows of 2, want 2 of 5: the program doesn't know the fakes"},
		{"an error", change(func(engine.Case, *engine.Response) error { return errors.New("boom") }), []bool{false, false, false}, "boom"},
		{"nothing at all", engine.Func{Answer: func(context.Context, engine.Request) (*engine.Response, error) { return &engine.Response{}, nil }},
			[]bool{false, false, false}, "neither layers nor logits"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			holds, why := smokeHolds(t, tt.c)
			assert.Equal(t, tt.holds, holds)
			assert.Contains(t, why, tt.why)
		})
	}
}

// badInfo is a candidate whose description fails.
type badInfo struct {
	engine.Func
	err error
}

func (b badInfo) Info(context.Context) (engine.Info, error) { return engine.Info{}, b.err }

func TestSmokeWithoutADescription(t *testing.T) {
	_, err := conformance.Smoke(t.Context(), badInfo{err: &engine.SetupError{Path: "prog", Err: errors.New("not found")}})
	require.ErrorContains(t, err, "not found")
	holds, why := smokeHolds(t, badInfo{err: &engine.ProcessError{Command: "prog", Why: "exit code 3"}})
	assert.Equal(t, []bool{false, false, false}, holds)
	assert.Contains(t, why, "exit code 3")
}

func ExampleSmoke() {
	results, err := conformance.Smoke(context.Background(), smokeSide(sound))
	if err != nil {
		panic(err)
	}
	for _, r := range results {
		fmt.Println(r.Case, r.Saw, r.Holds)
	}
	// Output:
	// plumbline-smoke right true
	// plumbline-smoke-wrong wrong true
	// plumbline-smoke right true
}
