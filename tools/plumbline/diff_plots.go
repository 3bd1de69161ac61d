package main

import (
	"bytes"
	"path/filepath"

	"github.com/plumbline-go/plumbline/conformance/report/plot"
	"github.com/plumbline-go/plumbline/dumpfmt"
)

// plotFiles are what --plots writes.
var plotFiles = []string{"nrmse-by-layer.svg", "nrmse-by-layer.png", "nrmse-heatmap.svg", "nrmse-heatmap.png"}

func (d *diffReport) writePlots(o dumpfmt.WriteOptions) error {
	op := d.inv.Ops[d.inv.BoundOp].Name
	g := plot.Grid{Title: "nRMSE of " + op + " by layer", Quantity: "nRMSE", Values: d.grid, Limit: d.t.NRMSE.Value}
	for _, p := range d.inv.Positions {
		g.Steps = append(g.Steps, p.Step)
	}
	for _, name := range plotFiles {
		draw, format := plot.Lines, plot.Format(filepath.Ext(name)[1:])
		if name == plotFiles[2] || name == plotFiles[3] {
			draw = plot.HeatMap
		}
		var b bytes.Buffer
		if err := draw(&b, format, g); err != nil {
			return err
		}
		if err := dumpfmt.WriteFile(filepath.Join(d.flags.plots, name), b.Bytes(), o); err != nil {
			return err
		}
	}
	return nil
}
