package kernel

import (
	"context"
	"errors"
	"runtime"
	"sync"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// Options say how a comparison runs; the zero value is ready.
type Options struct {
	// Workers is how many tensors are compared at a time; 0 means one per CPU.
	Workers int
}

// Compare reads every tensor of the inventory on both sides and calls each with
// its row, in the inventory's order, from the caller's goroutine. Memory doesn't
// grow with the number of tensors, nor with the size of large ones. It ends with
// the first error of each, or of ctx; what is wrong with a tensor is in its row.
func Compare(ctx context.Context, inv *Inventory, ref, cand Source, o Options, each func(Row) error) error {
	workers := o.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	total := inv.Len()
	size := min(max(total/(8*workers), 1), maxBatch)
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()

	todo := make(chan *batch)
	inOrder := make(chan *batch, 2*workers) // bounds what is finished but not yet due
	go func() {
		defer close(inOrder)
		defer close(todo)
		for at := 0; at < total; at += size {
			b := batches.Get().(*batch)
			b.first, b.rows = at, b.rows[:0]
			b.count = min(size, total-at)
			select {
			case inOrder <- b:
			case <-ctx.Done():
				return
			}
			select {
			case todo <- b:
			case <-ctx.Done():
				return
			}
		}
	}()
	for range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			w := newWorker(inv, ref, cand)
			defer w.close()
			for b := range todo {
				w.run(ctx, b)
				b.done <- struct{}{}
			}
		}()
	}
	for b := range inOrder {
		select {
		case <-b.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if b.err != nil {
			return b.err
		}
		for _, r := range b.rows {
			if err := each(r); err != nil {
				return err
			}
		}
		batches.Put(b)
	}
	return ctx.Err()
}

// maxBatch is how many small tensors a worker takes at a time, so that handing
// over costs nothing beside them.
const maxBatch = 64

// batch is a run of tensors on its way through a worker.
type batch struct {
	first, count int
	rows         []Row
	err          error
	done         chan struct{}
}

var batches = sync.Pool{New: func() any { return &batch{done: make(chan struct{}, 1)} }}

type worker struct {
	inv       *Inventory
	ref, cand Session
	diff      metric.TensorDiff
}

func newWorker(inv *Inventory, ref, cand Source) *worker {
	return &worker{inv: inv, ref: ref.Session(), cand: cand.Session()}
}

func (w *worker) close() {
	_ = w.ref.Close() // they were only read
	_ = w.cand.Close()
}

func (w *worker) run(ctx context.Context, b *batch) {
	for i := range b.count {
		if b.err = ctx.Err(); b.err != nil {
			return
		}
		var row Row
		if row, b.err = w.row(ctx, w.inv.Key(b.first+i)); b.err != nil {
			return
		}
		b.rows = append(b.rows, row)
	}
}

// row compares one tensor; its error is the end of ctx.
func (w *worker) row(ctx context.Context, k Key) (Row, error) {
	row := Row{Key: k}
	ref, err := w.ref.Tensor(k)
	row.note(err)
	cand, err := w.cand.Tensor(k)
	row.note(err)
	if !row.Compared() {
		return row, nil
	}
	heads, width := w.inv.Shape(k)
	count := int64(heads) * int64(width)
	if ref.Reader == nil && cand.Reader == nil {
		w.diff.Reset(count)
		w.diff.Add(cand.Values, ref.Values)
	} else {
		w.diff.Reset(count)
		err := dumpfmt.EachPair(ctx, ref.reader(), cand.reader(), func(_ int64, r, c []float32) error {
			w.diff.Add(c, r)
			return nil
		})
		if err != nil {
			if ctx.Err() != nil {
				return row, ctx.Err()
			}
			row.note(err)
			return row, nil
		}
	}
	stats := w.diff.Stats()
	row.Stats, row.Figures = &stats, figuresOf(stats)
	return row, nil
}

// note takes down what is wrong with a side.
func (r *Row) note(err error) {
	if err == nil {
		return
	}
	var p *ProblemError
	if !errors.As(err, &p) {
		p = &ProblemError{Unreadable, "UNREADABLE:" + dumpfmt.Printable(err.Error())}
	}
	if r.Note != "" {
		r.Note += ";"
	}
	r.Note += p.Note
	r.Problem = max(r.Problem, p.Problem)
}

// reader makes values in memory readable like a file, where the other side is
// one.
func (t Tensor) reader() dumpfmt.Float32Reader {
	if t.Reader != nil {
		return t.Reader
	}
	return memory(t.Values)
}

type memory []float32

func (m memory) Len() int64 { return int64(len(m)) }

func (m memory) ReadValues(dst []float32, index int64) (int, error) {
	return copy(dst, m[index:]), nil
}
