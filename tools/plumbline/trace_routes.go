package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/plumbline-go/plumbline/conformance/report/plot"
	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/golden/trace"
	"github.com/plumbline-go/plumbline/tools/internal/overlap"
	"github.com/plumbline-go/plumbline/tools/internal/routes"
)

// routeReport is the report on routes being gathered.
type routeReport struct {
	shape   trace.Shape
	against *reference.Engine // nil without a second run
	names   routes.Names
	figures *routes.Report
}

// startReport opens the second run.
func (t *tracing) startReport() error {
	r := &routeReport{shape: t.shape, names: routes.Names{Judged: t.engine.Describe().DType}}
	if t.flags.against != againstNone {
		var err error
		if r.against, err = t.openAgainst(); err != nil {
			return err
		}
		r.names.Reference = r.against.Describe().DType
	}
	// Routers score in float32, whatever the rest of the model computes in.
	r.figures = routes.New(t.plan, t.shape, trace.Float32, r.against == nil)
	t.routes = r
	return nil
}

// source takes a source's choices by layer. The second run goes over the same batch
// with the choices forced on it, so that each gate is compared on its own.
func (r *routeReport) source(ctx context.Context, b traceBatch, pad int, chosen map[int]*engine.Routing) error {
	if r.against == nil {
		for gate, layer := range r.shape.Gates {
			if err := r.gate(gate, b, chosen[layer], chosen[layer], true); err != nil {
				return err
			}
		}
		return nil
	}
	forced, err := r.against.Forced(b.routes(chosen)...)
	if err != nil {
		return err
	}
	gate := 0
	return overlap.Run(func(each func(engine.Stage) error) error { return forced.TraceBatch(ctx, b.prompts, pad, each) },
		func(s engine.Stage) error {
			if s.Routing == nil {
				return nil
			}
			gate++
			return r.gate(gate-1, b, s.Routing, chosen[r.shape.Gates[gate-1]], false)
		})
}

func (r *routeReport) gate(gate int, b traceBatch, ref, judged *engine.Routing, sole bool) error {
	var rows []routes.Row
	for c := range b.prompts {
		from, to := b.rows(c)
		for i := from; i < to; i++ {
			row := routes.Row{Condition: c, Reference: ref.Scores[i], Judged: judged.Scores[i], Route: judged.IDs[i]}
			if sole {
				row.Judged = nil
			}
			rows = append(rows, row)
		}
	}
	return r.figures.Gate(gate, rows)
}

func (r *routeReport) text() string { return r.figures.Text(r.names) }

// The report's files.
const (
	routeMargins = "route-margins.svg"
	routeFlips   = "flips.svg"
	routePage    = "trace.md"
)

// write writes the report into a folder.
func (r *routeReport) write(dir string) error {
	drawings := map[string]func(io.Writer) error{
		routeMargins: func(w io.Writer) error { return plot.Bars(w, plot.SVG, r.histogram()) },
	}
	if !r.figures.Sole {
		drawings[routeFlips] = func(w io.Writer) error { return plot.Map(w, plot.SVG, r.flips()) }
	}
	for name, draw := range drawings {
		var b bytes.Buffer
		if err := draw(&b); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := dumpfmt.WriteFile(filepath.Join(dir, name), b.Bytes(), dumpfmt.WriteOptions{}); err != nil {
			return err
		}
	}
	page := r.figures.Markdown(r.names, routeMargins, routeFlips)
	return dumpfmt.WriteFile(filepath.Join(dir, routePage), []byte(page), dumpfmt.WriteOptions{})
}

// routeResult is what --report adds to the result.
type routeResult struct {
	Judged    string   `json:"judged"`
	Reference string   `json:"reference,omitempty"`
	Rows      int      `json:"rows"`
	NearTies  *int     `json:"near_ties,omitempty"`
	Match     *int     `json:"match,omitempty"`
	Tie       *int     `json:"tie,omitempty"`
	Flip      *int     `json:"flip,omitempty"`
	NearRate  *float64 `json:"near_tie_mismatch_rate,omitempty"`
	Unjudged  int      `json:"unjudged"`
}

func (r *routeReport) result() *routeResult {
	all := &r.figures.All
	out := &routeResult{Judged: r.names.Judged, Reference: r.names.Reference, Rows: all.Judged(), Unjudged: all.Unjudged}
	if r.figures.Sole {
		return out
	}
	out.NearTies, out.Match, out.Tie, out.Flip = &all.NearTies, &all.Match, &all.Tie, &all.Flip
	if all.NearTies > 0 {
		rate := all.NearTieRate()
		out.NearRate = &rate
	}
	return out
}
