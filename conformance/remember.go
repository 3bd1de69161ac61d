package conformance

import (
	"context"
	"fmt"
	"sync"

	"github.com/plumbline-go/plumbline/engine"
)

// remembered is a reference that runs each prompt once. Proving the checks asks
// for the same clean runs dozens of times.
type remembered struct {
	engine.Reference
	captures memo[engine.Trace]
	whole    memo[[][]float64]
	batched  memo[[][]float64]
	hidden   memo[[]float64]
	decoded  memo[engine.Decoded]
	float64s func() (engine.Reference, error)
	float32s func() (engine.Reference, error)
}

// afresh is the reference without its memory, for a check of what it does when
// it is asked again.
func afresh(ref engine.Reference) engine.Reference {
	if r, ok := ref.(*remembered); ok {
		return r.Reference
	}
	return ref
}

func remember(ref engine.Reference) engine.Reference {
	r := &remembered{Reference: ref}
	in := func(open func() (engine.Reference, error)) func() (engine.Reference, error) {
		return sync.OnceValues(func() (engine.Reference, error) {
			s, err := open()
			if err != nil || s == ref {
				return r, err
			}
			return remember(s), nil
		})
	}
	r.float64s, r.float32s = in(ref.Float64), in(ref.Float32)
	return r
}

func (r *remembered) Capture(ctx context.Context, ids []int) (engine.Trace, error) {
	return r.captures.get(fmt.Sprint(ids), func() (engine.Trace, error) { return r.Reference.Capture(ctx, ids) })
}

func (r *remembered) CaptureWholeStep(ctx context.Context, ids []int) ([][]float64, error) {
	return r.whole.get(fmt.Sprint(ids), func() ([][]float64, error) { return r.Reference.CaptureWholeStep(ctx, ids) })
}

func (r *remembered) CaptureBatched(ctx context.Context, ids []int) ([][]float64, error) {
	return r.batched.get(fmt.Sprint(ids), func() ([][]float64, error) { return r.Reference.CaptureBatched(ctx, ids) })
}

func (r *remembered) LastHidden(ctx context.Context, ids []int) ([]float64, error) {
	return r.hidden.get(fmt.Sprint(ids), func() ([]float64, error) { return r.Reference.LastHidden(ctx, ids) })
}

func (r *remembered) Decode(ctx context.Context, ids []int, o engine.DecodeOptions) (engine.Decoded, error) {
	return r.decoded.get(fmt.Sprint(ids, o), func() (engine.Decoded, error) { return r.Reference.Decode(ctx, ids, o) })
}

func (r *remembered) Float64() (engine.Reference, error) { return r.float64s() }

func (r *remembered) Float32() (engine.Reference, error) { return r.float32s() }

// rememberedYardstick is a yardstick that runs each prompt once per scheme.
type rememberedYardstick struct {
	engine.Yardstick
	byScheme sync.Map // engine.Scheme -> *memo[[][]float64]
	logits   memo[[][]float64]
}

func (r *rememberedYardstick) Emulate(ctx context.Context, s engine.Scheme, ids []int) ([][]float64, error) {
	m, _ := r.byScheme.LoadOrStore(s, &memo[[][]float64]{})
	return m.(*memo[[][]float64]).get(fmt.Sprint(ids), func() ([][]float64, error) { return r.Yardstick.Emulate(ctx, s, ids) })
}

func (r *rememberedYardstick) EmulateLogits(ctx context.Context, s engine.Scheme, ids, output []int) ([][]float64, error) {
	return r.logits.get(fmt.Sprint(s, ids, output), func() ([][]float64, error) { return r.Yardstick.EmulateLogits(ctx, s, ids, output) })
}

// withMemory returns cfg with a reference and a yardstick that remember.
func withMemory(cfg Config) Config {
	if cfg.paths != nil {
		return cfg
	}
	cfg.Reference = remember(cfg.Reference)
	if cfg.Yardstick != nil {
		cfg.Yardstick = &rememberedYardstick{Yardstick: cfg.Yardstick}
	}
	cfg.paths = &memo[path]{}
	return cfg
}

// memo keeps the result per key, by convention the prompt; errors are not kept, since a cancelled run
// says nothing about the next.
type memo[T any] struct {
	mu   sync.Mutex
	done map[string]T
}

func (m *memo[T]) get(key string, run func() (T, error)) (T, error) {
	if m == nil {
		return run()
	}
	m.mu.Lock()
	v, ok := m.done[key]
	m.mu.Unlock()
	if ok {
		return v, nil
	}
	v, err := run()
	if err != nil {
		return v, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.done == nil {
		m.done = map[string]T{}
	}
	m.done[key] = v
	return v, nil
}
