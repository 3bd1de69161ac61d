package quant

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSpreadDoesEachPieceOnce(t *testing.T) {
	for _, count := range []int{1, 2, 5} {
		var mu sync.Mutex
		seen, busy := map[int]int{}, make([]int, count)
		spread(count, 40, func(worker, piece int) {
			mu.Lock()
			defer mu.Unlock()
			seen[piece]++
			busy[worker]++
		})
		require.Len(t, seen, 40)
		total := 0
		for i := range 40 {
			assert.Equal(t, 1, seen[i], "%d goroutines: piece %d", count, i)
		}
		for _, n := range busy {
			total += n
		}
		assert.Equal(t, 40, total)
	}
}

func TestWorkers(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	for _, c := range []struct{ n, work, want int }{
		{100, 0, 1}, {100, minWork, 1}, {100, 2*minWork - 1, 1}, {100, 2 * minWork, 2}, {100, 100 * minWork, 4}, {3, 100 * minWork, 3}, {1, 100 * minWork, 1},
	} {
		assert.Equal(t, c.want, workers(c.n, c.work), "%d pieces, %d multiplications", c.n, c.work)
	}
}

// How many processors there are changes no bit.
func TestBitsDoNotDependOnProcessors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	e := FromWeights(smol(1))
	for _, s := range benchSchemes {
		in, err := e.EmulateEmbedding(t.Context(), s.scheme, benchIDs(130, 512))
		require.NoError(t, err)
		runtime.GOMAXPROCS(1)
		want := emulateLayer(t, e, s.scheme, 0, in, nil)
		logits, err := e.EmulateLogits(t.Context(), s.scheme, benchIDs(9, 512), benchIDs(40, 512))
		require.NoError(t, err)
		runtime.GOMAXPROCS(5)
		got := emulateLayer(t, e, s.scheme, 0, in, nil)
		for _, part := range layerParts {
			require.Equal(t, want[part], got[part], "%s: %s", s.name, part)
		}
		again, err := e.EmulateLogits(t.Context(), s.scheme, benchIDs(9, 512), benchIDs(40, 512))
		require.NoError(t, err)
		require.Equal(t, logits, again, s.name)
	}
}
