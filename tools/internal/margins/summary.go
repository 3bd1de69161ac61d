package margins

import (
	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// Group is a named set of cases.
type Group struct {
	Name  string
	Cases []string
}

// Stats describes one figure of N positions. Quantiles are those of
// [metric.Quantile]. NaN when N is 0 or a position has none.
type Stats struct {
	N                           int
	Min, Median, Mean, P99, Max float64
}

func statsOf(xs []float64) Stats {
	return Stats{N: len(xs), Min: metric.Quantile(0, xs), Median: metric.Median(xs), Mean: metric.Mean(xs),
		P99: metric.P99(xs), Max: metric.Quantile(1, xs)}
}

// Comparable sums up the positions with one input on both sides.
type Comparable struct {
	Group string
	// Cases counts those that were compared, of OfCases.
	Cases, OfCases int
	// Positions are the comparable ones, Of all that the reference decoded in the
	// compared cases.
	Positions, Of int
	// Classes counts the positions of each class, Agree those with the same
	// token: MATCH.
	Classes map[conformance.Margin]int
	Agree   int
	// KL, KLRowScale and Regret are in nats; N is 0 where a side has no unit.
	KL, KLRowScale, Regret Stats
	Spearman               Stats
}

// Naive sums up all positions that both sides have, those after a flip too.
type Naive struct {
	Group     string
	Positions int
	Agree     int
	// AgreeMargin is the reference's first over its second logit, in z, where
	// the tokens agree; FlipMargin its first over the candidate's pick where they
	// don't, and FlipRanks that pick's rank.
	AgreeMargin, FlipMargin Stats
	FlipRanks               []int
	Spearman                Stats
}

// positions visits the positions of the compared cases that a group names, in
// the group's order.
func (res *Result) positions(g Group, visit func(c *Case, p *Position)) {
	res.cases(g, func(c *Case) {
		if c.Compared() {
			for i := range c.Positions {
				visit(c, &c.Positions[i])
			}
		}
	})
}

func (res *Result) cases(g Group, visit func(c *Case)) {
	byName := map[string]*Case{}
	for i := range res.Cases {
		byName[res.Cases[i].Name] = &res.Cases[i]
	}
	for _, name := range g.Cases {
		if c := byName[name]; c != nil {
			visit(c)
		}
	}
}

// Everything puts all cases into one group.
func (res *Result) Everything(name string) Group {
	g := Group{Name: name}
	for i := range res.Cases {
		g.Cases = append(g.Cases, res.Cases[i].Name)
	}
	return g
}

// Comparable sums up a group's comparable positions.
func (res *Result) Comparable(g Group) Comparable {
	out := Comparable{Group: g.Name, Classes: map[conformance.Margin]int{}}
	res.cases(g, func(c *Case) {
		out.OfCases++
		if c.Compared() {
			out.Cases++
			out.Of += len(c.RefTokens)
		}
	})
	var kl, own, regret, spearman []float64
	res.positions(g, func(_ *Case, p *Position) {
		if !p.Comparable() {
			return
		}
		out.Positions++
		out.Classes[p.Class]++
		if p.Agree() {
			out.Agree++
		}
		spearman = append(spearman, p.Spearman)
		if !res.RefInt32 {
			regret, kl = append(regret, p.Regret), append(kl, p.KL)
			if res.CandInt32 {
				own = append(own, p.KLRowScale)
			}
		}
	})
	out.KL, out.KLRowScale, out.Regret, out.Spearman = statsOf(kl), statsOf(own), statsOf(regret), statsOf(spearman)
	return out
}

// Naive sums up all of a group's positions.
func (res *Result) Naive(g Group) Naive {
	out := Naive{Group: g.Name}
	var agree, flip, spearman []float64
	res.positions(g, func(_ *Case, p *Position) {
		out.Positions++
		spearman = append(spearman, p.Spearman)
		if p.Agree() {
			out.Agree++
			agree = append(agree, p.ZMargin)
		} else {
			flip = append(flip, p.ZChoice)
			out.FlipRanks = append(out.FlipRanks, p.Rank)
		}
	})
	out.AgreeMargin, out.FlipMargin, out.Spearman = statsOf(agree), statsOf(flip), statsOf(spearman)
	return out
}

// AfterFlip describes Spearman's correlation where the inputs differ: why the
// two summaries do.
func (res *Result) AfterFlip() Stats {
	var xs []float64
	res.positions(res.Everything(""), func(_ *Case, p *Position) {
		if p.AfterFlip {
			xs = append(xs, p.Spearman)
		}
	})
	return statsOf(xs)
}
