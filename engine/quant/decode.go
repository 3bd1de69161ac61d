package quant

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/plumbline-go/plumbline/engine"
)

// maxCodesHidden is the widest model whose products of codes fit into int32.
const maxCodesHidden = math.MaxInt32 / (maxCode * maxCode)

// decoded is what one run of a prompt and the tokens behind it gave.
type decoded[T float32 | int32] struct {
	// rows and steps are the capture of the last prompt token.
	rows  [][]float64
	steps []float64
	// logits has one row per token of ids, as it was before the token was chosen.
	logits [][]T
	ids    []int
}

// decode runs the prompt once and then one step per token but the last, which
// nothing follows. It ends with a stop id, which is kept, or after maxNew tokens.
// Each token is the largest of its row, the lowest id where several are equal.
// Probes are collected from the prompt and the steps.
func decode[T float32 | int32](ctx context.Context, e *Emulation, scheme engine.Scheme, ids []int, maxNew int, stop []int, c *probes) (decoded[T], error) {
	var out decoded[T]
	_, codes := any(out.logits).([][]int32)
	switch {
	case maxNew < 1:
		return out, fmt.Errorf("quant: decode: got %d new tokens, want at least 1", maxNew)
	case codes && (scheme.FloatWeights || scheme.ActivationBlock > 0):
		return out, &engine.UnsupportedError{What: "int32 logits", Why: "only int8 weights and activations with one scale per token give integers that can be compared"}
	case codes && e.arch.Hidden > maxCodesHidden:
		return out, &engine.UnsupportedError{What: fmt.Sprintf("int32 logits of hidden size %d", e.arch.Hidden),
			Why: fmt.Sprintf("products of codes may overflow from %d on", maxCodesHidden+1)}
	}
	s, err := e.start(scheme, ids, true)
	if err != nil {
		return out, err
	}
	c.watch(s)
	var last []float64
	keep := e.keepLast(&out.rows, &out.steps)
	visit := func(x, steps []float64) { last = x; keep(x, steps) }
	tokens := ids
	for {
		if err := s.feed(ctx, tokens, visit); err != nil {
			return out, err
		}
		flat, err := e.logits(s.p, last[len(last)-e.arch.Hidden:], "logit row", len(out.ids), codes)
		if err != nil {
			return out, err
		}
		row, best := make([]T, len(flat)), 0
		for i, v := range flat {
			if row[i] = T(v); row[i] > row[best] {
				best = i
			}
		}
		out.logits, out.ids = append(out.logits, row), append(out.ids, best)
		if len(out.ids) == maxNew || slices.Contains(stop, best) {
			return out, nil
		}
		tokens, visit = out.ids[len(out.ids)-1:], func(x, _ []float64) { last = x }
	}
}
