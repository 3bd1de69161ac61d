package conformance_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/quant"
	"github.com/plumbline-go/plumbline/tools/suite"
)

// onLogits is the embedded suite on the cases of the proofs, with what a verdict
// on rows and logits needs.
func onLogits(t *testing.T) conformance.Config {
	t.Helper()
	cfg, err := embedded()
	require.NoError(t, err)
	cfg = conformance.WithMemory(cfg)
	cfg.Cases = suite.ProofCases(cfg.Cases)
	cfg.Golden, cfg.ReferenceCases = nil, 0
	cfg.Only = []string{"ResidualShape", "ResidualCandidate", "LocalError", "LogitRowContract", "LogitCandidate", "ResidualToLogits"}
	return cfg
}

func planted(t *testing.T, cfg conformance.Config, name string, at int) *conformance.Report {
	t.Helper()
	faulty, err := cfg.Mutants(cfg, conformance.Control{Mutant: name, Side: conformance.SideCandidate, Layer: at})
	require.NoError(t, err)
	rep, err := conformance.Evaluate(t.Context(), faulty)
	require.NoError(t, err)
	return rep
}

// TestHeadFaultsAreNamed: a fault behind the last layer row is charged to the
// final norm or to the head, and to no layer.
func TestHeadFaultsAreNamed(t *testing.T) {
	sweep(t)
	cfg := onLogits(t)
	for name, source := range map[string]engine.Probe{
		"final-norm-ones":   engine.ProbeFinalNorm,
		"final-norm-rolled": engine.ProbeFinalNorm,
		"wrong-head":        engine.ProbeLogits,
		"temperature":       engine.ProbeLogits,
		"logit-bias":        engine.ProbeLogits,
	} {
		rep := planted(t, cfg, name, -1)
		assert.Equal(t, conformance.Fails, rep.Conclusion, name)
		assert.Nil(t, rep.FirstBadRow, name)
		if assert.NotNil(t, rep.Source, "%s: notes %v", name, rep.Notes) {
			assert.Equal(t, source, *rep.Source, "%s: notes %v", name, rep.Notes)
		}
		if assert.NotNil(t, rep.Kind, name) {
			assert.Equal(t, conformance.KindHead, *rep.Kind, name)
		}
	}
}

// TestDistortedLogitsAreNotChargedToTheNorm: no final norm turns all logits
// round, or exchanges two ids.
func TestDistortedLogitsAreNotChargedToTheNorm(t *testing.T) {
	sweep(t)
	for name, distort := range map[string]func(row []float32){
		"negated": func(row []float32) {
			for i := range row {
				row[i] = -row[i]
			}
		},
		"two ids exchanged": func(row []float32) { row[2], row[1400] = row[1400]+9, row[2]-9 },
	} {
		cfg := onLogits(t)
		clean := cfg.Candidate
		info, err := clean.Info(t.Context())
		require.NoError(t, err)
		cfg.Candidate = engine.Func{Side: info, Answer: func(ctx context.Context, req engine.Request) (*engine.Response, error) {
			resp, err := clean.Run(ctx, req)
			if err != nil {
				return nil, err
			}
			n, vocab := resp.Logits.Shape()
			rows, row := make([][]float32, n), make([]float64, vocab)
			for i := range rows {
				if err := resp.Logits.Row(i, row); err != nil {
					return nil, err
				}
				for _, x := range row {
					rows[i] = append(rows[i], float32(x))
				}
				distort(rows[i])
			}
			resp.OutputIDs = nil
			resp.Logits, err = engine.LogitRows(rows)
			return resp, err
		}}
		rep, err := conformance.Evaluate(t.Context(), cfg)
		require.NoError(t, err)
		assert.Equal(t, conformance.Fails, rep.Conclusion, name)
		if assert.NotNil(t, rep.Source, "%s: notes %v", name, rep.Notes) {
			assert.Equal(t, engine.ProbeLogits, *rep.Source, "%s: notes %v", name, rep.Notes)
		}
	}
}

// TestALayerFaultIsNotChargedToTheHead: the logits are wrong too, and the head
// made them of the row it was given.
func TestALayerFaultIsNotChargedToTheHead(t *testing.T) {
	sweep(t)
	rep := planted(t, onLogits(t), "layer-skipped", 0)
	assertNamed(t, rep, 1, "layer-skipped at layer 0")
	assert.Equal(t, []engine.Probe{engine.ResidPost(0)}, rep.Sources)
	assert.NotEmpty(t, failing(rep, "LogitCandidate"))
	assert.Empty(t, failing(rep, "ResidualToLogits"))
}

// TestADecodeFaultIsDated: the prompt's rows and the first logits are right.
func TestADecodeFaultIsDated(t *testing.T) {
	sweep(t)
	rep := planted(t, onLogits(t), "early-divergence", -1)
	assert.Equal(t, conformance.Fails, rep.Conclusion)
	assert.Nil(t, rep.FirstBadRow)
	assert.Nil(t, rep.Source, "nothing in the prompt's last row is at fault")
	assert.Contains(t, strings.Join(rep.Notes, "\n"), "wrong from token 1 on")
}

func failing(rep *conformance.Report, id string) []conformance.Result {
	var out []conformance.Result
	for _, c := range rep.Failures() {
		if c.ID == id {
			out = append(out, c)
		}
	}
	return out
}

// TestIntegerLogitsHaveNoSize: an engine that dumps the accumulators of its head
// conforms, each row in a unit of its own; a rolled final norm is found in them
// all the same, a temperature is not, and the report says so.
func TestIntegerLogitsHaveNoSize(t *testing.T) {
	sweep(t)
	cfg := onLogits(t)
	cfg.Candidate = quant.New(cfg.Reference, quant.KVCacheInt8(), quant.RoundHalfAway()).
		Candidate(engine.Scheme{RowsInt8: true}, quant.Int32Logits())
	rep, err := conformance.Evaluate(t.Context(), cfg)
	require.NoError(t, err)
	require.Empty(t, rep.Failures())
	require.NotNil(t, rep.Logits)
	assert.Equal(t, rep.Logits.Offered, rep.Logits.Positions)
	assert.Contains(t, strings.Join(rep.Power, "\n"), "a temperature, of all rows")
	var units []float64
	for _, c := range rep.Cases {
		for _, s := range c.Logits {
			units = append(units, float64(s.Scale))
		}
	}
	require.Len(t, units, rep.Logits.Positions)
	for _, u := range units {
		assert.Less(t, u, 0.1, "one unit of an accumulator is a small part of a logit")
		assert.Positive(t, u)
	}
}

// TestEveryLogitRowIsInTheReport: each output token with its class, and the
// classes add up.
func TestEveryLogitRowIsInTheReport(t *testing.T) {
	cfg := onLogits(t)
	cfg.Cases = cfg.Cases[:2]
	rep, err := conformance.Evaluate(t.Context(), cfg)
	require.NoError(t, err)
	n := map[conformance.Margin]int{}
	for _, c := range rep.Cases {
		for i, s := range c.Logits {
			assert.Equal(t, i, s.Step)
			assert.GreaterOrEqual(t, float64(s.KL), 0.0)
			n[s.Class]++
			if s.Class == conformance.Match {
				assert.Equal(t, s.Top, s.Pick)
				assert.Equal(t, 1, s.Rank)
				assert.Zero(t, float64(s.Regret))
			}
		}
	}
	s := rep.Logits
	require.NotNil(t, s)
	assert.Equal(t, s.Match, n[conformance.Match])
	assert.Equal(t, s.Positions, s.Match+s.TieFlip+s.Drift+s.Wrong)
}

// TestLogitsAloneAreJudged: an engine without layer rows is held to its logits,
// and the report says what it can't tell apart.
func TestLogitsAloneAreJudged(t *testing.T) {
	cfg := onLogits(t)
	cfg.Cases = cfg.Cases[:2]
	clean := cfg.Candidate
	cfg.Candidate = engine.Func{
		Side: engine.Info{Name: "logits only", Logits: engine.LogitsFloat32, Weights: "int8", Activations: "int8"},
		Answer: func(ctx context.Context, req engine.Request) (*engine.Response, error) {
			resp, err := clean.Run(ctx, req)
			if err == nil {
				resp.Layers = nil
			}
			return resp, err
		},
	}
	rep, err := conformance.Evaluate(t.Context(), cfg)
	require.NoError(t, err)
	assert.Empty(t, rep.Failures())
	assert.Equal(t, conformance.Partial, rep.Conclusion)
	assert.Equal(t, 2, rep.Logits.Cases)
	assert.Contains(t, strings.Join(rep.Power, "\n"), "without a layer dump beside the logits")
}

// TestTheReferencesOwnLogitsConformAsFloat32: the float bounds hold the float32
// engine, and a temperature of 1.0001 is beyond them.
func TestTheReferencesOwnLogitsConformAsFloat32(t *testing.T) {
	cfg := onLogits(t)
	cfg.Cases = cfg.Cases[:2]
	float := func(temperature float64) engine.Candidate {
		return engine.Func{
			Side: engine.Info{Name: "float engine", Logits: engine.LogitsFloat32},
			Answer: func(ctx context.Context, req engine.Request) (*engine.Response, error) {
				d, err := cfg.Reference.Decode(ctx, req.Case.TokenIDs, engine.DecodeOptions{MaxNew: req.DecodeSteps, Chunk: 1})
				if err != nil {
					return nil, err
				}
				rows := make([][]float32, len(d.Logits))
				for i, r := range d.Logits {
					for _, x := range r {
						rows[i] = append(rows[i], float32(x/temperature))
					}
				}
				logits, err := engine.LogitRows(rows)
				return &engine.Response{Logits: logits, OutputIDs: d.OutputIDs, PromptIDs: req.Case.TokenIDs}, err
			},
		}
	}
	cfg.Candidate = float(1)
	rep, err := conformance.Evaluate(t.Context(), cfg)
	require.NoError(t, err)
	assert.Empty(t, rep.Failures())
	assert.Equal(t, rep.Logits.Positions, rep.Logits.Match)

	cfg.Candidate = float(1.0001)
	rep, err = conformance.Evaluate(t.Context(), cfg)
	require.NoError(t, err)
	assert.NotEmpty(t, failing(rep, "LogitCandidate"))
	assert.Empty(t, failing(rep, "LogitRowContract"))
}
