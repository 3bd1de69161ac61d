package conformance_test

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/quant"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/tools/suite"
)

var _ = math.Pi
var _ reference.DType
var _ = suite.On

// TestSim prints false alarms and power by hand.
func TestSim(t *testing.T) {
	if os.Getenv("SIM") == "" {
		t.Skip()
	}
	cfg, err := seeded()
	require.NoError(t, err)
	if os.Getenv("SIM") == "embedded" {
		cfg, err = embedded()
		require.NoError(t, err)
		cfg.Routes, cfg.Attention, cfg.Teacher, cfg.Trace = nil, nil, nil, nil
	}
	cfg.Golden = nil
	cfg.ReferenceCases = 1
	cfg.Only = []string{"ResidualShape", "ResidualCandidate", "LocalError", "LogitRowContract", "LogitCandidate", "PromptTokens", "ProbeCandidate"}
	fmt.Println("cases", len(cfg.Cases))
	cfg = conformance.WithMemory(cfg)
	run := func(cand engine.Candidate, n int) *conformance.Report {
		c := cfg
		if n < len(c.Cases) {
			c.Cases = c.Cases[:n]
		}
		c.Candidate = cand
		rep, err := conformance.Evaluate(t.Context(), c)
		require.NoError(t, err)
		return rep
	}
	w := cfg.Reference.Weights()
	open := func(opts ...quant.Option) engine.Candidate {
		return quant.FromWeights(w, opts...).Candidate(engine.Scheme{RowsInt8: true})
	}
	base := open(quant.KVCacheInt8(), quant.RoundHalfAway())
	for _, n := range []int{3, 5, 8, 1000} {
		b := run(base, n)
		say := func(name string, r *conformance.Report) {
			r.Candidate = b.Candidate
			require.NoError(t, r.HoldToBaseline(b, "x"))
			fmt.Printf("n=%d %s: compared %d, worse %d better %d, noise %.4f; %s\n", n, name, r.Baseline.Compared, len(r.Baseline.Regressions), len(r.Baseline.Improvements), float64(r.Baseline.Noise.Value), r.Power[len(r.Power)-1])
			for i, c := range r.Baseline.Regressions {
				if i < 4 {
					fmt.Printf("    %s %s %s %.4f -> %.4f limit %.4f\n", c.Check, c.Metric, c.Probe, float64(c.Before), float64(c.After), float64(c.Limit.Value))
				}
			}
		}
		say("same", run(base, n))
		say("half-even", run(open(quant.KVCacheInt8()), n))
		say("embed-per-row", run(open(quant.KVCacheInt8(), quant.RoundHalfAway(), quant.EmbeddingPerRow()), n))
		say("kv float", run(open(quant.RoundHalfAway()), n))
		for _, g := range []float32{1.01, 1.02, 1.05, 1.1} {
			c, err := gained(w, 7, g)
			require.NoError(t, err)
			say(fmt.Sprintf("gain %v", g), run(quant.FromWeights(c, quant.KVCacheInt8(), quant.RoundHalfAway()).Candidate(engine.Scheme{RowsInt8: true}), n))
		}
	}
}


// dithered is a checkpoint whose weights are off by about a thousandth each, well below
// what int8 keeps of them: an engine on it rounds otherwise, and no worse.
type dithered struct {
	engine.Weights
	seed uint64
	size float64
}

func (d dithered) Tensor(name string) (engine.Tensor, error) {
	t, err := d.Weights.Tensor(name)
	if err != nil {
		return t, err
	}
	h := fnv.New64a()
	fmt.Fprint(h, name)
	rng := rand.New(rand.NewPCG(d.seed, h.Sum64()))
	data := make([]float32, len(t.Data))
	for i, x := range t.Data {
		data[i] = x * float32(1+d.size*rng.NormFloat64())
	}
	return engine.Tensor{Shape: t.Shape, Data: data}, nil
}

func TestSimDump(t *testing.T) {
	if os.Getenv("SIM") == "" {
		t.Skip()
	}
	cfg, err := embedded()
	require.NoError(t, err)
	cfg.Routes, cfg.Attention, cfg.Teacher, cfg.Trace, cfg.Golden = nil, nil, nil, nil, nil
	cfg.ReferenceCases = 1
	cfg.Only = []string{"ResidualShape", "ResidualCandidate", "LocalError", "LogitRowContract", "LogitCandidate", "PromptTokens", "ProbeCandidate"}
	cfg = conformance.WithMemory(cfg)
	w := cfg.Reference.Weights()
	dump := func(name string, w engine.Weights, opts ...quant.Option) {
		c := cfg
		c.Candidate = quant.FromWeights(w, opts...).Candidate(engine.Scheme{RowsInt8: true})
		rep, err := conformance.Evaluate(t.Context(), c)
		require.NoError(t, err)
		f, err := os.Create("/tmp/sim/" + name + ".json")
		require.NoError(t, err)
		require.NoError(t, rep.WriteJSON(f))
		require.NoError(t, f.Close())
	}
	kv, away, row := quant.KVCacheInt8(), quant.RoundHalfAway(), quant.EmbeddingPerRow()
	dump("v-kv-away", w, kv, away)
	dump("v-kv", w, kv)
	dump("v-kv-row", w, kv, row)
	dump("v-away", w, away)
	dump("v-plain", w)
	for _, g := range []float32{1.01, 1.02, 1.05, 1.1} {
		c, err := gained(w, 2, g)
		require.NoError(t, err)
		dump(fmt.Sprintf("gain-%v", g), c, kv, away)
	}
	for s := range 8 {
		dump(fmt.Sprintf("small-%d", s), dithered{w, uint64(s), 1e-5}, kv, away)
		dump(fmt.Sprintf("large-%d", s), dithered{w, uint64(s), 1e-3}, kv, away)
	}
}

func TestSimSeeds(t *testing.T) {
	if os.Getenv("SIM") == "" {
		t.Skip()
	}
	cfg, err := seeded()
	require.NoError(t, err)
	if os.Getenv("SIM") == "embedded" {
		cfg, err = embedded()
		require.NoError(t, err)
		cfg.Routes, cfg.Attention, cfg.Teacher, cfg.Trace = nil, nil, nil, nil
	}
	cfg.Golden = nil
	cfg.ReferenceCases = 1
	cfg.Only = []string{"ResidualShape", "ResidualCandidate", "LocalError", "LogitRowContract", "LogitCandidate", "PromptTokens", "ProbeCandidate"}
	cfg = conformance.WithMemory(cfg)
	w := cfg.Reference.Weights()
	var reps []*conformance.Report
	for s := range 24 {
		c := cfg
		c.Candidate = quant.FromWeights(dithered{w, uint64(s), 1e-3}, quant.KVCacheInt8()).Candidate(engine.Scheme{RowsInt8: true})
		rep, err := conformance.Evaluate(t.Context(), c)
		require.NoError(t, err)
		reps = append(reps, rep)
	}
	for _, n := range []int{3, 4, 5, 7, 10, len(cfg.Cases)} {
		runs, alarms, figures := 0, 0, 0
		var noise float64
		for i := range reps {
			for j := range reps {
				if i == j {
					continue
				}
				cut := func(r *conformance.Report) *conformance.Report {
					out := *r
					out.Checks, out.About, out.Power = nil, nil, nil
					out.Cases = map[string]conformance.CaseVerdict{}
					for k := range n {
						name := cfg.Cases[(k+7*i)%len(cfg.Cases)].Name
						out.Cases[name] = r.Cases[name]
					}
					return &out
				}
				a := cut(reps[j])
				require.NoError(t, a.HoldToBaseline(cut(reps[i]), "x"))
				runs++
				noise += float64(a.Baseline.Noise.Value)
				if len(a.Baseline.Regressions) > 0 {
					alarms++
					figures += len(a.Baseline.Regressions)
					for _, c := range a.Baseline.Regressions {
						fmt.Println("   ", c.Metric, c.Probe, c.Before, c.After, c.Limit.Value)
					}
				}
			}
		}
		fmt.Printf("n=%d: %d comparisons, %d alarms (%d figures), median factor %.3f\n", n, runs, alarms, figures, noise/float64(runs))
	}
}

// gained is a checkpoint whose down projection of a layer has a gain.
func gained(w engine.Weights, layer int, gain float32) (engine.Weights, error) {
	return gain1{w, fmt.Sprintf("model.layers.%d.mlp.down_proj.weight", layer), gain}, nil
}

type gain1 struct {
	engine.Weights
	name string
	gain float32
}

func (g gain1) Tensor(name string) (engine.Tensor, error) {
	t, err := g.Weights.Tensor(name)
	if err != nil || name != g.name {
		return t, err
	}
	data := make([]float32, len(t.Data))
	for i, x := range t.Data {
		data[i] = x * g.gain
	}
	return engine.Tensor{Shape: t.Shape, Data: data}, nil
}
