package suite

import (
	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/mutant"
	"github.com/plumbline-go/plumbline/engine/quant"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/fixtures"
	"github.com/plumbline-go/plumbline/golden"
)

// Embedded is the suite on the trained checkpoint, its prompts and the goldens
// that transformers recorded for them.
func Embedded() (conformance.Config, error) {
	ckpt, err := reference.LoadFS(fixtures.Model(), ".")
	if err != nil {
		return conformance.Config{}, err
	}
	cases, err := fixtures.Prompts()
	if err != nil {
		return conformance.Config{}, err
	}
	cfg, err := On(ckpt, cases)
	if err != nil {
		return cfg, err
	}
	if cfg.Golden, err = golden.Trained(); err != nil {
		return cfg, err
	}
	if cfg.Attention, err = attention(); err != nil {
		return cfg, err
	}
	if cfg.Teacher, err = Teacher(); err != nil {
		return cfg, err
	}
	if cfg.Routes, err = Routes(); err != nil {
		return cfg, err
	}
	if cfg.Trace, err = embeddedTrace(); err != nil {
		return cfg, err
	}
	cfg.GoldenInputs = inputs()
	return cfg, nil
}

// Seeded is the suite on the checkpoint that was made for sweeps over planted
// faults. It has no goldens.
func Seeded() (conformance.Config, error) {
	ckpt, err := reference.LoadFS(fixtures.SeededModel(), ".")
	if err != nil {
		return conformance.Config{}, err
	}
	cases, err := fixtures.SeededPrompts()
	if err != nil {
		return conformance.Config{}, err
	}
	return On(ckpt, cases)
}

// On is the suite on a checkpoint: the reference is judged closely on five
// cases, the candidate is the default one, and Mutants plants the controls' faults.
func On(w engine.Weights, cases []engine.Case) (conformance.Config, error) {
	var encode func(string) ([]int, error)
	if text, ok := w.(engine.Encoder); ok {
		encode = text.Encode // Resident weights have no folder
	}
	w = engine.Resident(w)
	ref, err := reference.New(w)
	if err != nil {
		return conformance.Config{}, err
	}
	cache := quant.NewCache()
	return conformance.Config{
		Reference:      ref,
		Yardstick:      quant.New(ref, quant.WithCache(cache)),
		Candidate:      candidate(w, cache),
		Cases:          cases,
		Encode:         encode,
		Probes:         conformance.StandardProbes(w.Arch()),
		ReferenceCases: 5,
		Mutants:        planter(w, cases, cache),
	}, nil
}

// candidate is an int8 engine that is not the yardstick: its KV cache is int8
// too, and it rounds ties away from zero. Judged by itself, the yardstick would
// show a ratio of exactly 1 and prove nothing.
func candidate(w engine.Weights, c *quant.Cache) engine.Candidate {
	return quant.FromWeights(w, quant.WithCache(c), quant.KVCacheInt8(), quant.RoundHalfAway()).
		Candidate(engine.Scheme{RowsInt8: true})
}

// planter binds engine/mutant to these engines.
func planter(w engine.Weights, cases []engine.Case, cache *quant.Cache) func(conformance.Config, conformance.Control) (conformance.Config, error) {
	openReference := func(w engine.Weights) (engine.Reference, error) { return reference.New(w) }
	openCandidate := func(w engine.Weights) (engine.Candidate, error) { return candidate(w, cache.Fork()), nil }
	return func(cfg conformance.Config, k conformance.Control) (conformance.Config, error) {
		if planted, ok, err := plantInFiles(cfg, k); ok {
			return planted, err
		}
		if planted, ok, err := plantInTokens(cfg, k); ok {
			return planted, err
		}
		if planted, ok, err := plantInAttention(cfg, k); ok {
			return planted, err
		}
		if planted, ok, err := plantInTeacher(cfg, k); ok {
			return planted, err
		}
		if planted, ok, err := plantInRoutes(cfg, k); ok {
			return planted, err
		}
		if planted, ok, err := plantInTrace(cfg, k); ok {
			return planted, err
		}
		m, err := mutant.Lookup(k.Mutant)
		if err != nil {
			return cfg, err
		}
		if k.Side == conformance.SideReference {
			cfg.Reference, err = m.Reference(cfg.Reference, openReference, k.Layer)
			return cfg, err
		}
		cfg.Candidate, err = m.Candidate(mutant.Sides{Candidate: cfg.Candidate, Weights: w, Open: openCandidate, Cases: cases}, k.Layer)
		if _, lists := cfg.Candidate.(engine.CaseLister); lists {
			cfg.Cases = nil // the candidate brings its own
		}
		return cfg, err
	}
}

// ProofCases are the cases on which planted faults are shown: the first six
// that are long enough to have power and short enough to be run dozens of times.
func ProofCases(cases []engine.Case) []engine.Case {
	var out []engine.Case
	for _, c := range cases {
		if n := len(c.TokenIDs); n >= 6 && n <= 40 && len(out) < 6 {
			out = append(out, c)
		}
	}
	return out
}
