package conformance

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/plumbline-go/plumbline/engine"
)

func planned(total int, costs []float64) *runPlan {
	p := &runPlan{shard: &Shard{Total: total}}
	var groups [][]int
	for i := range costs {
		p.cases = append(p.cases, engine.Case{Name: fmt.Sprint(i)})
		groups = append(groups, []int{i})
	}
	p.distribute(groups, planCosts{cases: costs, parts: map[runPart]float64{}})
	return p
}

// TestTheCostliestGoesFirst: by hand, 7 | 5+1 | 4+3.
func TestTheCostliestGoesFirst(t *testing.T) {
	p := planned(3, []float64{1, 3, 4, 5, 7})
	assert.Equal(t, []int{1, 2, 2, 1, 0}, p.shardOf)
}

// TestNoShardIsMuchHeavier: longest first is at most 4/3 of the best there is (Graham,
// 1969), which is at least the mean and the largest.
func TestNoShardIsMuchHeavier(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		total := 1 + rng.IntN(8)
		costs := make([]float64, rng.IntN(60))
		sum, largest := 0.0, 0.0
		for i := range costs {
			costs[i] = rng.ExpFloat64()
			sum, largest = sum+costs[i], max(largest, costs[i])
		}
		p := planned(total, costs)
		assert.Equal(t, p.shardOf, planned(total, costs).shardOf, "each shard finds the same")
		load := make([]float64, total)
		for i, s := range p.shardOf {
			load[s] += costs[i]
		}
		for _, l := range load {
			// The best may be above both; what is over is at most the last one put there.
			assert.LessOrEqual(t, l, sum/float64(total)+largest+1e-9)
		}
		assert.Len(t, p.owner, len(runParts))
	}
}

func TestGroups(t *testing.T) {
	c := func(ids ...int) engine.Case { return engine.Case{TokenIDs: ids} }
	cases := []engine.Case{c(1), c(9, 9), c(1, 2), c(5), c(1, 2, 3), c(4, 4), c(5), c(1, 3)}
	assert.Equal(t, [][]int{{0, 2, 4, 7}, {1}, {3, 6}, {5}}, groupsOf(cases, nil, true))
	assert.Equal(t, [][]int{{0}, {1, 5}, {2}, {3}, {4}, {6}, {7}}, groupsOf(cases, []int{1, 5}, false))
	assert.Equal(t, [][]int{{0, 1, 2, 4, 7}, {3, 6}, {5}}, groupsOf(cases, []int{1, 4}, true))
}

// TestCostsFillWhatWasNotRecorded by what was: half of the tokens were recorded at 2
// seconds each.
func TestCostsFillWhatWasNotRecorded(t *testing.T) {
	p := &runPlan{cases: []engine.Case{{Name: "a", TokenIDs: make([]int, 10)}, {Name: "b", TokenIDs: make([]int, 10)}}, closely: make([]bool, 2)}
	tokens := 10.0 + caseOverhead
	got := costsOf(&Config{Costs: map[string]float64{"a": 2 * tokens, "b": -1}}, nil, p)
	assert.InDeltaSlice(t, []float64{2 * tokens, 2 * tokens}, got.cases, 1e-9)
	got = costsOf(&Config{}, nil, p)
	assert.InDeltaSlice(t, []float64{tokens, tokens}, got.cases, 1e-9)
	rep := &Report{Times: &Times{Cases: map[string]Number{"a": 1}, Run: map[string]Number{"*trace": 2}}}
	assert.Equal(t, map[string]float64{"a": 1, "*trace": 2}, rep.Costs())
	assert.Nil(t, (&Report{}).Costs())
}

// TestEveryCheckOverAllCasesHasItsPart: a check without evidence of cases rests on work
// that one shard does.
func TestEveryCheckOverAllCasesHasItsPart(t *testing.T) {
	for _, c := range Builtin().Checks() {
		ofCases := c.Needs&^ofTheRun != 0
		assert.NotEqual(t, ofCases, workOf(c) != "", c.ID)
		if workOf(c) != "" {
			assert.Nil(t, c.Judge, c.ID)
		}
	}
}
