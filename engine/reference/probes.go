package reference

import (
	"context"
	"errors"
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/plumbline-go/plumbline/engine"
)

// parts are the places inside a layer, in the order in which probedGraph returns
// them. The residual stream behind a layer is its output.
func (k layerKind) parts() []engine.Part {
	if k.linear {
		return []engine.Part{engine.PartAttnNorm, engine.PartAttnOut, engine.PartResidMid, engine.PartMLPOut}
	}
	if k.experts.Count > 0 {
		return append(attentionParts(), k.routedParts()...)
	}
	return append(attentionParts(), engine.PartResidMid, engine.PartMLPOut)
}

// attentionParts are those of attention.
func attentionParts() []engine.Part {
	return []engine.Part{engine.PartAttnNorm, engine.PartQ, engine.PartK, engine.PartV, engine.PartQRope, engine.PartKRope, engine.PartAttnOut}
}

// probedGraph is decodeGraph with the places of the layer as further outputs.
func (g *layerGraphs) probedGraph(in []*graph.Node) []*graph.Node {
	l, cache := g.decodeNodes(in)
	return l.outputs(append(cache.nodes(), g.places(l)...)...)
}

// CaptureProbes runs a prompt and the tokens behind it token by token with a KV
// cache, as Capture runs a prompt, and returns the wanted places at every
// position. There are len(ids)+len(output)-1 positions, or len(ids) without an
// output: its last token is never run. The values of a float64 engine are rounded
// once.
//
// An output is run as it stands, whatever the model would choose. The faults of
// Arch().Fault act as on Capture and on the steps of Decode. A probe that the
// model doesn't have is an [*engine.ProbeError] or an [*engine.UnsupportedError].
//
// On the "go" backend the rows of the residual stream at the prompt's last
// position have the bits of Capture's, whatever else is wanted. The memory is 4
// bytes per value, and the KV cache.
func (e *Engine) CaptureProbes(ctx context.Context, ids, output []int, probes []engine.Probe) (map[engine.Probe]engine.Matrix, error) {
	if err := e.checkIDs(ids); err != nil {
		return nil, err
	}
	if len(output) > 0 {
		if err := e.checkIDs(output); err != nil {
			return nil, fmt.Errorf("reference: output tokens: %w", err)
		}
		if err := e.checkDecode(ids, engine.DecodeOptions{MaxNew: len(output)}); err != nil {
			return nil, err
		}
	}
	w, err := e.newProbeWatch(probes, len(ids)+max(0, len(output)-1))
	if err != nil {
		return nil, err
	}
	return guard(ctx, e.set.stepDeadline, func(p *progress) (map[engine.Probe]engine.Matrix, error) {
		if w.has(engine.ProbeLogits) {
			if err := e.needHead(); err != nil {
				return nil, err
			}
		}
		cache, err := e.newKVCache(e.capacity(w.positions))
		if err != nil {
			return nil, err
		}
		r, s := run{e: e, cache: cache}, schedule{arch: e.arch, ids: ids}
		for w.pos = range w.positions {
			var id int
			if w.pos < len(ids) {
				id = s.id(w.pos)
			} else {
				id = output[w.pos-len(ids)]
			}
			x, err := r.token(p, s, w.pos, id, watch{row: w.row, parts: func(n int, places []*tensors.Tensor) error { return w.parts(n, e.graphs[n].parts(), places) }, inside: w.inside})
			if err == nil {
				err = w.head(e, x)
			}
			if err != nil {
				return nil, fmt.Errorf("reference: probes: position %d: %w", w.pos, err)
			}
		}
		return w.out, nil
	})
}

// probeWatch collects probes; it watches one position at a time.
type probeWatch struct {
	positions, pos int
	out            map[engine.Probe]engine.Matrix
	layers         map[int]bool // those with a wanted place inside
}

func (e *Engine) newProbeWatch(probes []engine.Probe, positions int) (*probeWatch, error) {
	if len(probes) == 0 {
		return nil, errors.New("reference: probes: got none, want at least 1")
	}
	w := &probeWatch{positions: positions, out: map[engine.Probe]engine.Matrix{}, layers: map[int]bool{}}
	widths := make([]int, len(probes)) // before anything is allocated
	for i, p := range probes {
		var err error
		if widths[i], err = p.Width(e.arch); err != nil {
			return nil, fmt.Errorf("reference: %w", err)
		}
	}
	for i, p := range probes {
		if w.has(p) {
			continue
		}
		w.out[p] = engine.Matrix{Rows: positions, Width: widths[i], Data: make([]float32, positions*widths[i])}
		if n, part, ok := p.Block(); ok && part != engine.PartResidPost {
			w.layers[n] = true
		}
	}
	return w, nil
}

func (w *probeWatch) has(p engine.Probe) bool {
	_, ok := w.out[p]
	return ok
}

// keep copies one position's values, if they are wanted.
func (w *probeWatch) keep(p engine.Probe, t *tensors.Tensor) error {
	m, ok := w.out[p]
	if !ok {
		return nil
	}
	values, err := download(t, 0, m.Width)
	if err != nil {
		return fmt.Errorf("%s: %w", p, err)
	}
	row := m.Row(w.pos)
	for i, v := range values {
		row[i] = float32(v)
	}
	return nil
}

func (w *probeWatch) row(n int, x *tensors.Tensor) error { return w.keep(engine.RowProbe(n), x) }

func (w *probeWatch) inside(n int) bool { return w.layers[n] }

func (w *probeWatch) parts(n int, parts []engine.Part, places []*tensors.Tensor) error {
	for i, part := range parts {
		if err := w.keep(engine.Block(n, part), places[i]); err != nil {
			return err
		}
	}
	return nil
}

// head keeps what lies behind the layers, whose output x [1, H] it finalizes.
func (w *probeWatch) head(e *Engine, x *tensors.Tensor) error {
	for _, g := range []struct {
		probe engine.Probe
		exec  *graph.Exec
		head  []*tensors.Tensor
	}{{engine.ProbeFinalNorm, e.norm, nil}, {engine.ProbeLogits, e.logits, e.head}} {
		if !w.has(g.probe) {
			continue
		}
		out, err := call(g.exec, appendTensors([]any{x, e.finalNorm, e.finalEps}, g.head))
		if err != nil {
			return err
		}
		if err := w.keep(g.probe, out[0]); err != nil {
			return err
		}
		if err := finalize(out[0]); err != nil {
			return err
		}
	}
	return finalize(x)
}
