package mutant

import (
	"context"
	"fmt"
	"slices"

	"github.com/plumbline-go/plumbline/engine"
)

// answerFault replaces a candidate's answers as a whole.
type answerFault func(s Sides) engine.Candidate

func answerFaults() []Mutant {
	return []Mutant{
		{
			Name: "another-prompt", Place: Nowhere, Named: "the fingerprint",
			Bug:    "the dump of another prompt lies under this one's name",
			answer: anotherPrompt,
		},
		{
			Name: "answers-nothing", Place: Nowhere, Named: "the run: nothing was judged",
			Bug:    "an engine that answers every case with no capture and no logits, which a comparison of two empty sides takes for equality",
			Source: "https://github.com/ariannamethod/notorch/pull/78",
			answer: func(s Sides) engine.Candidate {
				return wrap(s.Candidate, func(context.Context, engine.Request) (*engine.Response, error) { return &engine.Response{}, nil })
			},
		},
		{
			Name: "bos-doubled", Place: Nowhere, Named: "the prompt's ids, at id 1",
			Bug:    "the template and the tokenizer both put the first token in front of the prompt",
			Source: "https://github.com/ml-explore/mlx-examples/issues/1188",
			answer: bosDoubled,
		},
		{
			Name: "no-cases", Place: Nowhere, Named: "the run: nothing was judged",
			Bug:    "a candidate without a single case",
			answer: func(s Sides) engine.Candidate { return listing{wrapped{s.Candidate, noCase}, noCases{}} },
		},
	}
}

func noCase(_ context.Context, req engine.Request) (*engine.Response, error) {
	return nil, &engine.UnsupportedError{What: fmt.Sprintf("case %q", req.Case.Name), Why: "the candidate has no cases"}
}

type noCases struct{}

func (noCases) Cases(context.Context) ([]engine.Case, error) { return []engine.Case{}, nil }

// anotherPrompt answers each case with the clean answer to the next one that
// differs from it, fingerprint included.
func anotherPrompt(s Sides) engine.Candidate {
	return wrap(s.Candidate, func(ctx context.Context, req engine.Request) (*engine.Response, error) {
		cases := s.Cases
		if l, ok := s.Candidate.(engine.CaseLister); ok {
			var err error
			if cases, err = l.Cases(ctx); err != nil {
				return nil, err
			}
		}
		at := 0
		for i, c := range cases {
			if c.Name == req.Case.Name {
				at = i
			}
		}
		for i := range cases {
			next := cases[(at+1+i)%len(cases)]
			if next.Text != req.Case.Text {
				return s.Candidate.Run(ctx, engine.Request{Case: next, Probes: req.Probes})
			}
		}
		return nil, fmt.Errorf("mutant: another-prompt: case %q: got no case with another text among %d", req.Case.Name, len(cases))
	})
}

// bosDoubled runs each prompt with its first id twice, and says so.
func bosDoubled(s Sides) engine.Candidate {
	return wrap(s.Candidate, func(ctx context.Context, req engine.Request) (*engine.Response, error) {
		if len(req.Case.TokenIDs) > 0 {
			req.Case.TokenIDs = slices.Concat(req.Case.TokenIDs[:1], req.Case.TokenIDs)
		}
		resp, err := s.Candidate.Run(ctx, req)
		if err == nil {
			resp.PromptIDs = req.Case.TokenIDs
		}
		return resp, err
	})
}
