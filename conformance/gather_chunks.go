package conformance

import (
	"context"
	"fmt"
	"slices"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// chunkSizes are the ways in which a prompt is cut: token by token, and two
// sizes that divide few lengths.
var chunkSizes = []int{1, 7, 16}

// chunkedSteps is how many rows are compared per way: the one that chooses the
// first token, and the one behind a step on the cache that the prompt left.
const chunkedSteps = 2

// OtherRun is a run of the reference that has to give the same logits as the
// plain one.
type OtherRun struct {
	// How says what was done differently.
	How string
	// Rows are its logits along the same tokens, from row First on.
	Rows  [][]float64
	First int
}

// chunks runs the prompt cut in other ways, and scores the last token by one
// prefill over prompt and output, where the plain run took steps.
func (g *gatherer) chunks(ctx context.Context, ev *Evidence) error {
	ids, output := ev.Case.TokenIDs, ev.Decode.Output
	for _, size := range chunkSizes {
		if size >= len(ids) {
			continue // one chunk is the plain run
		}
		d, err := g.cfg.Reference.Decode(ctx, ids, engine.DecodeOptions{Forced: output[:min(chunkedSteps, len(output))], Chunk: size})
		if err != nil {
			return err
		}
		how := fmt.Sprintf("the prompt in chunks of %d", size)
		if size == 1 {
			how = "the prompt token by token"
		}
		ev.Chunks = append(ev.Chunks, OtherRun{How: how, Rows: d.Logits})
	}
	if n := len(output); n > 1 {
		all := append(slices.Clone(ids), output[:n-1]...)
		d, err := g.cfg.Reference.Decode(ctx, all, engine.DecodeOptions{Forced: output[n-1:]})
		if err != nil {
			return err
		}
		ev.Chunks = append(ev.Chunks, OtherRun{How: "prompt and output in one prefill", Rows: d.Logits, First: n - 1})
	}
	return nil
}

// batchSize is how many sequences share a batch.
const batchSize = 3

// batches runs the cases that the plan puts together: as one batch, as one in another
// order, and one after the other on one engine.
func (g *gatherer) batches(ctx context.Context, planned []*Evidence) error {
	var together []*Evidence
	for _, ev := range planned {
		if ev.referenceJudged && ev.Decode != nil && ev.Decode.Noise != nil {
			together = append(together, ev)
		}
	}
	if len(together) < 2 {
		return nil
	}
	steps := len(together[0].Decode.Output)
	for _, ev := range together {
		steps = min(steps, len(ev.Decode.Output))
	}
	n := len(together)
	ref := afresh(g.cfg.Reference)
	for _, turn := range []struct {
		how string
		by  int
	}{{"row %d of a left-padded batch of %d", 0}, {"row %d of the same batch in another order, of %d", 1}} {
		var prompts, forced [][]int
		for i := range together {
			ev := together[(i+turn.by)%n]
			prompts, forced = append(prompts, ev.Case.TokenIDs), append(forced, ev.Decode.Output[:steps])
		}
		rows, err := ref.DecodeBatch(ctx, prompts, forced)
		if err != nil {
			return fmt.Errorf("conformance: batch: %w", err)
		}
		for i := range together {
			ev := together[(i+turn.by)%n]
			ev.Batches = append(ev.Batches, OtherRun{How: fmt.Sprintf(turn.how, i, n), Rows: rows[i]})
		}
	}
	first, second := together[0], together[1]
	for _, ev := range []*Evidence{first, second, first} {
		d, err := ref.Decode(ctx, ev.Case.TokenIDs, engine.DecodeOptions{Forced: ev.Decode.Output[:steps]})
		if err != nil {
			return fmt.Errorf("conformance: case %s again: %w", ev.Case.Name, err)
		}
		ev.Batches = append(ev.Batches, OtherRun{How: "after another request", Rows: d.Logits})
	}
	return nil
}

// logitDistances are the distances of a run's rows from the plain run's, with
// the noise of float32 in each.
func logitDistances(ev *Evidence, o OtherRun) []Measure {
	var out []Measure
	for i, row := range o.Rows {
		k := o.First + i
		out = append(out, Measure{Got: metric.CentredL2(row, ev.Decode.Logits[k]), Yard: max(ev.Decode.Noise[k], ev.Rounding)})
	}
	return out
}
