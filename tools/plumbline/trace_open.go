package main

import (
	"context"
	"fmt"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/golden/trace"
)

// tracer is what trace needs of the reference.
type tracer interface {
	Describe() engine.Info
	TraceBatch(ctx context.Context, prompts [][]int, pad int, each func(engine.Stage) error) error
}

// open opens the checkpoint, its headers and its tokenizer, without the weights.
func (t *tracing) open() error {
	var err error
	if t.ckpt, err = t.checkpoint(); err != nil {
		return err
	}
	if t.shape, err = traceShape(t.ckpt.Arch(), t.ckpt.Name()); err != nil {
		return err
	}
	t.hidden = trace.Float32
	if reference.DType(t.dtype) == reference.BFloat16 {
		t.hidden = trace.BFloat16
	}
	if t.acc, err = trace.NewAccumulator(t.plan, t.shape, t.hidden); err != nil {
		return err
	}
	return t.openTokenizer()
}

// traceShape is what is traced of a model.
func traceShape(a engine.Arch, name string) (trace.Shape, error) {
	s := trace.Shape{Layers: a.Layers, Hidden: a.Hidden}
	for n := range a.Layers {
		if !a.RoutedAt(n) {
			continue
		}
		x := a.PerLayer[n].Experts
		if len(s.Gates) > 0 && (x.Count != s.Experts || x.PerToken != s.TopK) {
			return s, &engine.UnsupportedError{What: fmt.Sprintf("%d of %d experts in layer %d, %d of %d before", x.PerToken, x.Count, n, s.TopK, s.Experts),
				Why: "a trace has one number of experts"}
		}
		s.Gates = append(s.Gates, n)
		s.Experts, s.TopK = x.Count, x.PerToken
	}
	if len(s.Gates) == 0 {
		return s, fmt.Errorf("%s: got a model without routers (%s), want a mixture of experts", name, a.Family)
	}
	return s, s.Validate()
}

// openTokenizer finds the ids of the tokens that inputs start with, and what rows
// are padded with: the tokenizer's pad token, or eos.
func (t *tracing) openTokenizer() error {
	m, err := t.text()
	if err != nil {
		return err
	}
	if m.err != nil {
		for _, s := range t.selection.Sources {
			if s.Variants == nil {
				return fmt.Errorf("source %s is text: %w", s.ID, m.err)
			}
		}
		if !m.missing {
			t.warn("no tokenizer, sources bring their ids: %v", m.err)
		}
		t.pad = t.selection.Sources[0].Variants[t.plan.Condition(eosCondition)].TokenIDs[0]
		return nil
	}
	t.words, t.boundary = m, map[string]int{}
	for _, name := range t.plan.Boundaries() {
		if id, ok := boundaryID(m, name); ok {
			t.boundary[name] = id
		}
	}
	if err := t.plan.CheckBoundaries(t.boundary, nil); err != nil {
		return fmt.Errorf("%s: %w", m.file, err)
	}
	var ok bool
	if t.pad, ok = m.tok.Named("pad_token"); !ok {
		t.pad = t.boundary["eos"]
	}
	return nil
}

// eosCondition is one whose inputs start with eos.
const eosCondition = "s0_eos"

// boundaryID is the id of a token that the plan names.
func boundaryID(m *modelText, name string) (int, bool) {
	switch name {
	case "eos", "bos":
		return m.tok.Named(name + "_token")
	case "period":
		return m.tok.ID(".")
	}
	return m.tok.ID(name)
}

// encode is the tokenizer as the plan asks for it.
func (t *tracing) encode(text string) (ids []int, spans [][2]int, err error) {
	ids, at, err := t.words.tok.EncodeOffsets(text)
	for _, s := range at {
		spans = append(spans, [2]int{s.Start, s.End})
	}
	return ids, spans, err
}

// variants are a source's token ids under each condition, which the model can run.
func (t *tracing) variants(s trace.Source) ([]trace.Variant, error) {
	all := s.Variants
	if all == nil {
		var err error
		if all, err = t.plan.Tokenise(t.encode, t.boundary, s.Text); err != nil {
			return nil, fmt.Errorf("source %s: %w", s.ID, err)
		}
	}
	arch := t.ckpt.Arch()
	longest := 0
	for i, v := range all {
		longest = max(longest, len(v.TokenIDs))
		for k, id := range v.TokenIDs {
			if id >= arch.Vocab {
				got, want := outsideVocabulary(id, arch.Vocab)
				return nil, &trace.TokenError{Source: s.ID, Condition: t.plan.Conditions[i].Name, What: fmt.Sprintf("token %d", k), Got: got, Want: want}
			}
		}
	}
	if arch.MaxPositions > 0 && longest > arch.MaxPositions {
		return nil, &trace.TokenError{Source: s.ID, What: "tokens", Got: fmt.Sprint(longest), Want: fmt.Sprintf("at most %d (max_position_embeddings)", arch.MaxPositions)}
	}
	return all, nil
}

// checkSources tokenises every source before the first one is run. What it makes is
// made again then, so that it isn't held for all of them.
func (t *tracing) checkSources() error {
	for _, s := range t.selection.Sources {
		v, err := t.variants(s)
		if err != nil {
			return err
		}
		if err := t.acc.Start(s, v, t.boundary); err != nil {
			return err
		}
	}
	if t.pad >= t.ckpt.Arch().Vocab {
		got, want := outsideVocabulary(t.pad, t.ckpt.Arch().Vocab)
		return fmt.Errorf("%s: pad token: got %s, want %s", t.words.file, got, want)
	}
	return nil
}

// options are those of both runs, but for the arithmetic.
func (t *tracing) options() ([]reference.Option, error) {
	opts, err := t.referenceOptions()
	if err != nil {
		return nil, err
	}
	if t.flags.scale == scaleTransformers {
		opts = append(opts, reference.WithTransformersScale())
	}
	if t.flags.attention == attentionFused {
		opts = append(opts, reference.WithFusedAttention())
	}
	return opts, nil
}

// newEngine uploads the weights.
func (t *tracing) newEngine() (*reference.Engine, error) {
	opts, err := t.options()
	if err != nil {
		return nil, err
	}
	return reference.New(t.ckpt, opts...)
}
