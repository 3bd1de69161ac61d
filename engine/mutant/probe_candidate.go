package mutant

import (
	"context"

	"github.com/plumbline-go/plumbline/engine"
)

// candidateProbes returns a candidate whose probes have the fault.
func (m Mutant) candidateProbes(s Sides, at int) engine.Candidate {
	return wrap(s.Candidate, func(ctx context.Context, req engine.Request) (*engine.Response, error) {
		resp, err := s.Candidate.Run(ctx, req)
		if err != nil {
			return nil, err
		}
		if err := replaceProbes(resp, func(v engine.ProbeValues) { m.probes(at, v) }); err != nil {
			_ = resp.Close() // the answer is an error already
			return nil, m.errorf("case %q: %w", req.Case.Name, err)
		}
		return resp, nil
	})
}

// replaceProbes edits a copy of an answer's probes, if it has any.
func replaceProbes(resp *engine.Response, edit func(v engine.ProbeValues)) error {
	if resp.Probes == nil {
		return nil
	}
	v := engine.ProbeValues{}
	for _, p := range resp.Probes.Probes() {
		m, err := resp.Probes.Matrix(p)
		if err != nil {
			return err
		}
		v[p] = m
	}
	edit(v)
	if err := resp.Probes.Close(); err != nil {
		return err
	}
	resp.Probes = v
	return nil
}

// cutProbes takes from an answer's probes the positions behind the first ones of
// its output: those of tokens that are not the answer's any more.
func cutProbes(resp *engine.Response, prompt, output int) error {
	return replaceProbes(resp, func(v engine.ProbeValues) {
		for p, m := range v {
			v[p] = cutMatrix(m, prompt+output)
		}
	})
}

// common is how many tokens two outputs have in common at their start.
func common(a, b []int) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
