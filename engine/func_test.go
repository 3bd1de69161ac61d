package engine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
)

func TestFunc(t *testing.T) {
	boom := errors.New("boom")
	answers := map[string]func() (*engine.Response, error){
		"good": func() (*engine.Response, error) {
			rows, err := engine.FloatRows(text, [][]float32{{1, 2}})
			return &engine.Response{Layers: rows}, err
		},
		"none":  func() (*engine.Response, error) { return nil, nil },
		"error": func() (*engine.Response, error) { return nil, boom },
		"panic": func() (*engine.Response, error) { panic("index out of range") },
	}
	f := engine.Func{Side: *float32Side, Answer: func(_ context.Context, req engine.Request) (*engine.Response, error) {
		return answers[req.Case.Name]()
	}}
	info, err := f.Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, *float32Side, info)
	r, err := f.Run(t.Context(), request("good"))
	require.NoError(t, err)
	wantRow(t, r.Layers, 0, 0, 1, 2)
	require.NoError(t, r.Close())
	_, err = f.Run(t.Context(), request("error"))
	require.ErrorIs(t, err, boom)
	var none *engine.NoAnswerError
	for name, want := range map[string]string{"none": "neither a response nor an error", "panic": "panic: index out of range"} {
		r, err := f.Run(t.Context(), request(name))
		require.Nil(t, r)
		require.ErrorAs(t, err, &none)
		require.ErrorContains(t, err, want)
	}
	_, err = engine.Func{}.Run(t.Context(), request("x"))
	require.ErrorAs(t, err, &none)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = f.Run(ctx, request("good"))
	require.ErrorIs(t, err, context.Canceled)
}

func TestRowsInMemory(t *testing.T) {
	rows, err := engine.FloatRows(text, [][]float32{{1, -2.5}, {3, 0.1}})
	require.NoError(t, err)
	require.Equal(t, engine.CaptureHeader{Rows: 2, Width: 2, Fingerprint: textPrint, Mode: 1}, rows.Header())
	wantRow(t, rows, 0, 0, 1, -2.5)
	wantRow(t, rows, 1, 0, 3, 0.100000001490116119384765625) // the float32 next to 0.1
	scaled, err := engine.Int8Rows(text, []dumpfmt.Scale{{M: 3, E: -1}, {M: 1, E: 4}}, [][]int8{{1, -2}, {127, 0}})
	require.NoError(t, err)
	require.Equal(t, rows.Header(), scaled.Header())
	wantRow(t, scaled, 0, 1.5, 1.5, -3)
	wantRow(t, scaled, 1, 16, 2032, 0)
	for _, s := range []engine.RowSource{rows, scaled} {
		for _, i := range []int{-1, 2} {
			_, err = s.Row(i, make([]float64, 2))
			require.Error(t, err)
		}
		_, err = s.Row(0, make([]float64, 3))
		require.Error(t, err)
		require.NoError(t, s.Close())
	}
	logits, err := engine.LogitRows([][]int32{{5, -7, 0}})
	require.NoError(t, err)
	n, vocab := logits.Shape()
	require.Equal(t, []int{1, 3}, []int{n, vocab})
	dst := make([]float64, 3)
	require.NoError(t, logits.Row(0, dst))
	if dst[0] != 5 || dst[1] != -7 || dst[2] != 0 {
		t.Errorf("got %v, want [5 -7 0]", dst)
	}
	require.Error(t, logits.Row(1, dst))
	empty, err := engine.LogitRows[float32](nil)
	require.NoError(t, err)
	n, vocab = empty.Shape()
	require.Equal(t, []int{0, 0}, []int{n, vocab})
}

func TestRowsInMemoryRefused(t *testing.T) {
	for want, open := range map[string]func() error{
		"got 0 rows":        func() error { _, err := engine.FloatRows(text, nil); return err },
		"row 1: got 1":      func() error { _, err := engine.FloatRows(text, [][]float32{{1, 2}, {1}}); return err },
		"row 0: got 0":      func() error { _, err := engine.FloatRows(text, [][]float32{{}}); return err },
		"got 1 scales":      func() error { _, err := engine.Int8Rows(text, []dumpfmt.Scale{{M: 1}}, [][]int8{{1}, {2}}); return err },
		"scale of row 0":    func() error { _, err := engine.Int8Rows(text, []dumpfmt.Scale{{M: -1}}, [][]int8{{1}}); return err },
		"LogitRows: row 1:": func() error { _, err := engine.LogitRows([][]float32{{1}, {}}); return err },
	} {
		require.ErrorContains(t, open(), want)
	}
}

func TestSmokeAnswers(t *testing.T) {
	right, wrong := engine.SmokeRight(), engine.SmokeWrong()
	require.NotEqual(t, right.TokenIDs, wrong.TokenIDs)
	require.NotEqual(t, right.Text, wrong.Text)
	require.Equal(t, []int{1, 2, 3, 4, 5}, right.TokenIDs)
	require.Equal(t, [][]float64{{1, 2, 3, 4, 5}, {-1, -2, -3, -4, -5}}, engine.SmokeRows(right))
	require.Equal(t, [][]float64{{5, 4, 3, 2, 1}}, engine.SmokeLogits(wrong))
}
