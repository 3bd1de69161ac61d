package mutant

import (
	"context"

	"github.com/plumbline-go/plumbline/engine"
)

// Sides are the clean parts that a faulty candidate is made of.
type Sides struct {
	// Candidate is the clean candidate. Needed for all but engine faults.
	Candidate engine.Candidate
	// Weights is the checkpoint that it runs. Needed always.
	Weights engine.Weights
	// Open makes a candidate of a checkpoint. Needed for engine faults.
	Open func(engine.Weights) (engine.Candidate, error)
	// Cases are the prompts. Needed by another-prompt where the candidate
	// doesn't list its own.
	Cases []engine.Case
}

// Candidate returns a candidate with the fault, planted at a layer or row (see
// Place). A wrapped candidate lists cases if the clean one does, and is asked for
// the probes that the faulty one is asked for.
func (m Mutant) Candidate(s Sides, at int) (engine.Candidate, error) {
	if !m.InCandidate() {
		return nil, m.unsupported("a candidate")
	}
	if s.Weights == nil {
		return nil, m.errorf("got no weights, want the candidate's")
	}
	if m.weights != nil {
		if s.Open == nil {
			return nil, m.errorf("got no way to open a candidate on other weights, want Open")
		}
		w, err := m.Weights(s.Weights, at)
		if err != nil {
			return nil, err
		}
		return s.Open(w)
	}
	if s.Candidate == nil {
		return nil, m.errorf("got no candidate to wrap")
	}
	if err := m.checkPlace(at, s.Weights.Arch().Layers); err != nil {
		return nil, err
	}
	switch {
	case m.answer != nil:
		return m.answer(s), nil
	case m.output != nil:
		return m.candidateOutput(s, at), nil
	case m.probes != nil:
		return m.candidateProbes(s, at), nil
	}
	return wrap(s.Candidate, func(ctx context.Context, req engine.Request) (*engine.Response, error) {
		resp, err := s.Candidate.Run(ctx, req)
		if err != nil || resp.Layers == nil {
			return resp, err
		}
		c, err := readCapture(resp.Layers)
		if err != nil {
			return nil, err
		}
		if len(c.rows) < 2 || m.Place == Row && at >= len(c.rows) {
			return nil, m.errorf("got a capture of %d rows, want at least 2, and row %d", len(c.rows), at)
		}
		if err := m.rows(ctx, site{at: at, normed: finalNorm(s.Weights)}, c); err != nil {
			return nil, err
		}
		if err := resp.Layers.Close(); err != nil {
			return nil, err
		}
		resp.Layers = c
		return resp, nil
	}), nil
}

// finalNorm applies a checkpoint's final norm.
func finalNorm(w engine.Weights) func(context.Context, []float64) ([]float64, error) {
	return func(_ context.Context, last []float64) ([]float64, error) {
		gain, err := w.Tensor("model.norm.weight")
		if err != nil {
			return nil, err
		}
		return rmsNorm(last, gain.Data, w.Arch().FinalNormEps), nil
	}
}

// wrapped is a candidate whose answers go through run.
type wrapped struct {
	engine.Candidate
	run func(context.Context, engine.Request) (*engine.Response, error)
}

func (w wrapped) Run(ctx context.Context, req engine.Request) (*engine.Response, error) {
	return w.run(ctx, req)
}

// listing is a wrapped candidate that lists the clean one's cases.
type listing struct {
	wrapped
	engine.CaseLister
}

func wrap(c engine.Candidate, run func(context.Context, engine.Request) (*engine.Response, error)) engine.Candidate {
	w := wrapped{c, run}
	if l, ok := c.(engine.CaseLister); ok {
		return listing{w, l}
	}
	return w
}
