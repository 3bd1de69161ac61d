package conformance

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/plumbline-go/plumbline/engine"
)

// runPart is work of a run that is no case's. Of several shards one does it.
type runPart string

// The parts, as [Report.Costs] names them.
const (
	partAttention  runPart = "*attention"
	partTeacher    runPart = "*teacher"
	partRoutes     runPart = "*routes"
	partTrace      runPart = "*trace"
	partProvenance runPart = "*provenance"
)

var runParts = []runPart{partAttention, partTeacher, partRoutes, partTrace, partProvenance}

// needsOf is the evidence that a part is.
func (p runPart) needsOf() Need {
	switch p {
	case partAttention:
		return NeedAttention
	case partTeacher:
		return NeedTeacher | NeedTargetRows | NeedTargetWriter
	case partRoutes:
		return NeedRoutes | NeedForcedRoutes | NeedRouteCandidate
	case partTrace:
		return NeedTrace
	}
	return 0
}

// workOf is the part of the run that a check's verdict over all cases rests on, "" where
// it rests on the cases.
func workOf(c *Check) runPart {
	for _, p := range runParts {
		if c.Needs&p.needsOf() != 0 {
			return p
		}
	}
	if c.ID == "Provenance" {
		return partProvenance
	}
	return ""
}

// runPlan says who does what: the same for every shard of a run.
type runPlan struct {
	cases []engine.Case
	// closely are the cases on which the reference is judged in every way.
	closely []bool
	// together are the cases that the reference runs as one batch, in their order.
	together []int
	// shardOf has the shard of each case, owner that of each part.
	shardOf []int
	owner   map[runPart]int
	// shard is this run's, nil for one of all cases.
	shard *Shard
	// hash is over all of the above but which shard this is, and over what the cases
	// are judged by.
	hash string
}

// mine reports whether case i is this shard's.
func (p *runPlan) mine(i int) bool { return p.shard == nil || p.shardOf[i] == p.shard.Index }

// does reports whether a part is this shard's.
func (p *runPlan) does(part runPart) bool { return p.shard == nil || p.owner[part] == p.shard.Index }

// own are the indices of this shard's cases, in order.
func (p *runPlan) own() []int {
	out := []int{}
	for i := range p.cases {
		if p.mine(i) {
			out = append(out, i)
		}
	}
	return out
}

// empty reports whether a run that has cases has none for this shard.
func (p *runPlan) empty() bool { return p.shard != nil && len(p.cases) > 0 && len(p.own()) == 0 }

// across is how a check judges over all cases in this run: nil where it doesn't, where
// that is another shard's part, and where this shard has nothing to judge.
func (p *runPlan) across(c *Check) func(*RunEvidence) *Outcome {
	if part := workOf(c); part != "" && !p.does(part) || part == "" && p.empty() {
		return nil
	}
	return c.Across
}

func planOf(cfg *Config, checks []*Check, rep *Report, cases []engine.Case) (*runPlan, error) {
	needs, refNeeds := needsOf(checks)
	p := &runPlan{cases: cases, shard: cfg.Shard}
	n := cfg.ReferenceCases
	switch {
	case refNeeds == 0:
		n = 0
	case n < 0:
		n = len(cases)
	case n == 0:
		n = 1
	}
	p.closely = powerful(cases, n)
	p.together = batchOf(cfg, refNeeds, cases, p.closely)
	if cfg.Shard == nil {
		return p, nil
	}
	if err := cfg.Shard.validate(); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, c := range cases {
		if seen[c.Name] {
			return nil, fmt.Errorf("conformance: case %s: two cases have this name: shards couldn't be joined by it", c.Name)
		}
		seen[c.Name] = true
	}
	groups := groupsOf(cases, p.together, needs&NeedProbes != 0)
	p.distribute(groups, costsOf(cfg, checks, p))
	var err error
	p.hash, err = p.hashOf(cfg, checks, rep)
	return p, err
}

// needsOf splits what the cases' evidence has to have by whom it is for.
func needsOf(checks []*Check) (needs, refNeeds Need) {
	for _, c := range checks {
		if c.judges(SideReference) {
			refNeeds |= c.Needs &^ ofTheRun
		}
		if c.judges(SideCandidate) || c.judges(SideSuite) {
			needs |= c.Needs &^ ofTheRun
		}
	}
	return needs, refNeeds
}

// batchOf picks the cases that share a batch: the first of unequal lengths on which
// the reference is decoded.
func batchOf(cfg *Config, refNeeds Need, cases []engine.Case, closely []bool) []int {
	if refNeeds&NeedBatches == 0 {
		return nil
	}
	var out []int
	arch := cfg.Reference.Weights().Arch()
	for i, c := range cases {
		g := cfg.Golden
		recorded := g != nil && refNeeds&(NeedGolden|NeedDecode) != 0 && g.Has(c.Name) && g.HasLogits(c.Name)
		unequal := !slices.ContainsFunc(out, func(j int) bool { return len(cases[j].TokenIDs) == len(c.TokenIDs) })
		if (closely[i] || recorded) && unequal && len(out) < batchSize && idsUsable(arch, c) == nil {
			out = append(out, i)
		}
	}
	if len(out) < 2 {
		return nil
	}
	return out
}

// groupsOf are the cases that have to be in one shard: those of a batch, and where
// dumps of prefixes are put together, a prompt and its prefixes.
func groupsOf(cases []engine.Case, together []int, prefixes bool) [][]int {
	head := make([]int, len(cases)) // the first case of each one's group, by way of others
	for i := range head {
		head[i] = i
	}
	find := func(i int) int {
		for head[i] != i {
			i = head[i]
		}
		return i
	}
	join := func(i, j int) {
		a, b := find(i), find(j)
		head[max(a, b)] = min(a, b)
	}
	for _, i := range together {
		join(together[0], i)
	}
	if prefixes {
		byIDs := map[string]int{}
		for i, c := range cases {
			key := fmt.Sprint(c.TokenIDs)
			if first, known := byIDs[key]; known {
				join(first, i)
			} else {
				byIDs[key] = i
			}
		}
		for i, c := range cases {
			if n := len(c.TokenIDs); n > 1 {
				if parent, ok := byIDs[fmt.Sprint(c.TokenIDs[:n-1])]; ok {
					join(parent, i)
				}
			}
		}
	}
	var out [][]int
	at := map[int]int{}
	for i := range cases {
		h := find(i)
		if _, known := at[h]; !known {
			at[h] = len(out)
			out = append(out, nil)
		}
		out[at[h]] = append(out[at[h]], i)
	}
	return out
}

// distribute puts the costliest work first into the lightest shard, the lowest of
// several.
func (p *runPlan) distribute(groups [][]int, costs planCosts) {
	type item struct {
		group []int
		part  runPart
		cost  float64
	}
	var items []item
	for _, g := range groups {
		it := item{group: g}
		for _, i := range g {
			it.cost += costs.cases[i]
		}
		if len(p.together) > 0 && slices.Contains(g, p.together[0]) {
			it.cost += costs.batches
		}
		items = append(items, it)
	}
	for _, part := range runParts {
		items = append(items, item{part: part, cost: costs.parts[part]})
	}
	slices.SortStableFunc(items, func(a, b item) int { return cmp.Compare(b.cost, a.cost) })
	load := make([]float64, p.shard.Total)
	count := make([]int, p.shard.Total)
	p.shardOf, p.owner = make([]int, len(p.cases)), map[runPart]int{}
	for _, it := range items {
		to := 0
		for s := range load {
			if load[s] < load[to] || load[s] == load[to] && count[s] < count[to] {
				to = s
			}
		}
		load[to] += it.cost
		count[to]++
		for _, i := range it.group {
			p.shardOf[i] = to
		}
		if it.part != "" {
			p.owner[it.part] = to
		}
	}
}
