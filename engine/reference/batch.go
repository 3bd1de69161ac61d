package reference

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/plumbline-go/plumbline/engine"
)

// DecodeBatch implements [engine.Reference]. The sequences have a batch axis of
// their own in the graphs and in the KV cache. A row with a value that isn't
// finite is an error. The faults of Arch().Fault that belong to single sequences
// don't act.
//
// The memory of the rows is 8 bytes times the sequences, the tokens and the
// vocabulary; that of a layer's attention grows with the sequences and the square
// of the longest prompt.
func (e *Engine) DecodeBatch(ctx context.Context, prompts, forced [][]int) ([][][]float64, error) {
	if err := e.checkBatch(prompts, forced); err != nil {
		return nil, err
	}
	if err := e.needDense("a batch"); err != nil {
		return nil, err
	}
	if err := e.checkForced(len(prompts)); err != nil {
		return nil, err
	}
	return guard(ctx, e.set.stepDeadline, func(p *progress) ([][][]float64, error) {
		if err := e.needHead(); err != nil {
			return nil, err
		}
		b, x, err := e.startBatch(p, prompts, len(forced[0]))
		if err != nil {
			return nil, err
		}
		out := make([][][]float64, len(prompts))
		for i := 0; ; i++ {
			if err := e.batchLogits(x, i, out); err != nil {
				return nil, err
			}
			if i == len(forced[0])-1 {
				return out, nil
			}
			ids := make([]int, len(prompts))
			for s := range ids {
				ids[s] = forced[s][i]
			}
			if x, err = b.token(p, b.slots+i, ids); err != nil {
				return nil, err
			}
		}
	})
}

func (e *Engine) checkBatch(prompts, forced [][]int) error {
	if len(prompts) == 0 {
		return errors.New("reference: batch: got no prompts, want at least 1")
	}
	if len(forced) != len(prompts) {
		return fmt.Errorf("reference: batch: got %d lists of forced tokens, want one per prompt, %d", len(forced), len(prompts))
	}
	for i, f := range forced {
		if len(f) == 0 || len(f) != len(forced[0]) {
			return fmt.Errorf("reference: batch: sequence %d: got %d forced tokens, want at least 1 and as many as sequence 0, %d",
				i, len(f), len(forced[0]))
		}
		if err := e.checkDecode(prompts[i], engine.DecodeOptions{MaxNew: len(f), Forced: f}); err != nil {
			return fmt.Errorf("reference: batch: sequence %d: %w", i, err)
		}
	}
	return nil
}

// batch is several sequences on their way through the graphs of one layer.
type batch struct {
	e       *Engine
	cache   kvCache // with an axis of sequences in front
	padding []int   // slots in front of each prompt
	slots   int     // of each prompt and its padding
	first   *tensors.Tensor
}

// positions are those of the sequences' tokens in a slot; the padding's are 0.
func (b *batch) positions(slot int) []int {
	out := make([]int, len(b.padding))
	for s, n := range b.padding {
		out[s] = max(0, slot-n)
	}
	return out
}

// startBatch prefills and returns a batch with room for the new tokens, and the
// rows of the prompts' last positions, [B, H].
func (e *Engine) startBatch(p *progress, prompts [][]int, maxNew int) (*batch, *tensors.Tensor, error) {
	n, h := len(prompts), e.arch.Hidden
	b := &batch{e: e}
	for _, ids := range prompts {
		b.slots = max(b.slots, len(ids))
	}
	var ids, positions []int
	first := make([]int, n)
	for s, prompt := range prompts {
		pad := b.slots - len(prompt)
		b.padding = append(b.padding, pad)
		if !e.arch.Fault.BatchPaddingUnmasked {
			first[s] = pad
		}
		// The padding is token 0 at position 0; any would do.
		ids = append(append(ids, make([]int, pad)...), prompt...)
		positions = append(append(positions, make([]int, pad)...), consecutive(0, len(prompt))...)
	}
	var err error
	if b.first, err = e.dev.index(first, n); err != nil {
		return nil, nil, err
	}
	if b.cache, err = e.newBatchCache(n, e.capacity(b.slots+maxNew-1)); err != nil {
		return nil, nil, err
	}
	x, err := e.embeddings(ids)
	if err != nil {
		return nil, nil, err
	}
	ropes := ropeMemo{}
	for layer := range e.arch.Layers {
		if err := p.step(); err != nil {
			return nil, nil, fmt.Errorf("reference: batch: layer %d: %w", layer, err)
		}
		args, err := e.rowArgs(x, layer, ropes, positions)
		if err != nil {
			return nil, nil, err
		}
		out, err := e.callLayer(e.graphs[layer].batchPrefill, layer, appendTensors(append(args, b.first, e.eps[layer]), e.layers[layer]), b.prompts(), false)
		if err != nil {
			return nil, nil, err
		}
		if err := b.cache.write(layer, 0, out[1:], 0, b.slots); err != nil {
			return nil, nil, err
		}
		if err := finalize(append(out[1:], x)...); err != nil {
			return nil, nil, fmt.Errorf("reference: batch: layer %d: %w", layer, err)
		}
		x = out[0]
	}
	var last []float64
	for s := range prompts {
		row, err := download(x, ((s+1)*b.slots-1)*h, h)
		if err != nil {
			return nil, nil, err
		}
		last = append(last, row...)
	}
	if err := finalize(x); err != nil {
		return nil, nil, fmt.Errorf("reference: batch: %w", err)
	}
	x, err = upload(e.dev, last, n, h)
	return b, x, err
}

// token takes one token of each sequence, all in one slot, through all layers
// and returns the last layer's output, [B, H].
func (b *batch) token(p *progress, slot int, ids []int) (*tensors.Tensor, error) {
	e := b.e
	x, err := e.embeddings(ids)
	if err != nil {
		return nil, err
	}
	last, err := e.dev.index([]int{slot})
	if err != nil {
		return nil, err
	}
	write := slices.Repeat([]int{slot}, len(ids))
	if e.arch.Fault.BatchRowStale {
		for s := 1; s < len(write); s++ {
			write[s] = nowhere
		}
	}
	at, err := e.dev.index(write, len(write))
	if err != nil {
		return nil, err
	}
	ropes, positions := ropeMemo{}, b.positions(slot)
	for n := range e.arch.Layers {
		if err := p.step(); err != nil {
			return nil, fmt.Errorf("reference: batch: layer %d: %w", n, err)
		}
		args, err := e.rowArgs(x, n, ropes, positions)
		if err != nil {
			return nil, err
		}
		own, err := b.cache[n].donate(e.dev)
		if err != nil {
			return nil, fmt.Errorf("reference: batch: layer %d: %w", n, err)
		}
		if !e.graphs[n].linear {
			args = append(args, last, b.first)
		}
		args = append(append(args, at, e.eps[n]), own...)
		out, err := e.callLayer(e.graphs[n].batchDecode, n, appendTensors(args, e.layers[n]), b.tokens(slot), false)
		if err != nil {
			return nil, err
		}
		b.cache[n].parts = out[1:]
		if err := finalize(x); err != nil {
			return nil, fmt.Errorf("reference: batch: layer %d: %w", n, err)
		}
		x = out[0]
	}
	return x, nil
}

// batchLogits appends row i of each sequence to out, and finalizes x [B, H].
func (e *Engine) batchLogits(x *tensors.Tensor, i int, out [][][]float64) error {
	y, err := call(e.logits, appendTensors([]any{x, e.finalNorm, e.finalEps}, e.head))
	if err != nil {
		return err
	}
	for s := range out {
		row, err := download(y[0], s*e.arch.Vocab, e.arch.Vocab)
		if err != nil {
			return fmt.Errorf("reference: reading logits: %w", err)
		}
		if _, err := argmax(row); err != nil {
			return fmt.Errorf("reference: batch: sequence %d: logit row %d: %w", s, i, err)
		}
		out[s] = append(out[s], row)
	}
	return finalize(x, y[0])
}

// finalize frees tensors.
func finalize(ts ...*tensors.Tensor) error {
	var all []error
	for _, t := range ts {
		all = append(all, t.FinalizeAll())
	}
	return errors.Join(all...)
}
