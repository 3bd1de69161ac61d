package quant

import (
	"context"
	"fmt"

	"github.com/plumbline-go/plumbline/engine"
)

// kv is the KV cache of one layer, [positions, kvHeads*headDim] each.
type kv struct{ k, v []float64 }

// extend adds n values to both and returns them, with undefined content.
func (c *kv) extend(n int) (k, v []float64) {
	at := len(c.k)
	c.k, c.v = longer(c.k, n), longer(c.v, n)
	return c.k[at:], c.v[at:]
}

// longer returns s with n values more, with undefined content.
func longer(s []float64, n int) []float64 {
	if len(s)+n <= cap(s) {
		return s[:len(s)+n]
	}
	return append(s, make([]float64, n)...)
}

// sequence is a run that goes on where it ended: the prompt, then token after
// token. How the tokens are divided into calls of feed changes no bit of any
// result: each position is computed by the same operations in the same order.
// Not for concurrent use.
type sequence struct {
	e    *Emulation
	p    *pass
	ids  []int // the prompt
	next int   // the position of the next token
	// cache has one entry per layer, or a single one that each layer overwrites
	// in a run that is fed once.
	cache []kv
	// probes are collected as the tokens are fed.
	probes *probes
}

// start begins a run. goesOn says that feed is called more than once.
func (e *Emulation) start(scheme engine.Scheme, ids []int, goesOn bool) (*sequence, error) {
	if err := e.check(scheme); err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("quant: got no token ids, want at least one")
	}
	s := &sequence{e: e, p: newPass(e.arch, e.opt, scheme, len(ids)), ids: ids, cache: make([]kv, 1)}
	if goesOn {
		s.cache = make([]kv, e.arch.Layers)
	}
	return s, nil
}

// check says whether the emulation can run its model under a scheme.
func (e *Emulation) check(scheme engine.Scheme) error {
	if e.invalid != nil {
		return e.invalid
	}
	return checkScheme(scheme)
}

// checkScheme says whether the emulation knows a scheme. One that it doesn't is
// the caller's mistake.
func checkScheme(s engine.Scheme) error {
	if s.ActivationBlock < 0 {
		return fmt.Errorf("quant: scheme: activation block: got %d, want at least 0", s.ActivationBlock)
	}
	for _, side := range []struct {
		name   string
		format engine.KVFormat
	}{{"keys", s.KVCache.K}, {"values", s.KVCache.V}} {
		switch side.format {
		case engine.KVFloat, engine.KVFloat16, engine.KVQ8_0:
		default:
			return fmt.Errorf("quant: scheme: %s of the KV cache: got %q, want %q, %q or nothing", side.name, side.format,
				engine.KVFloat16, engine.KVQ8_0)
		}
	}
	return nil
}

func (s *sequence) check(tokens []int) error {
	for i, id := range tokens {
		if id < 0 || id >= s.e.arch.Vocab {
			return fmt.Errorf("quant: token id %d: got %d, want 0 to %d", s.next+i, id, s.e.arch.Vocab-1)
		}
	}
	return nil
}

// feed runs the next tokens, at least one, and gives visit their rows of the
// residual stream [tokens, hidden] and the rows' steps, after the embedding and
// after each layer. visit must not keep them; those of the last layer stand until
// the next call of feed.
func (s *sequence) feed(ctx context.Context, tokens []int, visit func(x, steps []float64)) error {
	if err := s.check(tokens); err != nil {
		return err
	}
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("quant: %w", err)
	}
	if err := s.embed(tokens); err != nil {
		return err
	}
	p, model := s.p, s.e.prepared(s.p.scheme)
	s.probes.before(p)
	visit(p.x, p.steps)
	for n, load := range model.layers {
		if err := context.Cause(ctx); err != nil {
			return fmt.Errorf("quant: layer %d of %d: %w", n, len(model.layers), err)
		}
		l, err := load()
		if err != nil {
			return err
		}
		cache := &s.cache[min(n, len(s.cache)-1)]
		cache.k, cache.v = cache.k[:s.next*p.kvWidth()], cache.v[:s.next*p.kvWidth()]
		if err := p.layer(n, l, cache); err != nil {
			return err
		}
		visit(p.x, p.steps)
	}
	if err := s.probes.behind(ctx, p); err != nil {
		return err
	}
	s.next += len(tokens)
	return nil
}

// embed makes the residual stream that of the next tokens, before layer 0.
func (s *sequence) embed(tokens []int) error {
	table, err := s.e.prepared(s.p.scheme).table()
	if err != nil {
		return err
	}
	p, h := s.p, s.e.arch.Hidden
	p.begin(s.next, len(tokens))
	for t, id := range tokens {
		if s.e.arch.Fault.EmbedFirst && s.next+t == len(s.ids)-1 {
			id = s.ids[0]
		}
		p.steps[t] = table.row(p.x[t*h:(t+1)*h], id)
	}
	if !p.scheme.RowsInt8 {
		clear(p.steps)
	}
	return p.roundRows(string(engine.ProbeEmbed))
}
