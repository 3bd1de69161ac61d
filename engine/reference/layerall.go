package reference

import (
	"context"
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/plumbline-go/plumbline/engine"
)

// layerAllGraph is prefillGraph with the layer's output and its places, in the
// order of layerKind.parts, as outputs.
func (g *layerGraphs) layerAllGraph(in []*graph.Node) []*graph.Node {
	c := cursor{in}
	x := c.take()
	rq := rotary{c.take(), c.take()}
	rk := rotary{c.take(), c.take()}
	eps := c.take()
	weights := g.params(&c)
	l := g.layer(weights, x, eps, rq, rk, func(q, k, v *graph.Node) *graph.Node {
		return g.attention(weights).causal(q, graph.TransposeAllAxes(k, 1, 0, 2), graph.TransposeAllAxes(v, 1, 0, 2))
	})
	return l.outputs(g.places(l)...)
}

// mlpAllGraph is the MLP half of a layer on residual rows [T, H]. Its inputs are
// the rows, eps and the weights of the whole layer; its outputs are the layer's
// output and what the MLP adds.
func (g *layerGraphs) mlpAllGraph(in []*graph.Node) []*graph.Node {
	c := cursor{in}
	mid, eps := c.take(), c.take()
	if g.experts.Count > 0 {
		return g.route(g.params(&c), layerNodes{residMid: mid}, eps).outputs()
	}
	added, out := families[g.arch.Family].mlp(g.params(&c), mid, eps)
	return []*graph.Node{out, added}
}

// LayerAll implements [engine.Reference]. Rows are rounded once to the engine's
// arithmetic. The constants in Arch().PerLayer hold; the faults of Arch().Fault
// don't, for they belong to the cache and to decode steps.
func (e *Engine) LayerAll(ctx context.Context, n int, in, mid [][]float64) (engine.LayerRun, error) {
	if n < 0 || n >= e.arch.Layers {
		return nil, fmt.Errorf("reference: layer: got %d, want 0 to %d", n, e.arch.Layers-1)
	}
	if len(in) == 0 || (mid != nil && len(mid) != len(in)) {
		return nil, fmt.Errorf("reference: layer %d: got %d rows and %d of resid_mid, want at least 1, and none or as many", n, len(in), len(mid))
	}
	rows, err := e.stack(in)
	if err != nil {
		return nil, err
	}
	mids, err := e.stack(mid)
	if err != nil {
		return nil, err
	}
	return guard(ctx, e.patience(len(in)), func(*progress) (engine.LayerRun, error) {
		run, err := e.layerAll(n, rows, len(in))
		if err != nil || mid == nil {
			return run, err
		}
		return run, e.mlpAll(n, mids, len(in), run)
	})
}

// layerAll runs the whole layer on rows [t, H].
func (e *Engine) layerAll(n int, rows []float64, t int) (engine.LayerRun, error) {
	x, err := e.given(rows, t)
	if err != nil {
		return nil, err
	}
	ropes := ropeMemo{}
	args, err := e.rowArgs(x, n, ropes, consecutive(0, t))
	if err != nil {
		return nil, err
	}
	out, err := e.callLayer(e.graphs[n].rows, n, appendTensors(append(args, e.eps[n]), e.layers[n]), sequenceFrom(0), true)
	if err != nil {
		return nil, err
	}
	run := engine.LayerRun{}
	for i, part := range append([]engine.Part{engine.PartResidPost}, e.graphs[n].parts()...) {
		if part.Routed() {
			continue
		}
		if run[part], err = unstack(out[i], t); err != nil {
			return nil, fmt.Errorf("reference: layer %d: %s: %w", n, part, err)
		}
	}
	for _, t := range ropes {
		out = append(out, t.cos, t.sin)
	}
	return run, finalize(append(out, x)...)
}

// mlpAll replaces what the MLP half gives by what it gives on other rows [t, H].
func (e *Engine) mlpAll(n int, mid []float64, t int, run engine.LayerRun) error {
	x, err := e.given(mid, t)
	if err != nil {
		return err
	}
	out, err := e.callLayer(e.graphs[n].mlpRows, n, appendTensors([]any{x, e.eps[n]}, e.layers[n]), sequenceFrom(0), true)
	if err != nil {
		return err
	}
	parts := []engine.Part{engine.PartMLPOut}
	if e.graphs[n].experts.Count > 0 {
		parts = e.graphs[n].routedParts()
	}
	for i, part := range append([]engine.Part{engine.PartResidPost}, parts...) {
		if part.Routed() || part == engine.PartResidMid {
			continue
		}
		if run[part], err = unstack(out[i], t); err != nil {
			return fmt.Errorf("reference: layer %d: %s: %w", n, part, err)
		}
	}
	return finalize(append(out, x)...)
}

// given uploads t rows of the residual stream from a caller, [t, H], rounded to
// what the engine's arithmetic holds.
func (e *Engine) given(rows []float64, t int) (*tensors.Tensor, error) {
	return upload(e.dev, heldValues(e.set.dtype.rounder(), rows), t, e.arch.Hidden)
}

// stack joins rows of the hidden size.
func (e *Engine) stack(rows [][]float64) ([]float64, error) {
	all := make([]float64, 0, len(rows)*e.arch.Hidden)
	for _, row := range rows {
		if err := e.checkRow(row); err != nil {
			return nil, err
		}
		all = append(all, row...)
	}
	return all, nil
}

// unstack downloads a tensor of t positions.
func unstack(x *tensors.Tensor, t int) ([][]float64, error) {
	width := x.Shape().Size() / t
	all, err := download(x, 0, t*width)
	if err != nil {
		return nil, err
	}
	rows := make([][]float64, t)
	for i := range rows {
		rows[i] = all[i*width : (i+1)*width : (i+1)*width]
	}
	return rows, nil
}
