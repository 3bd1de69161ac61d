package conformance

import (
	"context"
	"fmt"
	"math"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// truth is the run that a candidate's rows are measured from, with the
// yardstick's rows for the same prompt.
type truth struct {
	trace engine.Trace
	yard  [][]float64
	// pushed gives the yardstick's rows through the layers.
	pushed func() (path, error)
	// floor is the smallest relative error that the yardstick can be trusted
	// to show: one rounding of float32, or 0 for a quantised yardstick.
	floor float64
}

// path is a set of rows pushed through the reference's layers: one layer on
// each row, and two layers on each row.
type path struct {
	rows [][]float64
	one  [][]float64 // one[n] = f_n(rows[n])
	two  [][]float64 // two[n] = f_(n+1)(f_n(rows[n]))
}

// push runs the reference's layers on the rows. rows has layers+1 entries.
func push(ctx context.Context, tr engine.Trace, rows [][]float64) (path, error) {
	layers := len(rows) - 1
	p := path{rows: rows, one: make([][]float64, layers), two: make([][]float64, layers)}
	for n := range layers {
		y, err := tr.Layer(ctx, n, rows[n])
		if err != nil {
			return p, fmt.Errorf("conformance: layer %d on a given row: %w", n, err)
		}
		p.one[n] = y
	}
	for n := range layers - 1 {
		y, err := tr.Layer(ctx, n+1, p.one[n])
		if err != nil {
			return p, fmt.Errorf("conformance: layers %d and %d on a given row: %w", n, n+1, err)
		}
		p.two[n] = y
	}
	return p, nil
}

// local is the error of rows[n+1] as a share of the layer's own update, so that
// an error is charged to the layer that introduced it.
func (p path) local(n int) float64 { return share(p.rows[n+1], p.one[n], p.rows[n]) }

// overTwo is the same over layers n and n+1, whatever row n+1 says.
func (p path) overTwo(n int) float64 { return share(p.rows[n+2], p.two[n], p.rows[n]) }

// share returns |got - want| / |want - from|.
func share(got, want, from []float64) float64 {
	var num, den float64
	for i := range want {
		d := got[i] - want[i]
		u := want[i] - from[i]
		num += d * d
		den += u * u
	}
	if num == 0 {
		return 0
	}
	return math.Sqrt(num / den)
}

// profileOf measures the candidate's rows and the yardstick's rows against the
// same truth.
func profileOf(ctx context.Context, t truth, cand [][]float64) (*Profile, error) {
	ref := t.trace.Rows()
	c, err := push(ctx, t.trace, cand)
	if err != nil {
		return nil, err
	}
	y, err := t.pushed()
	if err != nil {
		return nil, err
	}
	p := &Profile{}
	for i := range ref {
		p.Accumulated = append(p.Accumulated, Measure{
			Got:  metric.RelativeL2(cand[i], ref[i]),
			Yard: max(metric.RelativeL2(t.yard[i], ref[i]), t.floor),
		})
		p.NormRatio = append(p.NormRatio, metric.NormRatio(cand[i], ref[i]))
	}
	for n := range len(ref) - 1 {
		// One rounding of the row, as a share of the update that it hides in.
		floor := t.floor * metric.L2(y.one[n]) / distance(y.one[n], y.rows[n])
		p.Local = append(p.Local, Measure{Got: c.local(n), Yard: max(y.local(n), floor)})
		if n+2 < len(ref) {
			p.Two = append(p.Two, Measure{Got: c.overTwo(n), Yard: max(y.overTwo(n), t.floor)})
		}
	}
	return p, nil
}

func distance(a, b []float64) float64 {
	var s float64
	for i := range a {
		d := a[i] - b[i]
		s += d * d
	}
	return math.Sqrt(s)
}
