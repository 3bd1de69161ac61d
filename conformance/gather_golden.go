package conformance

import (
	"context"
	"fmt"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// golden loads the recorded rows. A golden that can't be read is the run's
// fault: the candidate has no part in it.
func (g *gatherer) golden(ctx context.Context, ev *Evidence) error {
	d, err := g.cfg.Golden.Layers(ev.Case.Name)
	if err != nil {
		return err
	}
	defer d.Close()
	h := d.Header()
	if h.Fingerprint != dumpfmt.Fingerprint(ev.Case.Text) {
		return fmt.Errorf("golden %s: fingerprint: got 0x%016X, want 0x%016X: recorded from another prompt",
			d.File(), h.Fingerprint, dumpfmt.Fingerprint(ev.Case.Text))
	}
	for i := range h.Rows {
		row := make([]float64, h.Width)
		if err := d.Row64(i, row); err != nil {
			return err
		}
		ev.Golden = append(ev.Golden, row)
	}
	ev.GoldenFloor = g.cfg.Golden.LayerFloor(ev.Case.Name)
	if ev.GoldenFloor != nil {
		return nil
	}
	// A plain folder recorded no floor: the float32 engine's own error stands in.
	if _, err := g.rows64(ctx, ev); err != nil {
		return err
	}
	ev.GoldenPlain = true
	for i, r := range ev.Rows64 {
		ev.GoldenFloor = append(ev.GoldenFloor, metric.RelativeL2(ev.Reference.Rows[i], r))
	}
	return nil
}
