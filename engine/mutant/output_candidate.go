package mutant

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/plumbline-go/plumbline/engine"
)

// candidateOutput returns a candidate whose decodes have the fault.
func (m Mutant) candidateOutput(s Sides, at int) engine.Candidate {
	return wrap(s.Candidate, func(ctx context.Context, req engine.Request) (*engine.Response, error) {
		resp, err := s.Candidate.Run(ctx, req)
		if err != nil || resp.Logits == nil {
			return resp, err
		}
		if err := m.spoilAnswer(ctx, s.Candidate, req, resp, at); err != nil {
			_ = resp.Close() // the answer is an error already
			return nil, m.errorf("case %q: %w", req.Case.Name, err)
		}
		return resp, nil
	})
}

// spoilAnswer replaces an answer's logits and tokens. Of its probes the positions
// up to the last token that is still the clean side's are left.
func (m Mutant) spoilAnswer(ctx context.Context, c engine.Candidate, req engine.Request, resp *engine.Response, at int) error {
	info, err := c.Info(ctx)
	if err != nil {
		return err
	}
	o, err := readOutput(resp.Logits, resp.OutputIDs)
	if err != nil || len(o.rows) == 0 {
		return err
	}
	site := outputSite{
		at: at, stop: req.Case.Stop, most: req.DecodeSteps,
		goOn: func(ctx context.Context, behind []int, n int, stop []int) (output, error) {
			next := engine.Request{Case: req.Case, DecodeSteps: n}
			next.Case.TokenIDs, next.Case.Stop = slices.Concat(req.Case.TokenIDs, behind), stop
			return runOn(ctx, c, next)
		},
	}
	if site.most == 0 { // the candidate's own, which is seen where no stop id ended it
		if site.most = len(o.rows); site.isStop(o.ids[len(o.ids)-1]) {
			site.most = max(site.most, engine.DefaultMaxNew)
		}
	}
	_, vocab := resp.Logits.Shape()
	before, prompt := slices.Clone(o.ids), len(req.Case.TokenIDs)
	if resp.PromptIDs != nil {
		prompt = len(resp.PromptIDs)
	}
	if err := m.output(ctx, site, o); err != nil {
		return err
	}
	if err := o.store(info.Logits); err != nil {
		return err
	}
	if err := resp.Logits.Close(); err != nil {
		return err
	}
	if n := common(before, o.ids); n < len(before) {
		if err := cutProbes(resp, prompt, n); err != nil {
			return err
		}
	}
	resp.Logits = logits{o.rows, vocab}
	if resp.OutputIDs != nil {
		resp.OutputIDs = o.ids
	}
	return nil
}

// runOn runs a candidate on a prompt that goes on where an answer ended.
func runOn(ctx context.Context, c engine.Candidate, req engine.Request) (output, error) {
	resp, err := c.Run(ctx, req)
	if err != nil {
		return output{}, err
	}
	defer func() { _ = resp.Close() }() // it was only read
	switch {
	case resp.Logits == nil:
		return output{}, errors.New("got no logits after another token, want the candidate's")
	case resp.PromptIDs != nil && !slices.Equal(resp.PromptIDs, req.Case.TokenIDs):
		return output{}, errors.New("got a candidate that runs another prompt than it is given, as recorded answers do: it can't go on with another token")
	}
	o, err := readOutput(resp.Logits, resp.OutputIDs)
	if err != nil {
		return output{}, err
	}
	if n := req.DecodeSteps; len(o.rows) > n {
		o.rows, o.ids = o.rows[:n], o.ids[:n]
	}
	if n := len(o.ids); n > 0 && slices.Contains(req.Case.Stop, o.ids[n-1]) {
		o.reason = engine.StopToken
	}
	return *o, nil
}

// store rounds the rows to what a side of the type stores.
func (o *output) store(logits string) error {
	integers := logits == engine.LogitsInt32
	for _, row := range o.rows {
		for id, v := range row {
			switch {
			case !integers:
				row[id] = float64(float32(v))
			case math.IsNaN(v):
				return errors.New("got int32 logits, which can't be NaN")
			default:
				row[id] = math.Round(v)
			}
		}
	}
	return nil
}
