package mutant

import (
	"context"
	"math"
)

// rowFault spoils a capture in place.
type rowFault func(ctx context.Context, s site, c *capture) error

// site is what a rowFault knows about the run it spoils.
type site struct {
	// at is the row.
	at int
	// normed returns what the model makes of the last row: its last hidden
	// state, after the final norm.
	normed func(ctx context.Context, last []float64) ([]float64, error)
	// previous returns the rows of the step before; nil when there was none.
	previous func(ctx context.Context) ([][]float64, error)
	// batched returns the rows of a batched prefill.
	batched func(ctx context.Context) ([][]float64, error)
}

const namedDump = "row i, as a fault of the dump: the rows after it are healthy"

// captureFaults spoil what is captured of a healthy run.
func captureFaults() []Mutant {
	faults := []Mutant{
		{
			Name: "post-norm-last-row", Place: Nowhere, Named: "the last row", referenceRows: true, candidateRows: true,
			Bug: "the last entry is taken after the final norm, as transformers' output_hidden_states does",
			rows: func(ctx context.Context, s site, c *capture) error {
				row, err := s.normed(ctx, c.rows[c.last()])
				if err != nil {
					return err
				}
				c.set(c.last(), row)
				return nil
			},
		},
		{
			Name: "stale-row", Place: Row, Named: namedDump, referenceRows: true,
			Bug: "a row of the step before is still in the buffer; on a first step, zeros",
			rows: func(ctx context.Context, s site, c *capture) error {
				old, err := s.previous(ctx)
				if err != nil {
					return err
				}
				clear(c.rows[s.at])
				if old != nil {
					copy(c.rows[s.at], old[s.at])
				}
				return nil
			},
		},
		{
			Name: "shifted-index", Place: Nowhere, Named: "row 1, and every row after it", referenceRows: true, candidateRows: true,
			Bug:    "rows are stored one index too late: row i holds row i-1",
			Source: "https://github.com/AI-Hypercomputer/maxtext/issues/2103",
			rows: func(_ context.Context, _ site, c *capture) error {
				copy(c.rows[1:], c.rows[:c.last()])
				copy(c.steps[1:], c.steps[:c.last()])
				return nil
			},
		},
		{
			Name: "aliased-row", Place: Row, Named: namedDump, referenceRows: true,
			Bug: "two rows share one buffer: row i shows what was written for row i+1 (the last row: what was written for the row before)",
			rows: func(_ context.Context, s site, c *capture) error {
				partner := s.at + 1
				if partner > c.last() {
					partner = s.at - 1
				}
				c.rows[s.at], c.steps[s.at] = c.rows[partner], c.steps[partner]
				return nil
			},
		},
		{
			Name: "batched-as-incremental", Place: Nowhere, Named: "the capture as a whole", referenceRows: true,
			Bug: "a batched prefill is captured and declared a token-by-token run",
			rows: func(ctx context.Context, s site, c *capture) (err error) {
				c.rows, err = s.batched(ctx)
				return err
			},
		},
		{
			Name: "row-short", Place: Nowhere, Named: "the shape", referenceRows: true, candidateRows: true,
			Bug: "the last row is missing: rows are counted as layers, not layers + 1",
			rows: func(_ context.Context, _ site, c *capture) error {
				c.rows, c.steps = c.rows[:c.last()], c.steps[:c.last()]
				c.header.Rows--
				return nil
			},
		},
		{
			Name: "rows-swapped", Place: Row, Named: namedDump + "; two rows", referenceRows: true, candidateRows: true,
			Bug: "two neighbouring rows are written in the wrong order; planted at i it exchanges i and i+1 (the last row: i and i-1)",
			rows: func(_ context.Context, s site, c *capture) error {
				i, j := s.at, s.at+1
				if j > c.last() {
					j = s.at - 1
				}
				c.rows[i], c.rows[j] = c.rows[j], c.rows[i]
				c.steps[i], c.steps[j] = c.steps[j], c.steps[i]
				return nil
			},
		},
	}
	return append(faults, dumpFaults()...)
}

// dumpFaults are what only a dump can have: scales, header, single rows.
func dumpFaults() []Mutant {
	nan := func(row []float64) {
		for j := range row {
			row[j] = math.NaN()
		}
	}
	return []Mutant{
		dumpFault("capture-mode-2", Nowhere, "the header", "a dump declares a capture mode that isn't the incremental one",
			func(_ site, c *capture) { c.header.Mode = 2 }),
		dumpFault("wrong-width", Nowhere, "the shape", "rows are one value short of the hidden size", func(_ site, c *capture) {
			c.header.Width--
			for i, row := range c.rows {
				c.rows[i] = row[:len(row)-1]
			}
		}),
		dumpFault("zero-rows", Nowhere, "the shape", "a dump has a header and no rows", func(_ site, c *capture) {
			c.rows, c.steps, c.header.Rows = nil, nil, 0
		}),
		dumpFault("nan-row", Row, namedDump, "a fully masked attention row gives NaN that nothing notices", func(s site, c *capture) { nan(c.rows[s.at]) },
			"https://github.com/huggingface/transformers/issues/38690"),
		dumpFault("zero-row", Row, namedDump, "a row is never written and keeps its zeros", func(s site, c *capture) { clear(c.rows[s.at]) }),
		dumpFault("constant-row", Row, namedDump, "a row holds one value everywhere, with the norm of the right one", func(s site, c *capture) {
			row, sum := c.rows[s.at], 0.0
			for _, v := range row {
				sum += v * v
			}
			flat := make([]float64, len(row))
			for j := range flat {
				flat[j] = math.Sqrt(sum / float64(len(row)))
			}
			c.set(s.at, flat)
		}),
		dumpFault("duplicated-row", Row, namedDump+"; planted at row 0 it copies row 1", "a row is written twice: row i is a copy of row i-1", func(s site, c *capture) {
			from := s.at - 1
			if from < 0 {
				from = 1
			}
			c.rows[s.at], c.steps[s.at] = c.rows[from], c.steps[from]
		}),
		dumpFault("doubled-scale", Row, namedDump+"; by scale, its direction is right", "a row's exponent is one too large: twice the values, the same direction", func(s site, c *capture) {
			for j := range c.rows[s.at] {
				c.rows[s.at][j] *= 2
			}
			c.steps[s.at] *= 2
		}),
		dumpFault("all-nan", Nowhere, "row 0", "every value of every row is NaN", func(_ site, c *capture) {
			for _, row := range c.rows {
				nan(row)
			}
		}),
	}
}

func dumpFault(name string, place Place, named, bug string, spoil func(s site, c *capture), source ...string) Mutant {
	m := Mutant{
		Name: name, Place: place, Named: named, Bug: bug, candidateRows: true,
		rows: func(_ context.Context, s site, c *capture) error {
			spoil(s, c)
			return nil
		},
	}
	if len(source) > 0 {
		m.Source = source[0]
	}
	return m
}
