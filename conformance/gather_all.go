package conformance

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline-go/plumbline/engine"
)

// gatherAll collects the evidence of this run's cases, on as many cores as there are:
// a case is independent of the others.
func gatherAll(ctx context.Context, cfg *Config, checks []*Check, declared engine.Info, plan *runPlan, clock *stopwatch) ([]*Evidence, error) {
	g := &gatherer{cfg: cfg, budgets: cfg.budgets(), declared: declared,
		shadow: sync.OnceValues(cfg.Reference.Float64), single: sync.OnceValues(cfg.Reference.Float32)}
	g.needs, g.refNeeds = needsOf(checks)
	table, err := cfg.Reference.Weights().Tensor(embeddingTable)
	if err != nil {
		return nil, fmt.Errorf("conformance: %w", err)
	}
	for _, x := range table.Data {
		g.tableMax = max(g.tableMax, math.Abs(float64(x)))
	}
	own := plan.own()
	cases := make([]engine.Case, len(own))
	place := map[int]int{} // in own, by the place in the plan
	for k, i := range own {
		cases[k], place[i] = plan.cases[i], k
	}
	evs := make([]*Evidence, len(own))
	var mu sync.Mutex
	done := 0
	parent := ctx
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, k := range longestFirst(cases) {
		c := cases[k]
		group.Go(func() error {
			stop := clock.ofCase(c.Name)
			ev, err := g.gather(ctx, c, plan.closely[own[k]])
			if err != nil {
				return err
			}
			stop()
			evs[k] = ev
			mu.Lock()
			defer mu.Unlock()
			done++
			if cfg.Progress != nil {
				total := len(cases)
				if cfg.Repeat != nil {
					total *= 2
				}
				cfg.Progress(done, total, c.Name)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	stop := clock.ofPart(partPrefixes)
	if err := g.prefixes(parent, evs); err != nil {
		return nil, err
	}
	stop()
	asked := 0
	if cfg.Cases != nil {
		asked = g.decodeSteps()
	}
	setDecodeBudgets(evs, asked)
	var together []*Evidence
	for _, i := range plan.together {
		if k, ok := place[i]; ok {
			together = append(together, evs[k])
		}
	}
	stop = clock.ofPart(partBatches)
	defer stop()
	return evs, g.batches(parent, together)
}

// longestFirst is the order in which the cases are run: the last one to start
// should not be the longest.
func longestFirst(cases []engine.Case) []int {
	order := make([]int, len(cases))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return len(cases[b].TokenIDs) - len(cases[a].TokenIDs) })
	return order
}

// powerful picks the n cases on which the reference is judged: those first
// that no check of it has to skip.
func powerful(cases []engine.Case, n int) []bool {
	out := make([]bool, len(cases))
	pick := func(want bool) {
		for i, c := range cases {
			ids := c.TokenIDs
			strong := len(ids) >= minTokensForBatch && ids[0] != ids[len(ids)-1]
			if n > 0 && !out[i] && strong == want {
				out[i] = true
				n--
			}
		}
	}
	pick(true)
	pick(false)
	return out
}
