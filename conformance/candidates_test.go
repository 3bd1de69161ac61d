package conformance_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/mutant"
	"github.com/plumbline-go/plumbline/engine/reference"
)

// floatCandidate offers a reference engine's rows as a float32 engine's.
type floatCandidate struct{ ref engine.Reference }

func (f floatCandidate) Info(context.Context) (engine.Info, error) {
	return engine.Info{Name: "float engine", Layers: engine.LayersFloat32}, nil
}

func (f floatCandidate) Run(ctx context.Context, req engine.Request) (*engine.Response, error) {
	tr, err := f.ref.Capture(ctx, req.Case.TokenIDs)
	if err != nil {
		return nil, err
	}
	return &engine.Response{Layers: floatRows{rows: tr.Rows(), fp: dumpfmt.Fingerprint(req.Case.Text)}}, nil
}

// floatRows is a float capture in memory.
type floatRows struct {
	rows [][]float64
	fp   uint64
}

func (f floatRows) Header() engine.CaptureHeader {
	return engine.CaptureHeader{Rows: len(f.rows), Width: len(f.rows[0]), Fingerprint: f.fp, Mode: engine.CaptureModeIncremental}
}

func (f floatRows) Row(i int, dst []float64) (float64, error) {
	copy(dst, f.rows[i])
	return 0, nil
}

func (f floatRows) Close() error { return nil }

// referenceMutant opens a reference on weights with a planted fault.
func referenceMutant(t *testing.T, cfg conformance.Config, name string, layer int) engine.Reference {
	t.Helper()
	m, err := mutant.Lookup(name)
	require.NoError(t, err)
	w, err := m.Weights(cfg.Reference.Weights(), layer)
	require.NoError(t, err)
	ref, err := reference.New(w)
	require.NoError(t, err)
	return ref
}
