package trace

import (
	"math"
	"math/big"
)

// Summary is what is made of all sources: counts are summed, cosine and Jaccard are
// means over tokens, relative L2 and total variation plain means over sources, and
// the largest difference is that of all.
type Summary struct {
	Sources, Conditions, Layers, Gates, Stages int
	// ContentTokens is per condition, RouteDecisions over all conditions and gates.
	ContentTokens, RouteDecisions int64
	// Hidden is by stage and edge, Routes by gate and edge.
	Hidden [][]HiddenSummary
	Routes [][]RouteSummary
}

// HiddenSummary is one edge at one stage, over all sources.
type HiddenSummary struct {
	Sources                                 int
	Tokens, ExactRows                       int64
	MeanCosine, MeanRelativeL2, MaxAbsDelta float64
}

// RouteSummary is one edge at one gate, over all sources.
type RouteSummary struct {
	Sources                             int
	Tokens, OrderedExact, SetExact      int64
	MeanJaccard, MeanWeightedTV, LoadTV float64
}

// Summariser takes sources one by one; its memory doesn't grow with them.
type Summariser struct {
	s        Summary
	topK     int
	cosines  [][]float64
	relative [][]exactSum
	jaccards [][]float64
	tv, load [][]exactSum
}

// NewSummariser returns one for a plan on a shape.
func NewSummariser(p Plan, s Shape) *Summariser {
	stages, gates, edges := s.Stages(), len(s.Gates), len(p.Edges)
	return &Summariser{
		s: Summary{
			Conditions: len(p.Conditions), Layers: s.Layers, Gates: gates, Stages: stages,
			Hidden: table[HiddenSummary](stages, edges), Routes: table[RouteSummary](gates, edges),
		},
		topK:    s.TopK,
		cosines: table[float64](stages, edges), relative: table[exactSum](stages, edges),
		jaccards: table[float64](gates, edges), tv: table[exactSum](gates, edges), load: table[exactSum](gates, edges),
	}
}

func table[T any](rows, columns int) [][]T {
	t := make([][]T, rows)
	for i := range t {
		t[i] = make([]T, columns)
	}
	return t
}

// Add takes a source.
func (z *Summariser) Add(s *SourceTrace) {
	z.s.Sources++
	z.s.ContentTokens += int64(s.ContentTokens)
	for i, st := range s.Stages {
		for e, c := range st.Edges {
			h := &z.s.Hidden[i][e]
			h.Sources++
			h.Tokens += int64(c.Tokens)
			h.ExactRows += int64(c.ExactRows)
			h.MaxAbsDelta = math.Max(h.MaxAbsDelta, c.MaxAbsDelta)
			z.cosines[i][e] += c.MeanCosine * float64(c.Tokens)
			z.relative[i][e].add(c.MeanRelativeL2)
		}
	}
	for i, g := range s.Gates {
		for e, c := range g.Edges {
			r := &z.s.Routes[i][e]
			r.Sources++
			r.Tokens += int64(c.Tokens)
			r.OrderedExact += int64(c.OrderedExact)
			r.SetExact += int64(c.SetExact)
			z.jaccards[i][e] += c.MeanJaccard * float64(c.Tokens)
			z.tv[i][e].add(c.MeanWeightedTV)
			z.load[i][e].add(c.LoadTV)
		}
	}
}

// Summary is that of the sources so far. Without any there is none.
func (z *Summariser) Summary() (Summary, error) {
	if z.s.Sources == 0 {
		return Summary{}, &UsageError{"Summary", "sources", "0", "at least one"}
	}
	s := z.s
	s.RouteDecisions = s.ContentTokens * int64(s.Conditions) * int64(s.Gates) * int64(z.topK)
	s.Hidden, s.Routes = table[HiddenSummary](len(z.s.Hidden), len(z.cosines[0])), table[RouteSummary](len(z.s.Routes), len(z.cosines[0]))
	for i, row := range z.s.Hidden {
		for e, h := range row {
			h.MeanCosine = z.cosines[i][e] / float64(h.Tokens)
			h.MeanRelativeL2 = z.relative[i][e].mean(h.Sources)
			s.Hidden[i][e] = h
		}
	}
	for i, row := range z.s.Routes {
		for e, r := range row {
			r.MeanJaccard = z.jaccards[i][e] / float64(r.Tokens)
			r.MeanWeightedTV = z.tv[i][e].mean(r.Sources)
			r.LoadTV = z.load[i][e].mean(r.Sources)
			s.Routes[i][e] = r
		}
	}
	return s, nil
}

// exactSum is a sum without rounding: Python's statistics.mean rounds once, at the
// end.
type exactSum struct{ sum big.Rat }

func (s *exactSum) add(x float64) {
	var r big.Rat
	if r.SetFloat64(x) != nil {
		s.sum.Add(&s.sum, &r)
	}
}

func (s *exactSum) mean(n int) float64 {
	var r big.Rat
	f, _ := r.Quo(&s.sum, new(big.Rat).SetInt64(int64(n))).Float64()
	return f
}
