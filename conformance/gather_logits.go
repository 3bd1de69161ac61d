package conformance

import (
	"context"
	"fmt"
	"slices"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// LogitForm is what a logit dump looks like before any value is compared.
type LogitForm struct {
	// Rows is how many rows there are.
	Rows int
	// ArgMax is the token that each row chooses, the lowest index of the largest
	// value; -1 for a row that chooses none.
	ArgMax []int
	// Degenerate says of each row why it carries no information; empty when it
	// does.
	Degenerate []string
	// Repeats is the first row that is the row before it once more, -1 when none is.
	Repeats int
	// Told are the tokens that the side says it chose, nil when it didn't.
	Told []int
	// File is the dump.
	File string
}

// readLogits reads the form of a logit dump. It is the candidate's fault when a
// row can't be read.
func readLogits(src engine.LogitSource, told []int, file string) (*LogitForm, error) {
	rows, vocab := src.Shape()
	f := &LogitForm{Rows: rows, Told: told, File: file, Repeats: -1}
	row, before := make([]float64, vocab), make([]float64, vocab)
	for i := range rows {
		if err := src.Row(i, row); err != nil {
			return nil, err
		}
		if i > 0 && f.Repeats < 0 && slices.Equal(row, before) {
			f.Repeats = i
		}
		copy(before, row)
		id, what := -1, ""
		if c := metric.Classify(row); c.Degenerate() {
			what = c.Kind.String()
		} else {
			id = metric.ArgMax(row)
		}
		f.ArgMax, f.Degenerate = append(f.ArgMax, id), append(f.Degenerate, what)
	}
	return f, nil
}

// unusable says why the rows can't be compared by value; empty when they can.
func (f *LogitForm) unusable() string {
	if f.Rows == 0 {
		return "the logit dump has no rows"
	}
	for i, what := range f.Degenerate {
		if what != "" {
			return fmt.Sprintf("logit row %d is %s", i, what)
		}
	}
	if f.Told != nil && len(f.Told) != f.Rows {
		return fmt.Sprintf("%d tokens and %d logit rows", len(f.Told), f.Rows)
	}
	return ""
}

// judgedValues is how many values of one side's logits are held at a time: 256 MB.
const judgedValues = 32 << 20

// judged is how many of the rows are compared by value: the first ones of an
// output so long that its rows would not fit.
func (f *LogitForm) judged(vocab int) int { return min(f.Rows, max(16, judgedValues/vocab)) }

// output are the tokens along which the rows were computed.
func (f *LogitForm) output() []int {
	if f.Told != nil {
		return f.Told
	}
	return f.ArgMax
}

// decodeSteps is how many tokens a candidate is asked for.
func (g *gatherer) decodeSteps() int {
	switch {
	case g.cfg.DecodeSteps > 0:
		return g.cfg.DecodeSteps
	case g.cfg.Golden != nil && g.cfg.Golden.Manifest.MaxNew > 0:
		return g.cfg.Golden.Manifest.MaxNew
	}
	return engine.DefaultMaxNew
}

// logits measures the candidate's logit rows beside the yardstick's, along the
// candidate's own tokens.
func (g *gatherer) logits(ctx context.Context, ev *Evidence, src engine.LogitSource) error {
	f := ev.LogitForm
	if ev.NoLogits = f.unusable(); ev.NoLogits != "" {
		return nil
	}
	output := f.output()[:f.judged(ev.Arch.Vocab)]
	if len(output) < f.Rows {
		ev.Notes = append(ev.Notes, fmt.Sprintf("logits: the first %d of %d rows are compared by value, all for their form", len(output), f.Rows))
	}
	if m := ev.Arch.MaxPositions; m > 0 && len(ev.Case.TokenIDs)+len(output)-1 > m {
		ev.NoLogits = fmt.Sprintf("%d prompt tokens and %d output tokens: the model has %d positions", len(ev.Case.TokenIDs), len(output), m)
		return nil
	}
	a := arithmeticOfLogits(ev.Declared)
	t, factors, err := g.logitTruth(ctx, ev, a, output)
	if err != nil {
		var none bool
		if ev.NoLogits, none = noEmulation(err); none {
			return nil
		}
		return err
	}
	p := &LogitProfile{Factors: factors, Float: a.float, Unscaled: ev.Declared.Logits == engine.LogitsInt32, Told: f.Told != nil,
		SchemeUnknown: a.unknown, File: f.File}
	row := make([]float64, ev.Arch.Vocab)
	for i := range output {
		if err := src.Row(i, row); err != nil {
			return err // it was readable a moment ago: the run's trouble
		}
		pick := -1
		if f.Told != nil {
			pick = f.Told[i]
		}
		p.measureLogits(t, i, row, pick, ev.Budgets)
	}
	ev.Logits = p
	if err := src.Row(0, row); err != nil {
		return err
	}
	return g.head(ctx, ev, t, a, row)
}

// logitTruth runs the reference and the yardstick along the tokens.
func (g *gatherer) logitTruth(ctx context.Context, ev *Evidence, a arithmetic, output []int) (logitTruth, Factors, error) {
	ids := ev.Case.TokenIDs
	along := func(ref engine.Reference) ([][]float64, error) {
		d, err := ref.Decode(ctx, ids, engine.DecodeOptions{Forced: output})
		return d.Logits, err
	}
	if a.float {
		// As for rows: the truth is float64, the yardstick the float32 run.
		double, err := g.shadow()
		if err != nil {
			return logitTruth{}, Factors{}, fmt.Errorf("float64 yardstick: %w", err)
		}
		single, err := g.single()
		if err != nil {
			return logitTruth{}, Factors{}, fmt.Errorf("float32 yardstick: %w", err)
		}
		t := logitTruth{floor: roundingOf("float32")}
		if t.rows, err = along(double); err != nil {
			return t, Factors{}, err
		}
		t.yard, err = along(single)
		return t, g.budgets.Float, err
	}
	var rows [][]float64
	if d := ev.Decode; d != nil && slices.Equal(d.Output, output) {
		rows = d.Logits // the golden's tokens are the candidate's
	} else {
		var err error
		if rows, err = along(g.cfg.Reference); err != nil {
			return logitTruth{}, Factors{}, err
		}
	}
	if g.cfg.Yardstick == nil {
		return logitTruth{}, Factors{}, noYardstick(g.declared)
	}
	yard, err := g.cfg.Yardstick.EmulateLogits(ctx, a.scheme, ids, output)
	if err != nil {
		return logitTruth{}, Factors{}, emulating(err)
	}
	return logitTruth{rows: rows, yard: yard}, g.budgets.Int8, nil
}

// head measures what the final norm and the head make of the candidate's own
// last layer row: an error of theirs is not hidden by, or charged for, an error
// of the layers.
func (g *gatherer) head(ctx context.Context, ev *Evidence, t logitTruth, a arithmetic, row []float64) error {
	p := ev.Logits
	p.Head.Missing = true
	if ev.Candidate == nil || ev.Profile == nil {
		return nil
	}
	last := len(ev.Candidate.Rows) - 1
	if d := ev.Profile; d.Accumulated[last].Missing || d.PostNormLast || d.Rescaled[last] != 0 || d.CopyOf[last] >= 0 {
		return nil // the last row is a bad one of the dump: it is not what the head was fed
	}
	judge := g.cfg.Reference
	if a.float {
		var err error
		if judge, err = g.shadow(); err != nil {
			return err
		}
	}
	yardRow := ev.yard[last]
	want, err := judge.Logits(ctx, ev.Candidate.Rows[last])
	if err != nil {
		return err
	}
	yardWant, err := judge.Logits(ctx, yardRow)
	if err != nil {
		return err
	}
	got, _ := scaled(row, want, p.Unscaled)
	p.Head = Measure{Got: metric.CentredL2(got, want), Yard: max(metric.CentredL2(t.yard[0], yardWant), t.floor)}
	if over(p.Head.Ratio(), p.Factors.Median.Value) {
		p.HeadFault, err = headFault(ctx, judge, p.Factors, ev.Candidate.Rows[last], row, yardRow, t.yard[0])
	}
	return err
}
