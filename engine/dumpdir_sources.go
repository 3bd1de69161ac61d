package engine

import (
	"context"
	"fmt"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// openDumps opens what the case holds, in the types that the side declares.
// What it opened before an error is in r.
func (r *Response) openDumps(ctx context.Context, c *dumpfmt.Case, info Info) error {
	if c.LayersPath != "" {
		r.Files.Layers = c.LayersPath
		if info.Layers == LayersInt8Scaled {
			d, err := c.OpenInt8Layers()
			if err != nil {
				return err
			}
			r.Layers = int8Rows{d}
			if n := d.TrailingBytes(); n > 0 {
				r.Notes = append(r.Notes, fmt.Sprintf("%s: %d bytes after the last row were not read", dumpfmt.Printable(c.LayersPath), n))
			}
			if err := checkScales(ctx, d); err != nil {
				return err
			}
		} else {
			d, err := c.OpenFloatLayers()
			if err != nil {
				return err
			}
			r.Layers = floatRows{d}
		}
	}
	if c.LogitsPath != "" {
		r.Files.Logits = c.LogitsPath
		if info.Logits == LogitsInt32 {
			d, err := c.OpenInt32Logits()
			if err != nil {
				return err
			}
			r.Logits = logitRows{d, d.Header()}
		} else {
			d, err := c.OpenFloatLogits()
			if err != nil {
				return err
			}
			r.Logits = logitRows{d, d.Header()}
		}
	}
	if c.ProbesPath != "" {
		r.Files.Probes = c.ProbesPath
		d, err := c.OpenProbes()
		if err != nil {
			return err
		}
		f, err := newProbeFile(d)
		if err != nil {
			_ = d.Close()
			return err
		}
		r.Probes = f
	}
	return nil
}

// checkScales is Int8Layers.CheckScales with an ear for ctx: the row count of
// a strange dump may be large.
func checkScales(ctx context.Context, d *dumpfmt.Int8Layers) error {
	for i := range d.Header().Rows {
		if i%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if _, err := d.Scale(i); err != nil {
			return err
		}
	}
	return nil
}

func captureHeader(h dumpfmt.LayerHeader) CaptureHeader {
	return CaptureHeader{Rows: h.Rows, Width: h.Width, Fingerprint: h.Fingerprint, Mode: h.Mode}
}

// floatRows is a float layer dump as a RowSource.
type floatRows struct{ d *dumpfmt.FloatLayers }

func (s floatRows) Header() CaptureHeader { return captureHeader(s.d.Header()) }

func (s floatRows) Row(i int, dst []float64) (float64, error) { return 0, s.d.Row64(i, dst) }

func (s floatRows) Close() error { return s.d.Close() }

// int8Rows is an int8 layer dump as a RowSource.
type int8Rows struct{ d *dumpfmt.Int8Layers }

func (s int8Rows) Header() CaptureHeader { return captureHeader(s.d.Header()) }

func (s int8Rows) Row(i int, dst []float64) (float64, error) { return s.d.Row64(i, dst) }

func (s int8Rows) Close() error { return s.d.Close() }

// logitRows is a logit dump of either type as a LogitSource.
type logitRows struct {
	d interface {
		Row64(i int, dst []float64) error
		Close() error
	}
	h dumpfmt.LogitHeader
}

func (s logitRows) Shape() (rows, vocab int) { return s.h.Rows, s.h.Vocab }

func (s logitRows) Row(i int, dst []float64) error { return s.d.Row64(i, dst) }

func (s logitRows) Close() error { return s.d.Close() }
