package mutant

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/plumbline-go/plumbline/engine"
)

// output is what a decode produced, in memory.
type output struct {
	// rows has one row of logits per token, as it was before the token was chosen.
	rows [][]float64
	// ids are the tokens; of a forced decode, those that the rows choose.
	ids    []int
	reason engine.StopReason
}

// outputFault spoils an output in place. What has no power on an output, as a
// stop id dropped where none was produced, leaves it as it is.
type outputFault func(ctx context.Context, s outputSite, o *output) error

// outputSite is what an outputFault knows about the run it spoils.
type outputSite struct {
	// at is a row of the output.
	at int
	// stop are the ids that end the output, most the tokens it may have.
	stop []int
	most int
	// forced is true where the tokens that the model goes on with were given.
	forced bool
	// goOn returns what the model says after the prompt and the tokens behind it:
	// rows and tokens up to n or a stop id. In a forced decode the tokens behind
	// take the place of the first ones given, the other ones stay, and n and stop
	// mean nothing.
	goOn func(ctx context.Context, behind []int, n int, stop []int) (output, error)
}

// row is the row that the fault is planted at: the last one of an output that is
// shorter, or for a negative index.
func (s outputSite) row(o *output) int {
	if s.at < 0 || s.at >= len(o.rows) {
		return len(o.rows) - 1
	}
	return s.at
}

// isStop tells whether a token ends the output.
func (s outputSite) isStop(id int) bool { return !s.forced && slices.Contains(s.stop, id) }

// goesOnWith replaces what follows the first n rows by what the model says after
// the tokens behind, of which there are as many.
func (o *output) goesOnWith(ctx context.Context, s outputSite, n int, behind []int) error {
	o.rows, o.ids = o.rows[:n], o.ids[:n]
	if s.isStop(o.ids[n-1]) {
		o.reason = engine.StopToken
		return nil
	}
	o.reason = engine.StopBudget
	if n >= s.most {
		return nil
	}
	rest, err := s.goOn(ctx, behind, s.most-n, s.stop)
	if err != nil {
		return err
	}
	o.rows, o.ids, o.reason = append(o.rows, rest.rows...), append(o.ids, rest.ids...), rest.reason
	return nil
}

// repeats makes an output of the same row and token until the decode ends.
func (o *output) repeats(s outputSite, row []float64, id int) {
	o.rows, o.ids, o.reason = nil, nil, engine.StopBudget
	for len(o.ids) < s.most {
		o.rows, o.ids = append(o.rows, slices.Clone(row)), append(o.ids, id)
		if s.isStop(id) {
			o.reason = engine.StopToken
			return
		}
	}
}

// chosen is the token that a row chooses: the lowest id of the largest value as
// float32, which is what a dump of the row holds.
func chosen(row []float64) int {
	best := 0
	for id, v := range row {
		if float32(v) > float32(row[best]) {
			best = id
		}
	}
	return best
}

// runnerUp is the id of the largest value but that of id; -1 when there is none.
func runnerUp(row []float64, id int) int {
	best := -1
	for i, v := range row {
		if i != id && (best < 0 || v > row[best]) {
			best = i
		}
	}
	return best
}

// deviation is the standard deviation of a row.
func deviation(row []float64) float64 {
	mean, sum := 0.0, 0.0
	for _, v := range row {
		mean += v / float64(len(row))
	}
	for _, v := range row {
		sum += (v - mean) * (v - mean)
	}
	return math.Sqrt(sum / float64(len(row)))
}

// readOutput copies an answer's logits. Tokens that the side doesn't tell are
// those that the rows choose.
func readOutput(src engine.LogitSource, ids []int) (*output, error) {
	n, vocab := src.Shape()
	o := &output{rows: make([][]float64, n), ids: slices.Clone(ids)}
	for i := range o.rows {
		o.rows[i] = make([]float64, vocab)
		if err := src.Row(i, o.rows[i]); err != nil {
			return nil, err
		}
		if ids == nil {
			o.ids = append(o.ids, chosen(o.rows[i]))
		}
	}
	if len(o.ids) != n {
		return nil, fmt.Errorf("mutant: got %d tokens and %d rows of logits, want as many", len(o.ids), n)
	}
	return o, nil
}

// logits is a logit dump in memory.
type logits struct {
	rows  [][]float64
	vocab int
}

func (l logits) Shape() (rows, vocab int) { return len(l.rows), l.vocab }

func (l logits) Row(i int, dst []float64) error {
	if i < 0 || i >= len(l.rows) || len(dst) != l.vocab {
		return fmt.Errorf("mutant: logit row %d into %d values: got an index or length outside %d rows of %d", i, len(dst), len(l.rows), l.vocab)
	}
	copy(dst, l.rows[i])
	return nil
}

func (logits) Close() error { return nil }
