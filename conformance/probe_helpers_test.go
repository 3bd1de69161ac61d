package conformance_test

import (
	"context"
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/mutant"
	"github.com/plumbline-go/plumbline/engine/quant"
)

// blocks is the scheme of an engine that has the checkpoint's own weights.
var blocks = engine.Scheme{FloatWeights: true, ActivationBlock: 32, KVCache: engine.KVCache{K: engine.KVFloat16, V: engine.KVFloat16}}

// valueChecks are the checks that the places of a candidate are judged by.
var valueChecks = []string{"ResidualShape", "ResidualCandidate", "LocalError", "ProbeCandidate"}

// probing is a suite with its clean runs remembered, restricted to valueChecks
// and to the named cases.
func probing(t *testing.T, open func() (conformance.Config, error), names ...string) conformance.Config {
	t.Helper()
	full, err := open()
	require.NoError(t, err)
	cfg := conformance.WithMemory(full)
	cfg.Only, cfg.Golden, cfg.ReferenceCases, cfg.Cases = valueChecks, nil, 0, nil
	for _, name := range names {
		for _, c := range full.Cases {
			if c.Name == name {
				cfg.Cases = append(cfg.Cases, c)
			}
		}
	}
	require.Len(t, cfg.Cases, len(names))
	return cfg
}

// inScheme opens engines that round ties in another way than the yardstick, and
// declare the scheme.
func inScheme(scheme engine.Scheme) func(engine.Weights) engine.Candidate {
	cache := quant.NewCache()
	return func(w engine.Weights) engine.Candidate {
		return quant.FromWeights(w, quant.WithCache(cache.Fork()), quant.RoundHalfAway()).Candidate(scheme)
	}
}

// faultyWeights are the checkpoint with a mutant's fault at a layer.
func faultyWeights(t *testing.T, w engine.Weights, name string, layer int) engine.Weights {
	t.Helper()
	m, err := mutant.Lookup(name)
	require.NoError(t, err)
	out, err := m.Weights(w, layer)
	require.NoError(t, err)
	return out
}

// judge evaluates cfg with another candidate.
func judge(t *testing.T, cfg conformance.Config, c engine.Candidate) *conformance.Report {
	t.Helper()
	cfg.Candidate = c
	rep, err := conformance.Evaluate(t.Context(), cfg)
	require.NoError(t, err)
	return rep
}

// tampered is a candidate whose answers are changed before they are handed out.
// The probes are a copy: change may put other matrices in their places.
func tampered(t *testing.T, c engine.Candidate, change func(req engine.Request, resp *engine.Response, probes engine.ProbeValues)) engine.Candidate {
	t.Helper()
	info, err := c.Info(t.Context())
	require.NoError(t, err)
	return engine.Func{Side: info, Answer: func(ctx context.Context, req engine.Request) (*engine.Response, error) {
		resp, err := c.Run(ctx, req)
		if err != nil {
			return nil, err
		}
		probes := engine.ProbeValues{}
		if v, ok := resp.Probes.(engine.ProbeValues); ok {
			maps.Copy(probes, v)
		}
		resp.Probes, resp.Files.Probes = probes, probeFileName
		change(req, resp, probes)
		return resp, nil
	}}
}

// probeFileName is what tampered answers call their probes' file.
const probeFileName = "case.probes.safetensors"

// changed copies a matrix and lets f write one of its rows.
func changed(m engine.Matrix, position int, f func(row []float32)) engine.Matrix {
	m.Data = append([]float32(nil), m.Data...)
	f(m.Row(position))
	return m
}

// cut is the first positions of a matrix.
func cut(m engine.Matrix, positions int) engine.Matrix {
	m.Rows, m.Data = positions, m.Data[:positions*m.Width]
	return m
}

// inLayer names places of one layer.
func inLayer(layer int, parts ...engine.Part) []engine.Probe {
	out := make([]engine.Probe, len(parts))
	for i, part := range parts {
		out[i] = engine.Block(layer, part)
	}
	return out
}

// assertLocus holds a report to the row, the kind and the exact sources.
func assertLocus(t *testing.T, rep *conformance.Report, row int, kind conformance.Kind, sources []engine.Probe, what string) {
	t.Helper()
	assert.Equal(t, conformance.Fails, rep.Conclusion, what)
	if assert.NotNil(t, rep.FirstBadRow, what) {
		assert.Equal(t, row, *rep.FirstBadRow, "%s; notes %v", what, rep.Notes)
	}
	if assert.NotNil(t, rep.Kind, what) {
		assert.Equal(t, kind, *rep.Kind, "%s; notes %v", what, rep.Notes)
	}
	assert.Equal(t, sources, rep.Sources, "%s; notes %v", what, rep.Notes)
	if len(sources) > 0 && assert.NotNil(t, rep.Source, what) {
		assert.Equal(t, sources[0], *rep.Source, what)
	}
}

// resultOf is what a check said of a case, or of all of them ("*").
func resultOf(t *testing.T, rep *conformance.Report, id, name string) conformance.Result {
	t.Helper()
	for _, r := range rep.Checks {
		if r.ID == id && r.Case == name && r.Side == conformance.SideCandidate {
			return r
		}
	}
	t.Fatalf("no result of %s on case %s", id, name)
	return conformance.Result{}
}

// answerAs has a candidate run other ids than the case's, and not say so.
func answerAs(c engine.Candidate, change func(ids []int)) func(context.Context, engine.Request) (*engine.Response, error) {
	return func(ctx context.Context, req engine.Request) (*engine.Response, error) {
		req.Case.TokenIDs = append([]int(nil), req.Case.TokenIDs...)
		change(req.Case.TokenIDs)
		resp, err := c.Run(ctx, req)
		if err == nil {
			resp.PromptIDs = nil
		}
		return resp, err
	}
}
