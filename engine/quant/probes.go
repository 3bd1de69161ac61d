package quant

import (
	"context"
	"fmt"

	"github.com/plumbline-go/plumbline/engine"
)

// logitRows is how many positions of the logits are computed at a time, so that
// a long prompt doesn't need all of them in float64 as well.
const logitRows = 64

// probes collects the places that were asked for while a sequence is fed, and no
// others. A nil *probes collects nothing.
type probes struct {
	e      *Emulation
	blocks map[block]*engine.Matrix
	// places outside the layers; nil when they weren't asked for
	embed, finalNorm, logits *engine.Matrix
	norm                     []float64 // the final norm's gain, for finalNorm
}

// block is a place in a layer.
type block struct {
	layer int
	part  engine.Part
}

// probes makes room for what was asked, for a prompt of so many tokens: nil when
// that is nothing. The errors are those of engine.Probe.Width. int32Logits says
// that the answer's logits are integers without a scale.
func (e *Emulation) probes(asked []engine.Probe, prompt int, int32Logits bool) (*probes, error) {
	if len(asked) == 0 || e.invalid != nil {
		return nil, e.invalid
	}
	c := &probes{e: e, blocks: map[block]*engine.Matrix{}}
	for _, p := range asked {
		width, err := p.Width(e.arch)
		if err != nil {
			return nil, err
		}
		m := &engine.Matrix{Width: width}
		switch p {
		case engine.ProbeEmbed:
			c.embed = m
		case engine.ProbeFinalNorm:
			c.finalNorm = m
			l := &loader{w: e.weights}
			if c.norm = l.vector("model.norm.weight", e.arch.Hidden); l.err != nil {
				return nil, l.err
			}
		case engine.ProbeLogits:
			if int32Logits {
				return nil, &engine.UnsupportedError{What: "probe " + string(p), Why: "the logits are integers without a scale"}
			}
			c.logits = m
		default:
			layer, part, _ := p.Block()
			c.blocks[block{layer, part}] = m
		}
		m.Data = make([]float32, 0, prompt*width)
	}
	return c, nil
}

// watch has a sequence's passes collected from now on.
func (c *probes) watch(s *sequence) {
	if c == nil {
		return
	}
	s.probes = c
	s.p.tap = func(layer int, part engine.Part, x []float64) { keep(c.blocks[block{layer, part}], x) }
}

// keep appends positions to a matrix that was asked for.
func keep(m *engine.Matrix, x []float64) {
	if m == nil {
		return
	}
	for _, v := range x {
		m.Data = append(m.Data, float32(v))
	}
	m.Rows += len(x) / m.Width
}

// before collects the residual stream in front of the layers.
func (c *probes) before(p *pass) {
	if c != nil {
		keep(c.embed, p.x)
	}
}

// behind collects what follows from the residual stream behind the layers.
func (c *probes) behind(ctx context.Context, p *pass) error {
	if c == nil {
		return nil
	}
	h := p.arch.Hidden
	if c.finalNorm != nil {
		normed := make([]float64, len(p.x))
		rmsNorm(normed, p.x, c.norm, p.arch.FinalNormEps)
		keep(c.finalNorm, normed)
	}
	if c.logits == nil {
		return nil
	}
	for t := 0; t < p.n; t += logitRows {
		if err := context.Cause(ctx); err != nil {
			return fmt.Errorf("quant: %s: %w", engine.ProbeLogits, err)
		}
		flat, err := c.e.logits(p, p.x[t*h:min(t+logitRows, p.n)*h], "position", p.from+t, false)
		if err != nil {
			return err
		}
		keep(c.logits, flat)
	}
	return nil
}

// values is what was collected, by name; nil when nothing was asked.
func (c *probes) values() engine.ProbeSource {
	if c == nil {
		return nil
	}
	out := engine.ProbeValues{}
	for at, m := range c.blocks {
		out[engine.Block(at.layer, at.part)] = *m
	}
	for p, m := range map[engine.Probe]*engine.Matrix{
		engine.ProbeEmbed: c.embed, engine.ProbeFinalNorm: c.finalNorm, engine.ProbeLogits: c.logits,
	} {
		if m != nil {
			out[p] = *m
		}
	}
	return out
}
