package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/plumbline-go/plumbline/golden/trace"
)

// Trace is a full-depth trace of a model with routed experts, and what it was made of.
type Trace struct {
	// Plan and Shape are what was to be traced.
	Plan  trace.Plan
	Shape trace.Shape
	// Rounding is how far its figures may be from those that are computed again.
	Rounding trace.Rounding
	// Open gives the trace. It is called once, and only where a check looks at it.
	Open func(ctx context.Context) (*Traced, error)
}

// Traced is a trace and its sources.
type Traced struct {
	Document *trace.Document
	// Sources are in the order of the document's.
	Sources []TracedSource
}

// TracedSource is what a source's trace was made of.
type TracedSource struct {
	// Variants are its tokens, in the order of the plan's conditions. Boundary are the
	// tokenizer's ids of the tokens at the start, nil for a source that came tokenised.
	Variants []trace.Variant
	Boundary map[string]int
	// Recorded are the tensors that were kept; nil for none.
	Recorded trace.Recorded
}

// TraceEvidence is what a trace is found to be: problems, by what they are of, and how
// much was looked at.
type TraceEvidence struct {
	Shape, Content, Statistics, Hashes TraceFindings
}

// TraceFindings are the problems of one kind.
type TraceFindings struct {
	Problems []trace.Problem
	Looked   int
	// Not says why nothing was looked at.
	Not string
}

// traceEvidence looks at the trace, if a check asks for it.
func traceEvidence(ctx context.Context, cfg *Config, checks []*Check) (*TraceEvidence, error) {
	wanted := false
	for _, c := range checks {
		wanted = wanted || c.Needs&NeedTrace != 0
	}
	t := cfg.Trace
	if t == nil || !wanted {
		return nil, nil
	}
	if t.Open == nil {
		return nil, errors.New("conformance: Config.Trace: Open is nil: nothing gives the trace")
	}
	of, err := t.Open(ctx)
	if err != nil {
		return nil, fmt.Errorf("conformance: trace: %w", err)
	}
	if of == nil || of.Document == nil {
		return nil, errors.New("conformance: Config.Trace: Open gave no document")
	}
	ev := &TraceEvidence{}
	ev.Shape.Problems, ev.Shape.Looked = trace.CheckShape(of.Document, t.Plan, t.Shape)
	ev.content(t, of)
	if len(ev.Shape.Problems) > 0 {
		why := "the trace has another shape: nothing says which figures belong together"
		ev.Statistics.Not, ev.Hashes.Not = why, why
		return ev, nil
	}
	ev.Statistics.add(trace.CheckStatistics(of.Document, t.Rounding))
	kept := 0
	for i, s := range of.Sources {
		if s.Recorded == nil || i >= len(of.Document.Traced) {
			continue
		}
		kept++
		ev.Hashes.add(trace.CheckHashes(of.Document, i, s.Recorded))
		ev.Statistics.add(trace.CheckRecorded(of.Document, i, s.Recorded, t.Rounding))
	}
	if kept == 0 {
		ev.Hashes.Not = "no tensor was kept of what was traced"
	}
	return ev, nil
}

func (f *TraceFindings) add(problems []trace.Problem, looked int) {
	f.Problems, f.Looked = append(f.Problems, problems...), f.Looked+looked
}

// content holds the tokens of all sources to each other, and the document to them.
func (ev *TraceEvidence) content(t *Trace, of *Traced) {
	if len(of.Sources) == 0 {
		ev.Content.Not = "no source's tokens were kept"
		return
	}
	bad := func(at, what string, got, want any) {
		ev.Content.Problems = append(ev.Content.Problems, trace.Problem{At: at, What: what, Got: fmt.Sprint(got), Want: fmt.Sprint(want)})
	}
	d := of.Document
	if len(of.Sources) != len(d.Traced) {
		bad("sources", "sources", len(d.Traced), len(of.Sources))
		return
	}
	for i, s := range of.Sources {
		x := d.Traced[i]
		at := fmt.Sprintf("sources[%s]", x.ID)
		problems, looked := t.Plan.CheckContent(x.ID, s.Variants, s.Boundary)
		ev.Content.add(problems, looked)
		if len(problems) > 0 {
			continue
		}
		var ids []int
		for _, p := range s.Variants[0].ContentPositions {
			ids = append(ids, s.Variants[0].TokenIDs[p])
		}
		if got, want := x.ContentIDsSHA256, trace.IDsHash(ids); got != want {
			bad(at, "content_ids_sha256", got, want)
		}
		if x.ContentTokens != len(ids) {
			bad(at, "content_tokens", x.ContentTokens, len(ids))
		}
		for c, v := range s.Variants {
			if c >= len(x.PromptTokens) || c >= len(x.BoundaryCrossing) {
				bad(at, "conditions", min(len(x.PromptTokens), len(x.BoundaryCrossing)), len(s.Variants))
				break
			}
			name := t.Plan.Conditions[c].Name
			if got, want := x.PromptTokens[c], len(v.TokenIDs); got != want {
				bad(at, "prompt tokens of "+name, got, want)
			}
			if got, want := x.BoundaryCrossing[c], v.BoundaryCrossing; got != want {
				bad(at, "boundary crossing tokens of "+name, got, want)
			}
		}
	}
}
