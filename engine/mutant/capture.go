package mutant

import (
	"fmt"
	"math"

	"github.com/plumbline-go/plumbline/engine"
)

// capture is a residual capture in memory.
type capture struct {
	header engine.CaptureHeader
	rows   [][]float64
	steps  []float64
}

// readCapture copies a source.
func readCapture(src engine.RowSource) (*capture, error) {
	c := &capture{header: src.Header()}
	for i := range c.header.Rows {
		row := make([]float64, c.header.Width)
		step, err := src.Row(i, row)
		if err != nil {
			return nil, err
		}
		c.rows, c.steps = append(c.rows, row), append(c.steps, step)
	}
	return c, nil
}

func (c *capture) Header() engine.CaptureHeader { return c.header }

func (c *capture) Row(i int, dst []float64) (float64, error) {
	if i < 0 || i >= len(c.rows) || len(dst) != len(c.rows[i]) {
		return 0, fmt.Errorf("mutant: row %d into %d values: got an index or length outside %d rows of %d", i, len(dst), len(c.rows), c.header.Width)
	}
	copy(dst, c.rows[i])
	return c.steps[i], nil
}

func (c *capture) Close() error { return nil }

// last is the index of the last row.
func (c *capture) last() int { return len(c.rows) - 1 }

// set replaces row i. Where the row had a step, the new one is rounded to int8
// again, as the engine would have done.
func (c *capture) set(i int, row []float64) {
	c.rows[i] = row
	if c.steps[i] == 0 {
		return
	}
	largest := 0.0
	for _, v := range row {
		largest = math.Max(largest, math.Abs(v))
	}
	c.steps[i] = largest / 127
	for j, v := range row {
		if c.steps[i] > 0 {
			row[j] = math.RoundToEven(v/c.steps[i]) * c.steps[i]
		}
	}
}

// rmsNorm is x/sqrt(mean(x²)+eps)*gain. Source: Zhang and Sennrich, "Root Mean
// Square Layer Normalization", arXiv 1910.07467.
func rmsNorm(x []float64, gain []float32, eps float64) []float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	inv := 1 / math.Sqrt(sum/float64(len(x))+eps)
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = v * inv * float64(gain[i])
	}
	return out
}
