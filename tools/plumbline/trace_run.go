package main

import (
	"context"
	"fmt"
	"time"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/golden/trace"
	"github.com/plumbline-go/plumbline/tools/internal/overlap"
)

// load uploads the weights, and says how long that took.
func (t *tracing) load() (float64, error) {
	start := time.Now()
	var err error
	if t.engine, err = t.start(); err != nil {
		return 0, err
	}
	if t.flags.report != "" {
		if err := t.startReport(); err != nil {
			return 0, err
		}
	}
	return seconds(start), nil
}

// run traces the sources, one by one.
func (t *tracing) run(ctx context.Context, w *trace.Writer) error {
	task := t.progress().Start("trace", len(t.selection.Sources))
	defer task.End()
	for _, s := range t.selection.Sources {
		variants, err := t.variants(s)
		if err != nil {
			return err
		}
		if err := t.acc.Start(s, variants, t.boundary); err != nil {
			return err
		}
		done, err := t.source(ctx, variants)
		if err != nil {
			return fmt.Errorf("source %s: %w", s.ID, err)
		}
		if err := w.Add(done); err != nil {
			return err
		}
		task.Step(s.ID)
	}
	return nil
}

// source runs one source's conditions as a batch.
func (t *tracing) source(ctx context.Context, variants []trace.Variant) (*trace.SourceTrace, error) {
	b := newTraceBatch(variants)
	start := time.Now()
	var chosen map[int]*engine.Routing
	if t.routes != nil {
		chosen = map[int]*engine.Routing{}
	}
	err := overlap.Run(func(each func(engine.Stage) error) error {
		return t.engine.TraceBatch(ctx, b.prompts, t.pad, each)
	}, func(s engine.Stage) error {
		stage, ok := t.shape.StageOfProbe(string(s.Probe))
		if !ok {
			return fmt.Errorf("stage: got %s, want one of the trace's", s.Probe)
		}
		if chosen != nil && s.Routing != nil {
			chosen[stage-1] = s.Routing
		}
		return t.take(b, stage, s)
	})
	if err != nil {
		return nil, err
	}
	done, err := t.acc.Finish(seconds(start), nil)
	if err != nil || t.routes == nil {
		return done, err
	}
	return done, t.routes.source(ctx, b, t.pad, chosen)
}

// take hands a stage to the accumulator, condition by condition.
func (t *tracing) take(b traceBatch, stage int, s engine.Stage) error {
	if s.Rows.Rows != len(b.prompts)*b.slots {
		return fmt.Errorf("%s: got %d rows, want %d", s.Probe, s.Rows.Rows, len(b.prompts)*b.slots)
	}
	for c := range b.prompts {
		from, to := b.rows(c)
		rows := make([][]float32, 0, to-from)
		for i := from; i < to; i++ {
			rows = append(rows, s.Rows.Row(i))
		}
		if err := t.acc.Hidden(stage, c, rows); err != nil {
			return err
		}
		if s.Routing == nil {
			continue
		}
		r := trace.Routes{IDs: s.Routing.IDs[from:to], DType: trace.Float32}
		for _, w := range s.Routing.Weights[from:to] {
			single := make([]float32, len(w))
			for k, x := range w {
				single[k] = float32(x)
			}
			r.Weights = append(r.Weights, single)
		}
		if err := t.acc.Routes(stage-1, c, r); err != nil {
			return err
		}
	}
	return nil
}

// traceBatch is a source's conditions side by side.
type traceBatch struct {
	prompts [][]int
	slots   int // tokens of the longest
}

func newTraceBatch(variants []trace.Variant) traceBatch {
	var b traceBatch
	for _, v := range variants {
		b.prompts = append(b.prompts, v.TokenIDs)
		b.slots = max(b.slots, len(v.TokenIDs))
	}
	return b
}

// rows are those of a condition in the rows of the batch, its padding left out.
func (b traceBatch) rows(condition int) (from, to int) {
	to = (condition + 1) * b.slots
	return to - len(b.prompts[condition]), to
}

// routes are the experts of each prompt, to be forced on another run.
func (b traceBatch) routes(chosen map[int]*engine.Routing) []engine.Routes {
	all := make([]engine.Routes, len(b.prompts))
	for c := range all {
		from, to := b.rows(c)
		all[c] = engine.Routes{}
		for layer, r := range chosen {
			all[c][layer] = engine.LayerRoutes{IDs: r.IDs[from:to]}
		}
	}
	return all
}

// openAgainst is the second run's engine.
func (t *tracing) openAgainst() (*reference.Engine, error) {
	opts, err := t.options()
	if err != nil {
		return nil, err
	}
	return reference.New(t.ckpt, append(opts, reference.WithDType(reference.DType(t.flags.against)))...)
}
