package reference

import (
	"fmt"
	"time"
)

// DefaultBackend is the backend specification in use when none is given: the
// pure Go backend with its operations in sequence. The backend's own default
// runs ready operations in parallel and deadlocks, silently, when there are
// twice GOMAXPROCS large matrix products among them; in sequence it is also
// faster on small models.
const DefaultBackend = "go:ops_sequential"

const (
	defaultCapacityStep = 64
	defaultStepDeadline = 2 * time.Minute
)

// Option configures [New] and [Open].
type Option func(*settings) error

type settings struct {
	dtype        DType
	backend      string
	capacityStep int
	stepDeadline time.Duration
	kv           KVQuant // the zero value is a dense cache
	scale        softmaxScale
	fused        bool
}

func newSettings(opts []Option) (settings, error) {
	s := settings{
		dtype:        Float32,
		backend:      DefaultBackend,
		capacityStep: defaultCapacityStep,
		stepDeadline: defaultStepDeadline,
	}
	for _, o := range opts {
		if err := o(&s); err != nil {
			return settings{}, err
		}
	}
	return s, nil
}

// WithDType chooses the arithmetic: [Float32] (the default), [Float64] or
// [BFloat16].
func WithDType(d DType) Option {
	return func(s *settings) error {
		if !d.known() {
			return fmt.Errorf("reference: option dtype: got %q, want %q, %q or %q", d, Float32, Float64, BFloat16)
		}
		s.dtype = d
		return nil
	}
}

// WithFusedAttention has [BFloat16] compute attention as torch's fused one on a CPU
// does, which is transformers' default: scores and the softmax's weights stay in
// float32, and the result alone is rounded. That is exact where heads of queries and
// values differ in dimension; torch's kernel for equal ones also rounds each
// exponential before the sum over the values, which is not emulated. In other
// arithmetics the option changes nothing.
func WithFusedAttention() Option {
	return func(s *settings) error {
		s.fused = true
		return nil
	}
}

// WithBackend chooses the backend as "name:config"; see [DefaultBackend].
func WithBackend(spec string) Option {
	return func(s *settings) error {
		s.backend = spec
		return nil
	}
}

// WithCapacityStep sets the multiple, in positions, that the KV cache's size is
// rounded up to (64 by default). Each size in use costs one compiled graph.
func WithCapacityStep(positions int) Option {
	return func(s *settings) error {
		if positions < 1 {
			return fmt.Errorf("reference: option capacity step: got %d, want at least 1", positions)
		}
		s.capacityStep = positions
		return nil
	}
}

// WithStepDeadline bounds the time of one step (one layer of one token, or one
// batched layer, compilation included); 2 minutes by default. A step that takes
// longer ends the run with a [*StallError]: the "go" backend can deadlock without
// a word, and a test must not hang with it.
func WithStepDeadline(d time.Duration) Option {
	return func(s *settings) error {
		if d <= 0 {
			return fmt.Errorf("reference: option step deadline: got %v, want more than 0", d)
		}
		s.stepDeadline = d
		return nil
	}
}
