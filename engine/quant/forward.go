package quant

import (
	"fmt"

	"github.com/plumbline-go/plumbline/engine"
)

// pass is the arithmetic of one run: n tokens from a position on, all of them of
// a layer at a time.
type pass struct {
	arch   engine.Arch
	opt    options
	scheme engine.Scheme
	prompt int // length of the prompt, from whose end planted positions count

	from, n int
	x       []float64 // [n, hidden]: the residual stream
	steps   []float64 // [n]: the scale of each row of x, zeros for float rows

	h, q, a, g, u, scores []float64
	pairs                 []float64 // [headDim]: a head with its channels in pairs
	k, v                  []float64 // [n, kvWidth]: what this pass adds to the KV cache
	s                     scratch

	// tap, when not nil, is given the parts of each layer, [n, width], as they
	// are computed. It must not keep them.
	tap func(layer int, part engine.Part, x []float64)
}

func newPass(arch engine.Arch, opt options, scheme engine.Scheme, prompt int) *pass {
	return &pass{arch: arch, opt: opt, scheme: scheme, prompt: prompt}
}

func (p *pass) kvWidth() int { return p.arch.KVHeads * p.arch.HeadDim }

func (p *pass) see(layer int, part engine.Part, x []float64) {
	if p.tap != nil {
		p.tap(layer, part, x)
	}
}

// begin makes room for n tokens from a position on.
func (p *pass) begin(from, n int) {
	p.from, p.n = from, n
	qWidth := p.arch.Heads * p.arch.HeadDim
	p.x, p.steps, p.h = grow(p.x, n*p.arch.Hidden), grow(p.steps, n), grow(p.h, n*p.arch.Hidden)
	p.q, p.a = grow(p.q, n*qWidth), grow(p.a, n*qWidth)
	p.g, p.u = grow(p.g, n*p.arch.Intermediate), grow(p.u, n*p.arch.Intermediate)
}

// roundRows rounds the residual stream per row where the scheme says so.
func (p *pass) roundRows(what string) error {
	if !p.scheme.RowsInt8 {
		return nil
	}
	h := p.arch.Hidden
	for t := range p.n {
		step, ok := p.opt.ties.row(p.x[t*h:(t+1)*h], true)
		if !ok {
			return nonFinite(what, p.from+t)
		}
		p.steps[t] = step
	}
	return nil
}

func nonFinite(what string, position int) error {
	return fmt.Errorf("quant: %s: position %d: got a NaN or infinity, want finite values", what, position)
}

// quantise makes x the input of the linears that follow.
func (p *pass) quantise(x []float64, what string) error {
	if t := p.s.quantise(x, p.n, len(x)/p.n, p.opt.ties, p.scheme); t >= 0 {
		return nonFinite(what, p.from+t)
	}
	return nil
}

func (p *pass) linear(dst []float64, l linear) { p.s.mul(dst, l.m, l.bias, p.n) }

// layer runs decoder layer n on the residual stream, in place. cache holds the
// layer's keys and values of the positions before, and then those of the pass.
func (p *pass) layer(n int, l *layer, cache *kv) error {
	if err := p.attentionHalf(n, l, cache); err != nil {
		return err
	}
	return p.mlpHalf(n, l)
}

// attentionHalf turns the residual stream into resid_mid.
func (p *pass) attentionHalf(n int, l *layer, cache *kv) error {
	if err := p.attention(n, l, cache); err != nil {
		return err
	}
	if err := p.roundRows(string(engine.ResidMid(n))); err != nil {
		return err
	}
	p.see(n, engine.PartResidMid, p.x)
	return nil
}

// mlpHalf turns resid_mid into resid_post.
func (p *pass) mlpHalf(n int, l *layer) error {
	if err := p.mlp(n, l); err != nil {
		return err
	}
	if err := p.roundRows(string(engine.ResidPost(n))); err != nil {
		return err
	}
	p.see(n, engine.PartResidPost, p.x)
	return nil
}

func (p *pass) attention(n int, l *layer, cache *kv) error {
	a, c := p.arch, p.arch.PerLayer[n]
	rmsNorm(p.h, p.x, l.inputNorm, c.NormEps)
	p.see(n, engine.PartAttnNorm, p.h)
	if err := p.quantise(p.h, fmt.Sprintf("blocks.%d.attn_norm", n)); err != nil {
		return err
	}
	p.k, p.v = cache.extend(p.n * p.kvWidth())
	p.linear(p.q, l.q)
	p.linear(p.k, l.k)
	p.linear(p.v, l.v)
	p.see(n, engine.PartQ, p.q)
	p.see(n, engine.PartK, p.k)
	p.see(n, engine.PartV, p.v)
	rotate(p.q, a.Heads, a.HeadDim, c.RopeTheta, func(t int) int { return p.position(t) + c.QueryOffset })
	rotate(p.k, a.KVHeads, a.HeadDim, c.RopeTheta, p.position)
	p.see(n, engine.PartQRope, p.q)
	p.see(n, engine.PartKRope, p.k)
	if err := p.writeCache(n); err != nil {
		return err
	}
	if err := p.store(p.q, p.scheme.KVCache.K, a.Heads, p.paired(), n, "query"); err != nil {
		return err
	}
	attend(p.a, p.q, cache.k, cache.v, &p.scores, a.Heads, a.KVHeads, a.HeadDim, p.scheme.KVCache.V == engine.KVFloat16)
	p.see(n, engine.PartAttnOut, p.a)
	if err := p.quantise(p.a, fmt.Sprintf("blocks.%d.attn_out", n)); err != nil {
		return err
	}
	p.linear(p.h, l.o)
	addTo(p.x, p.h)
	return nil
}

// expWork is the time of an exponential in multiplications.
const expWork = 64

func (p *pass) mlp(n int, l *layer) error {
	rmsNorm(p.h, p.x, l.postNorm, p.arch.PerLayer[n].NormEps)
	if err := p.quantise(p.h, fmt.Sprintf("blocks.%d.mlp_norm", n)); err != nil {
		return err
	}
	p.linear(p.g, l.gate)
	p.linear(p.u, l.up)
	width := p.arch.Intermediate
	spread(workers(p.n, p.n*width*expWork), p.n, func(_, t int) {
		u := p.u[t*width : (t+1)*width]
		for i, g := range p.g[t*width : (t+1)*width] {
			p.g[t*width+i] = silu(g) * u[i]
		}
	})
	if err := p.quantise(p.g, fmt.Sprintf("blocks.%d.mlp_act", n)); err != nil {
		return err
	}
	p.linear(p.h, l.down)
	p.see(n, engine.PartMLPOut, p.h)
	addTo(p.x, p.h)
	return nil
}

// position is the rotary position of the pass's token t; a planted decode shift
// moves it.
func (p *pass) position(t int) int {
	t += p.from
	f := p.arch.Fault
	if f.DecodeShift != 0 && t >= p.fromEnd(f.DecodeFrom) {
		return t + f.DecodeShift
	}
	return t
}

// fromEnd resolves a position that counts from the prompt's end when negative.
func (p *pass) fromEnd(position int) int {
	if position < 0 {
		return p.prompt + position
	}
	return position
}

// writeCache turns k and v into what the KV cache of layer n holds. Every
// position is written before any later one reads it, as in a run token by token.
func (p *pass) writeCache(n int) error {
	dim := p.arch.HeadDim
	if !p.opt.kvInt8 {
		if err := p.store(p.k, p.scheme.KVCache.K, p.arch.KVHeads, p.paired(), n, "key cache"); err != nil {
			return err
		}
		if err := p.store(p.v, p.scheme.KVCache.V, p.arch.KVHeads, false, n, "value cache"); err != nil {
			return err
		}
	} else {
		for at := 0; at < len(p.k); at += dim {
			_, kOK := p.opt.ties.row(p.k[at:at+dim], false)
			_, vOK := p.opt.ties.row(p.v[at:at+dim], false)
			if !kOK || !vOK {
				return nonFinite(fmt.Sprintf("blocks.%d: key/value cache", n), p.from+at/p.kvWidth())
			}
		}
	}
	if f := p.arch.Fault; f.StaleCache && f.StaleLayer == n {
		if t := p.fromEnd(f.StalePosition) - p.from; t >= 0 && t < p.n {
			width := p.kvWidth()
			clear(p.k[t*width : (t+1)*width])
			clear(p.v[t*width : (t+1)*width])
		}
	}
	return nil
}

// kvBlock is how many channels share a scale in a KV cache of KVQ8_0.
const kvBlock = 32

// paired reports whether the two channels that RoPE turns together, j and
// j+dim/2, are neighbours in the engine's heads, so that they share a block.
// ggml keeps the heads of a llama so, and those of other families as they are.
func (p *pass) paired() bool { return p.arch.Family == "llama" }

// store rounds x [n, heads, dim] in place to what a cache of a format holds.
func (p *pass) store(x []float64, f engine.KVFormat, heads int, paired bool, layer int, what string) error {
	if f == engine.KVFloat {
		return nil
	}
	dim := p.arch.HeadDim
	for at := 0; at < len(x); at += dim {
		row := x[at : at+dim]
		if f == engine.KVFloat16 && !halves(row) || f == engine.KVQ8_0 && !p.headBlocks(row, paired) {
			return nonFinite(fmt.Sprintf("blocks.%d: %s as %s", layer, what, f), p.from+at/(heads*dim))
		}
	}
	return nil
}

// headBlocks rounds the channels of one head in place as KVQ8_0.
func (p *pass) headBlocks(row []float64, paired bool) (ok bool) {
	if !paired {
		return p.opt.ties.blocks(row, kvBlock)
	}
	half := len(row) / 2
	p.pairs = grow(p.pairs, len(row))
	for j := range half {
		p.pairs[2*j], p.pairs[2*j+1] = row[j], row[j+half]
	}
	ok = p.opt.ties.blocks(p.pairs, kvBlock)
	for j := range half {
		row[j], row[j+half] = p.pairs[2*j], p.pairs[2*j+1]
	}
	return ok
}

func addTo(dst, x []float64) {
	for i, v := range x {
		dst[i] += v
	}
}
