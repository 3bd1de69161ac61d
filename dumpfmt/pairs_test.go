package dumpfmt

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// virtual is a layer dump of any size whose values are all 0 but one.
type virtual struct {
	head []byte
	size int64
	odd  int64 // the byte that is 1
}

func newVirtual(rows, width uint64) virtual {
	p := make([]byte, layerHeaderBytes)
	binary.LittleEndian.PutUint64(p, rows)
	binary.LittleEndian.PutUint64(p[8:], width)
	p[24] = 1
	return virtual{p, layerHeaderBytes + int64(rows*width*4), -1}
}

func (v virtual) ReadAt(p []byte, off int64) (int, error) {
	clear(p)
	if off < layerHeaderBytes {
		copy(p, v.head[off:])
	}
	if i := v.odd - off; i >= 0 && i < int64(len(p)) {
		p[i] = 1
	}
	if left := v.size - off; left < int64(len(p)) {
		return int(max(left, 0)), io.EOF
	}
	return len(p), nil
}

func (v virtual) open(t *testing.T) *FloatLayers {
	d, err := NewFloatLayers(v, v.size, testFile)
	require.NoError(t, err)
	return d
}

// allocated returns the bytes that fn allocates in all.
func allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestDumpOfTenGigabytesInLittleMemory(t *testing.T) {
	v := newVirtual(40_000, 65_536)
	require.Greater(t, v.size, int64(10e9))
	v.odd = v.size - 4
	got := allocated(func() {
		d := v.open(t)
		row := make([]float32, 65_536)
		require.NoError(t, d.Row(39_999, row))
		require.NotZero(t, row[65_535])
		require.NoError(t, d.Row64(39_998, make([]float64, 65_536)))
	})
	require.Less(t, got, uint64(4<<20))
}

func TestEachPairInConstantMemory(t *testing.T) {
	a, b := newVirtual(1024, 65_536+1), newVirtual(1024, 65_536+1) // 268 MB a side, chunks across rows
	b.odd = b.size - 4
	var values, differ int64
	got := allocated(func() {
		next := int64(0)
		err := EachPair(t.Context(), a.open(t), b.open(t), func(i int64, x, y []float32) error {
			if i != next || len(x) != len(y) {
				t.Errorf("got a chunk of %d and %d values from %d, want one from %d", len(x), len(y), i, next)
			}
			next += int64(len(x))
			for j := range x {
				if x[j] != y[j] {
					differ = i + int64(j)
				}
			}
			values += int64(len(x))
			return nil
		})
		require.NoError(t, err)
	})
	require.EqualValues(t, 1024*65_537, values)
	require.EqualValues(t, 1024*65_537-1, differ)
	require.Less(t, got, uint64(1<<20))
}

func TestEachPairStops(t *testing.T) {
	a, b := newVirtual(2, 100_000).open(t), newVirtual(2, 100_000).open(t)
	stop := errors.New("enough")
	calls := 0
	require.ErrorIs(t, EachPair(t.Context(), a, b, func(int64, []float32, []float32) error { calls++; return stop }), stop)
	require.Equal(t, 1, calls)

	ctx, cancel := context.WithCancel(t.Context())
	require.ErrorIs(t, EachPair(ctx, a, b, func(int64, []float32, []float32) error { calls++; cancel(); return nil }), context.Canceled)
	require.Equal(t, 2, calls)

	wantUsage(t, EachPair(t.Context(), a, newVirtual(3, 100_000).open(t), nil))

	cut := newVirtual(2, 100_000)
	d := cut.open(t)
	d.src.r = io.NewSectionReader(cut, 0, cut.size-1)
	e := brokenAt(t, EachPair(t.Context(), a, d, func(int64, []float32, []float32) error { return nil }), int(cut.size))
	require.Equal(t, whatBytes, e.What)
}
