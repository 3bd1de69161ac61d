package quant

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// minWork is how many multiplications are worth a goroutine: about 0.1 ms.
const minWork = 1 << 19

// workers is how many goroutines share n independent pieces of so many
// multiplications in all: 1 where a second one would not pay.
func workers(n, work int) int {
	return max(1, min(runtime.GOMAXPROCS(0), n, work/minWork))
}

// spread calls do once for each piece below n, on so many goroutines, with the
// number of the goroutine. Which one does which piece is left open: a piece must
// depend on no other one.
func spread(workers, n int, do func(worker, piece int)) {
	if workers == 1 {
		for i := range n {
			do(0, i)
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				do(w, i)
			}
		})
	}
	wg.Wait()
}
