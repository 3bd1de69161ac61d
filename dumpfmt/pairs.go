package dumpfmt

import (
	"context"
	"strconv"
)

// pairChunk is the number of values per side and step: two buffers of 256 KiB
// stay in the second-level cache, and a system call per chunk costs nothing.
const pairChunk = 64 << 10

// Float32Reader yields a stored run of float32 by flat index. [FloatLayers],
// [FloatLogits], [Safetensors.Float32s], [Raw] and [NPY] offer it.
type Float32Reader interface {
	// Len is the number of values.
	Len() int64
	// ReadValues fills dst from value index on and returns how many were read:
	// fewer than len(dst) at the end only, and io.EOF when none is left.
	ReadValues(dst []float32, index int64) (int, error)
}

// EachPair walks two runs of the same length side by side, in one pass and
// constant memory. It calls fn with chunks of equal length and the flat index
// of their first value; the chunks are reused, so fn must not keep them. It
// stops at the first error, fn's included, and when ctx ends. Runs of unequal
// length are a *UsageError: compare the headers first.
func EachPair(ctx context.Context, a, b Float32Reader, fn func(index int64, x, y []float32) error) error {
	n := a.Len()
	if b.Len() != n {
		return &UsageError{Op: "EachPair", What: "length of the second side", Got: itoa(b.Len()), Want: itoa(n)}
	}
	size := min(n, pairChunk)
	x, y := make([]float32, size), make([]float32, size)
	for i := int64(0); i < n; i += size {
		if err := ctx.Err(); err != nil {
			return err
		}
		size := min(size, n-i)
		if err := fill(a, x[:size], i); err != nil {
			return err
		}
		if err := fill(b, y[:size], i); err != nil {
			return err
		}
		if err := fn(i, x[:size], y[:size]); err != nil {
			return err
		}
	}
	return nil
}

func fill(r Float32Reader, dst []float32, index int64) error {
	n, err := r.ReadValues(dst, index)
	if err != nil {
		return err
	}
	if n != len(dst) {
		return usageInt("EachPair", "values read", n, len(dst))
	}
	return nil
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
