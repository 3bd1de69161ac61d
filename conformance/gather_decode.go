package conformance

import (
	"context"
	"fmt"
	"slices"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// DecodeEvidence is the reference's decode along the golden's tokens, or along
// its own where no golden has logits.
type DecodeEvidence struct {
	// Form is the reference's rows and the tokens that it says they choose.
	Form *LogitForm
	// Output are the tokens that the rows were computed along.
	Output []int
	// Logits are the reference's rows.
	Logits [][]float64
	// Golden has one entry per row where a golden was recorded.
	Golden []GoldenRow
	// Plain is true where the golden recorded no error of its own, and the
	// float32 engine's error stands in.
	Plain bool
	// Noise is the relative L2 error from float64 that a sound float32 engine shows
	// in each row: the golden's own where it recorded that, else this engine's, as
	// far as a float32 engine may have one; nil where nothing asked for it.
	Noise []float64
}

// GoldenRow is one recorded row of logits beside the reference's.
type GoldenRow struct {
	// Error is the relative L2 of the reference's row from the golden's, both
	// without their mean; Floor is the golden's own error from float64.
	Error, Floor float64
	// KL is KL(golden || reference) in nats.
	KL float64
	// Token is the golden's, Pick the reference's. Margin is how far Token lies
	// above the golden's second, Regret how far above Pick; Sigma is the standard
	// deviation of the golden's row.
	Token, Pick    int
	Margin, Regret float64
	Sigma          float64
}

// decode runs the reference along the golden's tokens.
func (g *gatherer) decode(ctx context.Context, ev *Evidence, closely bool) error {
	if g.refNeeds&(NeedDecode|NeedStops|NeedChunks|NeedBatches) == 0 {
		return nil
	}
	set, name := g.cfg.Golden, ev.Case.Name
	recorded := set != nil && set.HasLogits(name)
	if !recorded && !closely {
		return nil
	}
	d := &DecodeEvidence{}
	var stop []int
	if recorded {
		var err error
		if d.Output, stop, err = set.Output(name); err != nil {
			return err
		}
	}
	rows, err := g.goldenLogits(ev, recorded)
	if err != nil {
		return err
	}
	if recorded = len(rows) > 0; !recorded && !closely {
		return nil // a golden without a row says nothing of logits
	}
	if d.Output == nil {
		for _, row := range rows {
			d.Output = append(d.Output, metric.ArgMax(row))
		}
	}
	if len(d.Output) == 0 {
		free, err := g.cfg.Reference.Decode(ctx, ev.Case.TokenIDs, engine.DecodeOptions{MaxNew: g.room(ev), Stop: ev.Case.Stop})
		if err != nil {
			return err
		}
		d.Output, stop = free.OutputIDs, ev.Case.Stop
	}
	along, err := g.cfg.Reference.Decode(ctx, ev.Case.TokenIDs, engine.DecodeOptions{Forced: d.Output})
	if err != nil {
		return err
	}
	d.Logits = along.Logits
	d.Form = &LogitForm{Rows: len(along.Logits), Told: along.OutputIDs, Repeats: -1}
	for i, row := range along.Logits {
		if i > 0 && d.Form.Repeats < 0 && slices.Equal(row, along.Logits[i-1]) {
			d.Form.Repeats = i
		}
		id, what := -1, ""
		if c := metric.Classify(row); c.Degenerate() {
			what = c.Kind.String()
		} else {
			id = metric.ArgMax(narrow(row))
		}
		d.Form.ArgMax, d.Form.Degenerate = append(d.Form.ArgMax, id), append(d.Form.Degenerate, what)
	}
	ev.Decode = d
	if recorded {
		d.Noise = set.LogitFloor(name) // an error that no fault of this engine's can raise
	}
	if d.Noise == nil && (recorded || g.refNeeds&(NeedChunks|NeedBatches) != 0) {
		if err := g.float32Error(ctx, ev); err != nil {
			return err
		}
	}
	if recorded {
		if err := d.compare(rows, set.LogitFloor(name), name); err != nil {
			return err
		}
	}
	if !closely {
		return nil
	}
	if g.refNeeds&NeedStops != 0 {
		if err := g.stops(ctx, ev, stop); err != nil {
			return err
		}
	}
	if g.refNeeds&NeedChunks != 0 {
		return g.chunks(ctx, ev)
	}
	return nil
}

// narrow is the row as float32, which is what a dump of it holds.
func narrow(row []float64) []float64 {
	out := make([]float64, len(row))
	for i, x := range row {
		out[i] = float64(float32(x))
	}
	return out
}

func (g *gatherer) goldenLogits(ev *Evidence, recorded bool) ([][]float64, error) {
	if !recorded {
		return nil, nil
	}
	d, err := g.cfg.Golden.Logits(ev.Case.Name)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	h := d.Header()
	if h.Rows > 0 && h.Vocab != ev.Arch.Vocab {
		return nil, fmt.Errorf("golden %s: vocabulary: got %d, want %d (the model's)", d.File(), h.Vocab, ev.Arch.Vocab)
	}
	var rows [][]float64
	for i := range h.Rows {
		row := make([]float64, h.Vocab)
		if err := d.Row64(i, row); err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// compare measures the reference's rows from the golden's.
func (d *DecodeEvidence) compare(rows [][]float64, floors []float64, name string) error {
	if len(rows) != len(d.Logits) || (floors != nil && len(floors) != len(rows)) {
		return fmt.Errorf("golden %s: logit rows: got %d rows and %d floors, want %d, one for each token", name, len(rows), len(floors), len(d.Logits))
	}
	d.Plain = floors == nil
	for i, want := range rows {
		floor := 0.0
		if d.Plain {
			floor = d.Noise[i]
		} else {
			floor = floors[i]
		}
		_, second := metric.Top2(want)
		r := GoldenRow{Error: metric.CentredL2(d.Logits[i], want), Floor: floor, KL: metric.KL(want, d.Logits[i]),
			Token: d.Output[i], Pick: d.Form.Told[i], Sigma: spread(want)}
		r.Regret = want[r.Token] - want[r.Pick]
		if second >= 0 {
			r.Margin = metric.Regret(want, second)
		}
		d.Golden = append(d.Golden, r)
	}
	return nil
}

// float32Error measures the noise of this engine's rows. A fault that is in one
// of the two arithmetics only must not raise its own bound beyond what rounding
// can explain.
func (g *gatherer) float32Error(ctx context.Context, ev *Evidence) error {
	double, err := g.shadow()
	if err != nil {
		return fmt.Errorf("float64 yardstick: %w", err)
	}
	single, err := g.single()
	if err != nil {
		return fmt.Errorf("float32 yardstick: %w", err)
	}
	o := engine.DecodeOptions{Forced: ev.Decode.Output}
	want, err := double.Decode(ctx, ev.Case.TokenIDs, o)
	if err != nil {
		return err
	}
	got, err := single.Decode(ctx, ev.Case.TokenIDs, o)
	if err != nil {
		return err
	}
	for i, row := range got.Logits {
		ev.Decode.Noise = append(ev.Decode.Noise, min(metric.CentredL2(row, want.Logits[i]), g.budgets.Float32Noise.Value))
	}
	return nil
}

// stops decodes without stop ids, and then with some that must end the output:
// the model's own, and one of the tokens in the middle.
func (g *gatherer) stops(ctx context.Context, ev *Evidence, stop []int) error {
	decode := func(stop []int) (engine.Decoded, error) {
		return g.cfg.Reference.Decode(ctx, ev.Case.TokenIDs, engine.DecodeOptions{MaxNew: g.room(ev), Stop: stop})
	}
	free, err := decode(nil)
	if err != nil {
		return err
	}
	all := free.OutputIDs
	ev.Stops = append(ev.Stops, stopRun{Want: all[:min(len(all), g.room(ev))], Reason: engine.StopBudget, Got: free})
	if len(all) < g.room(ev) { // nothing could have ended it
		ev.Stops[0].Want = append(slices.Clone(all), -1)
	}
	for _, ids := range [][]int{stop, {all[len(all)/2]}} {
		s := stopRun{Stop: ids, Want: all, Reason: engine.StopBudget}
		if first := slices.IndexFunc(all, func(id int) bool { return slices.Contains(ids, id) }); first >= 0 {
			s.Want, s.Reason = all[:first+1], engine.StopToken
		}
		if s.Got, err = decode(ids); err != nil {
			return err
		}
		ev.Stops = append(ev.Stops, s)
	}
	return nil
}

// room is how many tokens the reference decodes: what is asked for, as far as
// the model has positions.
func (g *gatherer) room(ev *Evidence) int { return ev.within(g.decodeSteps()) }

// within is n tokens, as far as the model has positions for them.
func (ev *Evidence) within(n int) int {
	if m := ev.Arch.MaxPositions; m > 0 {
		n = min(n, m-len(ev.Case.TokenIDs)+1)
	}
	return max(n, 1)
}
