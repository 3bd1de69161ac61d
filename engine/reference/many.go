package reference

import (
	"context"
	"fmt"
	"slices"

	"github.com/plumbline-go/plumbline/engine"
)

// DefaultSnapshotBytes is the bound on KV snapshots when none is given: room for
// prefixes of 10,000 positions at the shape of Qwen2.5-0.5B.
const DefaultSnapshotBytes = 256 << 20

// sharedCapacity is the KV capacity up to which the bits of a run don't depend
// on it; larger caches share with their own kind only.
const sharedCapacity = 1024

// ManyOptions configure [Engine.CaptureMany].
type ManyOptions struct {
	// Oracle asks for the second composition of every prompt too.
	Oracle bool
	// SnapshotBytes bounds the memory of the KV snapshots. 0 means
	// DefaultSnapshotBytes; a negative number shares nothing.
	SnapshotBytes int64
}

// Captured is the outcome of one prompt of [Engine.CaptureMany].
type Captured struct {
	// Index is the prompt's place in the list.
	Index int
	// Trace is what Capture gives.
	Trace engine.Trace
	// WholeRows and LastHidden are what CaptureWholeStep and LastHidden give,
	// from one run of their own; nil without ManyOptions.Oracle.
	WholeRows  [][]float64
	LastHidden []float64
	// Shared is how many leading positions were not computed anew.
	Shared int
}

// CaptureMany captures prompts and hands each outcome to each as soon as it is
// there, in an order that lets prompts share the work of their common prefixes;
// an error from each ends it. Every number is bit-identical to that of a fresh
// run of the prompt alone: the keys and values of a prefix depend on nothing
// behind it, and are continued from exact copies. Each composition continues its
// own.
//
// Snapshots are kept along one path of prefixes at a time, only where a later
// prompt branches off, and within SnapshotBytes; where that has no room a prefix
// is computed again. Besides them there are the caches of the running prompt,
// and of the traces that the caller keeps.
//
// Nothing is shared in a model with a planted [engine.Fault], which may count
// positions from the prompt's end.
func (e *Engine) CaptureMany(ctx context.Context, prompts [][]int, o ManyOptions, each func(Captured) error) error {
	for i, ids := range prompts {
		if err := e.checkIDs(ids); err != nil {
			return fmt.Errorf("reference: prompt %d of %d: %w", i, len(prompts), err)
		}
	}
	if o.Oracle {
		if err := e.needDense("a whole step in one graph"); err != nil {
			return err
		}
	}
	sh := e.newSharing(o)
	for _, a := range planErrands(prompts, e.sharingClass) {
		c, err := guard(ctx, e.set.stepDeadline, func(p *progress) (Captured, error) { return sh.capture(p, a) })
		if err != nil {
			return err
		}
		if err := each(c); err != nil {
			return err
		}
	}
	return nil
}

// sharingClass tells apart the capacities whose bits may differ.
func (e *Engine) sharingClass(tokens int) int {
	if c := e.capacity(tokens); c > sharedCapacity {
		return c
	}
	return 0
}

// sharing is the state of a CaptureMany between two prompts.
type sharing struct {
	e            *Engine
	oracle       bool
	budget       int64
	steps, whole snapshots
}

func (e *Engine) newSharing(o ManyOptions) *sharing {
	sh := &sharing{e: e, oracle: o.Oracle, budget: o.SnapshotBytes}
	if sh.budget == 0 {
		sh.budget = DefaultSnapshotBytes
	}
	if e.arch.Fault != (engine.Fault{}) {
		sh.budget = -1
	}
	sh.steps.budget, sh.whole.budget = &sh.budget, &sh.budget
	return sh
}

// capture runs one errand; the errands of a plan must come in its order.
func (sh *sharing) capture(p *progress, a errand) (Captured, error) {
	e, capacity := sh.e, sh.e.capacity(len(a.ids))
	out := Captured{Index: a.index}

	cache, from, err := sh.steps.resume(a, capacity, e.newKVCache)
	if err != nil {
		return Captured{}, err
	}
	t := &trace{run: run{e: e, cache: cache}}
	t.rows, err = t.prompt(p, a.ids, from, func(length int) error {
		return sh.steps.keep(a, t.cache, length, e.newKVCache)
	})
	if err != nil {
		return Captured{}, err
	}
	out.Trace, out.Shared = t, from
	if !sh.oracle {
		return out, nil
	}

	cache, from, err = sh.whole.resume(a, capacity, e.newWholeCache)
	if err != nil {
		return Captured{}, err
	}
	w := wholeRun{e: e, cache: cache}
	last, err := w.prompt(p, a.ids, from, func(length int) error {
		return sh.whole.keep(a, w.cache, length, e.newWholeCache)
	})
	if err != nil {
		return Captured{}, err
	}
	if out.WholeRows, err = e.wholeRows(last); err != nil {
		return Captured{}, err
	}
	out.LastHidden, err = download(last.hidden, 0, e.arch.Hidden)
	return out, err
}

// resume is a cache of the capacity with what the snapshots have of a's prompt,
// and the number of positions in it.
func (s *snapshots) resume(a errand, capacity int, alloc func(int) (kvCache, error)) (kvCache, int, error) {
	if err := s.drop(a.common); err != nil {
		return nil, 0, err
	}
	c, err := alloc(capacity)
	if err != nil {
		return nil, 0, err
	}
	from := s.longest(len(a.ids) - 1)
	if from == nil {
		return c, 0, nil
	}
	return c, from.length, c.take(from.cache, from.length)
}

// keep saves a snapshot where the errand asks for one.
func (s *snapshots) keep(a errand, cache kvCache, length int, alloc func(int) (kvCache, error)) error {
	if _, wanted := slices.BinarySearch(a.keep, length); !wanted {
		return nil
	}
	return s.save(cache, length, alloc)
}
