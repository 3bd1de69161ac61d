package reference

import (
	"context"
	"errors"
	"fmt"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/plumbline-go/plumbline/engine"
)

// TraceBatch runs prompts as one batch and hands each stage to each, in the order
// of computation: the embedding, every layer, the final norm. Prompts are padded on
// the left with the token pad to the length of the longest, so that stage rows are
// [prompts*longest]. Positions are those of the slots, padding included, as a
// prefill without position ids has them (DecodeBatch starts every prompt at 0). No
// prompt attends to padding; what the padding's own rows hold means nothing.
//
// The values of a float64 engine are rounded once in a stage's Rows, not in its
// Routing. Only one stage is in memory at a time. An error from each ends the run.
// Of the faults in Arch().Fault BatchPaddingUnmasked acts.
func (e *Engine) TraceBatch(ctx context.Context, prompts [][]int, pad int, each func(engine.Stage) error) error {
	if err := e.checkTrace(prompts, pad); err != nil {
		return err
	}
	b := &batch{e: e}
	for _, ids := range prompts {
		b.slots = max(b.slots, len(ids))
	}
	patience := e.patience(b.slots * len(prompts))
	x, err := guard(ctx, patience, func(*progress) (*tensors.Tensor, error) { return b.startTrace(prompts, pad) })
	if err != nil {
		return err
	}
	ropes := ropeMemo{}
	for n := range e.arch.Layers + 1 {
		s := engine.Stage{Probe: engine.RowProbe(n)}
		if n > 0 {
			s.Routing = &engine.Routing{}
		}
		if x, err = guard(ctx, patience, func(*progress) (*tensors.Tensor, error) { return b.traceStage(x, n, ropes, &s) }); err != nil {
			return err
		}
		if err := each(s); err != nil {
			return err
		}
	}
	s := engine.Stage{Probe: engine.ProbeFinalNorm}
	if _, err = guard(ctx, patience, func(*progress) (*tensors.Tensor, error) { return nil, b.traceNorm(x, &s) }); err != nil {
		return err
	}
	return each(s)
}

func (e *Engine) checkTrace(prompts [][]int, pad int) error {
	if len(prompts) == 0 {
		return errors.New("reference: trace: got no prompts, want at least 1")
	}
	if pad < 0 || pad >= e.arch.Vocab {
		return fmt.Errorf("reference: trace: got padding with id %d, want 0 to %d", pad, e.arch.Vocab-1)
	}
	for i, ids := range prompts {
		if err := e.checkIDs(ids); err != nil {
			return fmt.Errorf("reference: trace: prompt %d: %w", i, err)
		}
	}
	if err := e.needDense("a batch"); err != nil {
		return err
	}
	return e.checkForced(len(prompts))
}

// startTrace are the rows before layer 0, [B*T, H].
func (b *batch) startTrace(prompts [][]int, pad int) (*tensors.Tensor, error) {
	var ids []int
	first := make([]int, len(prompts))
	for s, prompt := range prompts {
		b.padding = append(b.padding, b.slots-len(prompt))
		if !b.e.arch.Fault.BatchPaddingUnmasked {
			first[s] = b.padding[s]
		}
		for range b.padding[s] {
			ids = append(ids, pad)
		}
		ids = append(ids, prompt...)
	}
	var err error
	if b.first, err = b.e.dev.index(first, len(first)); err != nil {
		return nil, err
	}
	return b.e.embeddings(ids)
}

// traceStage runs layer n-1, none where n is 0, on x [B*T, H], which it finalizes
// then, and fills the stage.
func (b *batch) traceStage(x *tensors.Tensor, n int, ropes ropeMemo, s *engine.Stage) (*tensors.Tensor, error) {
	e := b.e
	if n > 0 {
		layer := n - 1
		var positions []int
		for range b.padding {
			positions = append(positions, consecutive(0, b.slots)...)
		}
		args, err := e.rowArgs(x, layer, ropes, positions)
		if err != nil {
			return nil, err
		}
		args = appendTensors(append(args, b.first, e.eps[layer]), e.layers[layer])
		out, err := e.callLayer(e.graphs[layer].batchPrefill, layer, args, b.prompts(), true)
		if err != nil {
			return nil, err
		}
		if s.Routing, err = e.routing(layer, out[3:]); err != nil {
			return nil, fmt.Errorf("reference: trace: layer %d: %w", layer, err)
		}
		if err := finalize(append([]*tensors.Tensor{x}, out[1:]...)...); err != nil {
			return nil, fmt.Errorf("reference: trace: layer %d: %w", layer, err)
		}
		x = out[0]
	}
	var err error
	s.Rows, err = b.stageRows(x)
	return x, err
}

// stageRows downloads rows [B*T, H].
func (b *batch) stageRows(x *tensors.Tensor) (engine.Matrix, error) {
	m := engine.Matrix{Rows: len(b.padding) * b.slots, Width: b.e.arch.Hidden}
	all, err := download(x, 0, m.Rows*m.Width)
	m.Data = make([]float32, len(all))
	for i, v := range all {
		m.Data[i] = float32(v)
	}
	return m, err
}

// traceNorm fills the stage behind the final norm, and finalizes x.
func (b *batch) traceNorm(x *tensors.Tensor, s *engine.Stage) error {
	out, err := call(b.e.norm, []any{x, b.e.finalNorm, b.e.finalEps})
	if err != nil {
		return err
	}
	if s.Rows, err = b.stageRows(out[0]); err != nil {
		return err
	}
	return finalize(x, out[0])
}

// routing is what a layer's router made of rows, of the places of a layer in
// the order of routedParts; nil for a layer without.
func (e *Engine) routing(n int, places []*tensors.Tensor) (*engine.Routing, error) {
	g := e.graphs[n]
	if g.experts.Count == 0 {
		return nil, nil
	}
	r := &engine.Routing{}
	for i, part := range g.routedParts() {
		if i == len(places) {
			break // what the experts add may be missing
		}
		t := places[i]
		rows := t.Shape().Dimensions[0]
		var err error
		switch part {
		case engine.PartRouterLogits:
			r.Logits, err = unstack(t, rows)
		case engine.PartRouterScores:
			r.Scores, err = unstack(t, rows)
		case engine.PartRouteIDs:
			r.IDs, err = downloadIDs(t, rows)
		case engine.PartRouteWeights:
			r.Weights, err = unstack(t, rows)
		}
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// RouteRows is what the router of layer n makes of rows of the residual stream in
// front of its second half (resid_mid), whoever made them: the choices on a
// candidate's own rows, with no error of the layers before. Routes that the engine
// is forced to use count; position i is row i. A layer without a router is an
// [*engine.UnsupportedError].
func (e *Engine) RouteRows(ctx context.Context, n int, mid [][]float64) (engine.Routing, error) {
	switch {
	case n < 0 || n >= e.arch.Layers:
		return engine.Routing{}, fmt.Errorf("reference: layer: got %d, want 0 to %d", n, e.arch.Layers-1)
	case !e.arch.RoutedAt(n):
		return engine.Routing{}, &engine.UnsupportedError{What: fmt.Sprintf("routes of layer %d", n), Why: "the layer has no router"}
	case len(mid) == 0:
		return engine.Routing{}, fmt.Errorf("reference: layer %d: got no rows, want at least 1", n)
	}
	rows, err := e.stack(mid)
	if err != nil {
		return engine.Routing{}, err
	}
	return guard(ctx, e.patience(len(mid)), func(*progress) (engine.Routing, error) {
		x, err := upload(e.dev, rows, len(mid), e.arch.Hidden)
		if err != nil {
			return engine.Routing{}, err
		}
		out, err := call(e.graphs[n].mlpRows, appendTensors([]any{x, e.eps[n]}, e.layers[n]))
		if err != nil {
			return engine.Routing{}, err
		}
		l, _, err := e.leftOver(n, out, sequenceFrom(0))
		if err != nil {
			return engine.Routing{}, err
		}
		r, err := e.routing(n, l.places())
		if err != nil {
			return engine.Routing{}, err
		}
		return *r, finalize(append(l.places(), l.h, x)...)
	})
}
